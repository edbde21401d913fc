"""Pipe syntax: an operator after `|>` applies to the rows of everything before it.

sqlglot adds each operator to the SELECT that it has so far. Where that SELECT already has a clause that SQL applies
later, this changes the meaning, so here such a SELECT becomes a subquery first:

    FROM s |> ORDER BY n |> LIMIT 1 |> WHERE n > 5
    SELECT * FROM (SELECT * FROM s ORDER BY n LIMIT 1) AS s WHERE n > 5
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from rejoinder.errors import Unsupported
from rejoinder.sql.parse.clauses import text_of

_CUTS = ("limit", "offset")
_LATER = ("distinct", "group", "having", "qualify", "windows", "sample", "order", *_CUTS)
"""Clauses that SQL applies after FROM, JOIN and WHERE."""
_LAST = ("ORDER BY", *(cut.upper() for cut in _CUTS))
"""Operators that SQL applies after all other clauses, except LIMIT and OFFSET."""
_READ = frozenset(("expressions", "distinct", "hint"))
"""Clauses of the operator SELECT."""


def _on_rows(operator: str, parse: Callable[..., Any]) -> Callable[..., Any]:
    """Make the parser of an operator apply to the rows of the query before it."""
    return lambda parser, query: parse(parser, _rows(parser, query, operator))


def _rows(parser: Any, query: exp.Query, operator: str) -> exp.Query:
    """Return a query to which an operator can be added: the same one, or a SELECT from it."""
    clauses = _CUTS if operator in _LAST else _LATER
    is_all = operator in _LAST or query.expressions == [exp.Star()]
    if isinstance(query, exp.Select) and is_all and not any(query.args.get(clause) for clause in clauses):
        return query
    source = query.args.get("from_")
    is_joined = query.args.get("joins") or (source is not None and source.this.args.get("joins"))
    if source is None or is_joined or query.args.get("with_") or not source.alias_or_name:
        rows: exp.Select = parser._build_pipe_cte(query, [exp.Star()])
    else:  # later operators can still use the name of the relation
        rows = exp.select("*").from_(query.subquery(source.alias_or_name, copy=False), copy=False)
    if operator != "ORDER BY" and operator in _LAST and query.args.get("order"):
        rows.set("order", query.args["order"].copy())  # LIMIT and OFFSET take rows in the order that they have
    return rows


def _limited(parser: Any, query: exp.Select) -> exp.Select:
    """Parse the operators LIMIT and OFFSET, on a query that has neither."""
    for clause, value in (("limit", parser._parse_limit()), ("offset", parser._parse_offset())):
        query.set(clause, value)
    return query


def _named(parser: Any, query: exp.Select) -> exp.Select:
    """Parse the operator AS."""
    alias = parser._parse_table_alias()
    return exp.select("*").from_(query.subquery(alias.name, copy=False), copy=False)


def _dropped(parser: Any, query: exp.Select) -> exp.Select:
    """Parse the operator DROP: SELECT * EXCEPT (…)."""
    parser._advance()
    names = parser._parse_csv(parser._parse_id_var)
    rows: exp.Select = parser._build_pipe_cte(query.select(exp.Star(except_=names), append=False), [exp.Star()])
    return rows


def _assigned(parser: Any, query: exp.Select) -> exp.Select:
    """Parse the operator SET: SELECT * REPLACE (… AS name). A later assignment sees the ones before it."""
    parser._advance()
    while True:
        name = parser._parse_id_var()
        if not parser._match(TokenType.EQ):
            parser.raise_error("expected = after the name of a column")
        value = exp.alias_(parser._parse_disjunction(), name, copy=False)
        query = query.select(exp.Star(replace=[value]), append=False)
        query = parser._build_pipe_cte(query, [exp.Star()])
        if not parser._match(TokenType.COMMA):
            return query


class PipeParser(SparkParser):
    """Spark's parser, with the operators of pipes in the order in which they are written."""

    PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: _on_rows(name, parse)
        for name, parse in (
            *SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS.items(),
            ("AS", _named),
            ("LIMIT", _limited),
            ("OFFSET", _limited),
            ("DROP", _dropped),
            ("SET", _assigned),
        )
        if name != "TABLESAMPLE"
    }

    def _parse_pipe_syntax_join(self, query: exp.Query) -> exp.Query | None:
        """Parse the operator JOIN, the last one that sqlglot tries. Raises `Unsupported` for any other word."""
        token = self._curr
        joined: exp.Query | None = super()._parse_pipe_syntax_join(_rows(self, query, "JOIN"))
        if joined is None:
            raise Unsupported(
                f"the operator `{token.text.upper()}` of a pipe is not supported",
                detail=f"line {token.line}: |> {self.sql[token.start : token.start + 60]}",
                hint=f"operators: {', '.join(self.PIPE_SYNTAX_TRANSFORM_PARSERS)}, JOIN, UNION, INTERSECT, EXCEPT",
            )
        return joined

    def _parse_pipe_syntax_select(self, query: exp.Select) -> exp.Select:
        """Parse the operator SELECT, of which sqlglot reads the columns only."""
        select = self._parse_select(consume_pipe=False)
        assert isinstance(select, exp.Select), "the operator begins with SELECT"
        others = [clause for clause, value in select.args.items() if value and clause not in _READ]
        if others:
            clause = others[0].rstrip("_").upper()
            raise Unsupported(
                f"{clause} within the operator SELECT of a pipe is not supported",
                detail=text_of(select),
                hint="make it an operator of its own, as in |> WHERE … |> SELECT …",
            )
        chosen = query.select(*select.expressions, append=False)
        chosen.set("distinct", select.args.get("distinct"))
        return self._build_pipe_cte(chosen, [exp.Star()])
