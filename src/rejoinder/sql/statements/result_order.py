"""ORDER BY, LIMIT and OFFSET of an ad-hoc query: split off its text, and applied to its result.

SELECT a FROM t ORDER BY b LIMIT 3   →  SELECT a, `b` AS `__order_0` FROM t, then sort, cut and drop the column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import Unsupported
from rejoinder.sql.bind.emit_clause import split_emission
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.windows.order_and_limit import has_limit, row_count
from rejoinder.sql.parse.dialect import SparkSql

Direction = Literal["ascending", "descending"]
Placement = Literal["at_start", "at_end"]
_CLAUSES = {"order": TokenType.ORDER_BY, "limit": TokenType.LIMIT, "offset": TokenType.OFFSET}


@dataclass(frozen=True)
class Ordering:
    """ORDER BY, LIMIT and OFFSET."""

    keys: tuple[tuple[str | int, Direction, Placement], ...] = ()
    """Result columns by name or position, each with its direction and the placement of NULL."""
    limit: int | None = None
    offset: int = 0


def split_ordering(text: str) -> tuple[str, Ordering]:
    """Split ORDER BY, LIMIT and OFFSET off a query."""
    query = parse_query(text)
    order = query.args.get("order")
    if order is None and not has_limit(query):
        return text, Ordering()
    emission = text[len(split_emission(text)[0]) :]
    keys = tuple(_key(item) for item in order.expressions) if order is not None else ()
    ordering = Ordering(keys, row_count(query, "limit"), row_count(query, "offset") or 0)
    return _before_ordering(text, query).rstrip() + emission, ordering


def with_order_columns(text: str, ordering: Ordering, names: Sequence[str]) -> tuple[str, Ordering, list[str]]:
    """Add the sort keys that a query does not select, under names that are dropped after sorting.

    >>> query, ordering = split_ordering("SELECT a FROM t ORDER BY b")
    >>> with_order_columns(query, ordering, ["a"])[0]
    'SELECT a, `b` AS `__order_0` FROM t'
    """
    selected = {name.lower() for name in names}
    missing = [key for key, _, _ in ordering.keys if isinstance(key, str) and key.lower() not in selected]
    query = parse_query(text)
    if not missing or not isinstance(query, exp.Select) or query.args.get("distinct"):
        return text, ordering, []
    added = {key.lower(): f"__order_{number}" for number, key in enumerate(dict.fromkeys(missing))}
    items = "".join(f", `{key}` AS `{name}`" for key, name in added.items())
    keys = tuple(
        (added.get(key.lower(), key) if isinstance(key, str) else key, way, place) for key, way, place in ordering.keys
    )
    start = _from_clause(text)
    return f"{text[:start].rstrip()}{items} {text[start:]}", replace(ordering, keys=keys), list(added.values())


def _from_clause(text: str) -> int:
    """Return the position of the outermost FROM."""
    depth = 0
    for token in sqlglot.tokenize(text, read=SparkSql):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.FROM:
            return token.start
    return len(text)


def _before_ordering(text: str, query: exp.Expr) -> str:
    """Return the text before its outermost ORDER BY, LIMIT or OFFSET, unchanged."""
    present = {word for clause, word in _CLAUSES.items() if query.args.get(clause) is not None}
    outermost, depth = [], 0
    for token in sqlglot.tokenize(text, read=SparkSql):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        outermost += [token] if depth == 0 else []
    pipes = [at for at, token in enumerate(outermost) if token.token_type == TokenType.PIPE_GT]
    if pipes:
        return _before_last_operators(text, outermost, pipes, present)
    has_order = not present.isdisjoint((TokenType.ORDER_BY, TokenType.LIMIT))
    wanted = (TokenType.ORDER_BY, TokenType.LIMIT) if has_order else (TokenType.OFFSET,)
    starts = [token.start for token in outermost if token.token_type in wanted]
    # A column can be called `offset`; the clause is the last one.
    return text[: starts[0 if has_order else -1]] if starts else text


def _before_last_operators(text: str, tokens: list[Token], pipes: list[int], present: set[TokenType]) -> str:
    """Return a pipe without its last operators, as far as they are the clauses that its result has."""
    end = len(tokens)
    for pipe in reversed(pipes):
        operator = {token.token_type for token in tokens[pipe + 1 : end]}
        if tokens[pipe + 1].token_type not in present:
            break
        text, end, present = text[: tokens[pipe].start], pipe, present - operator
    return text


def _key(item: exp.Expression) -> tuple[str | int, Direction, Placement]:
    descending = bool(item.args.get("desc"))
    first = item.args.get("nulls_first")
    node = item.this
    direction: Direction = "descending" if descending else "ascending"
    placement: Placement = "at_start" if (not descending if first is None else first) else "at_end"
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.this) - 1, direction, placement
    if isinstance(node, exp.Column) and not node.table:
        return node.name, direction, placement
    hint = "name it in the SELECT with AS, and order by that name"
    raise Unsupported("ORDER BY takes columns of the result", detail=node.sql(dialect="spark"), hint=hint)
