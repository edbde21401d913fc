"""Texts recognised: definitions that say the same, the query that is a whole relation, input that is complete."""

from __future__ import annotations

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from rejoinder.sql.dialect import SparkSql
from rejoinder.sql.statements import parse_query


def whole_relation(text: str) -> str | None:
    """The name in `SELECT * FROM name`; None for every other query.

    >>> whole_relation("select * from `big orders`"), whole_relation("SELECT * FROM orders WHERE id = 1")
    ('big orders', None)
    """
    query = parse_query(text)
    if {name for name, value in query.args.items() if value} != {"expressions", "from_"}:
        return None
    star, table = query.expressions[0], query.args["from_"].this
    if len(query.expressions) != 1 or not isinstance(star, exp.Star) or any(star.args.values()):
        return None
    if not isinstance(table, exp.Table) or {name for name, value in table.args.items() if value} - {"this", "db"}:
        return None
    return ".".join(part.name for part in table.parts)


def named_relations(text: str) -> list[str]:
    """The names in all FROM clauses of a query, those of its own WITH among them.

    >>> named_relations("SELECT * FROM a JOIN (SELECT x FROM b) c USING (x)")
    ['a', 'b']
    """
    return list(dict.fromkeys(table.name for table in parse_query(text).find_all(exp.Table)))


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but white space, comments and the case of words outside quotes.

    >>> same_text("SELECT  id -- the key", "select ID"), same_text("SELECT 'a'", "SELECT 'A'")
    (True, False)
    """
    return _words(one) == _words(other)


def is_complete(text: str) -> bool:
    """Whether the last statement of a text has its semicolon: one outside quotes and comments.

    >>> is_complete("SELECT 1;"), is_complete("SELECT 1 -- ;"), is_complete("SELECT ';")
    (True, False, False)
    """
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except SqlglotError:
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def _words(text: str) -> list[tuple[TokenType, str]]:
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    tokens = sqlglot.tokenize(text, read=SparkSql)
    return [(t.token_type, t.text if t.token_type in quoted else t.text.upper()) for t in tokens]
