"""Questions about SQL text: equal definitions, `SELECT * FROM name`, relations read, complete statements."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from rejoinder.ir.user_functions import UserFunction
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.parse.clauses import relation_name
from rejoinder.sql.parse.dialect import SparkSql


def whole_relation(text: str) -> str | None:
    """Return the name in `SELECT * FROM name`; None for every other query.

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
    return relation_name(table)


@lru_cache(maxsize=1024)
def named_relations(text: str) -> tuple[str, ...]:
    """Return the names in all FROM clauses of a query, including those of its CTEs.

    >>> named_relations("SELECT * FROM a JOIN (SELECT x FROM b.late) c USING (x)")
    ('a', 'b.late')
    """
    return tuple(dict.fromkeys(relation_name(table) for table in parse_query(text).find_all(exp.Table)))


def calls_function(text: str, function: UserFunction) -> bool:
    """Return whether a query calls a declared function."""
    name = function.name.lower()
    return any(call.name.lower() == name for call in parse_query(text).find_all(exp.Anonymous))


def same_text(left: str, right: str) -> bool:
    """Return whether two texts differ only in white space, comments and the case of unquoted words.

    >>> same_text("SELECT  id -- the key", "select ID"), same_text("SELECT 'a'", "SELECT 'A'")
    (True, False)
    """
    return _words(left) == _words(right)


def is_complete(text: str) -> bool:
    """Return whether a text ends with a semicolon outside quotes and comments.

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


def name_text(name: str) -> str:
    """Return a name as SQL, quoted only if needed.

    >>> name_text("amount"), name_text("from"), name_text("a b")
    ('amount', '`from`', '`a b`')
    """
    try:
        tokens = sqlglot.tokenize(name, read=SparkSql)
    except SqlglotError:
        tokens = []
    if len(tokens) == 1 and tokens[0].token_type == TokenType.VAR and tokens[0].text == name:
        return name
    return "`" + name.replace("`", "``") + "`"


def qualified(expression: str, qualifier: str, columns: Collection[str]) -> str:
    """Qualify the columns of an expression over one relation, for use in a join.

    >>> qualified("upper(country) || 'x' || o.city", "o", ["country", "city"])
    "upper(o.country) || 'x' || o.city"
    """
    names = {name.lower() for name in columns}
    tokens = sqlglot.tokenize(expression, read=SparkSql)
    result, end = "", 0
    for position, token in enumerate(tokens):
        before, after = (tokens[i].token_type if 0 <= i < len(tokens) else None for i in (position - 1, position + 1))
        is_name = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.lower() in names
        is_call = after == TokenType.L_PAREN
        is_qualifier = after == TokenType.DOT and token.text.lower() == qualifier.lower()
        if is_name and before != TokenType.DOT and not is_call and not is_qualifier:
            result += expression[end : token.start] + f"{name_text(qualifier)}."
            end = token.start
    return result + expression[end:]
