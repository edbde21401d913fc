"""ORDER BY, LIMIT and OFFSET of an ad-hoc query: split off its text, and applied to its result.

SELECT a FROM t ORDER BY b LIMIT 3   →  SELECT a, `b` AS `__order_0` FROM t, then sort, cut and drop the column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from rejoinder.errors import Unsupported
from rejoinder.sql.bind.emit_clause import split_emission
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.windows.order_and_limit import has_limit, row_count
from rejoinder.sql.parse.dialect import SparkSql

Direction = Literal["ascending", "descending"]
Placement = Literal["at_start", "at_end"]


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
    depth, starts = 0, []
    has_order = query.args.get("order") is not None or query.args.get("limit") is not None
    wanted = (TokenType.ORDER_BY, TokenType.LIMIT) if has_order else (TokenType.OFFSET,)
    for token in sqlglot.tokenize(text, read=SparkSql):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type in wanted:
            starts.append(token.start)
    # A column can be called `offset`; the clause is the last one.
    return text[: starts[0 if has_order else -1]] if starts else text


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
