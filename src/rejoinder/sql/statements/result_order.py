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
from rejoinder.sql.bind.groups.aggregate_functions import aggregates_in
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.windows.order_and_limit import has_limit, row_count
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.dialect import SparkSql

Direction = Literal["ascending", "descending"]
Placement = Literal["at_start", "at_end"]
_CLAUSES = {"order": TokenType.ORDER_BY, "limit": TokenType.LIMIT, "offset": TokenType.OFFSET}


@dataclass(frozen=True)
class Ordering:
    """ORDER BY, LIMIT and OFFSET."""

    keys: tuple[tuple[str | int | exp.Expr, Direction, Placement], ...] = ()
    """Columns by name or position, or expressions, each with its direction and the placement of NULL."""
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

    >>> query, ordering = split_ordering("SELECT a FROM t ORDER BY b, lower(t.c)")
    >>> with_order_columns(query, ordering, ["a"])[0]
    'SELECT a, `b` AS `__order_0`, LOWER(t.c) AS `__order_1` FROM t'

    Expressions of columns of the result are added to a query around it. Raises `Unsupported`.
    """
    selected = {name.lower() for name in names}
    items: dict[str, str] = {}
    keys: list[tuple[str | int | exp.Expr, Direction, Placement]] = []
    for key, way, place in ordering.keys:
        item = _item(key, selected)
        keys.append((key if item is None else items.setdefault(item, f"__order_{len(items)}"), way, place))
    if not items:
        return text, ordering, []
    listed, wider = (
        "".join(f", {item} AS `{name}`" for item, name in items.items()),
        replace(ordering, keys=tuple(keys)),
    )
    terms = [key for key, _, _ in ordering.keys if isinstance(key, exp.Expr)]
    if len(terms) == len(items) and all(_is_of_result(term, selected) for term in terms):
        return f"SELECT *{listed} FROM ({text})", wider, list(items.values())
    query = parse_query(text)
    start = _from_clause(text)
    is_plain = isinstance(query, exp.Select) and not query.args.get("distinct") and start > 0
    refused = next((term for term in terms if not is_plain or _uses_alias(term, query)), None)
    if refused is not None:
        hint = "name it in the SELECT with AS, and order by that name"
        raise Unsupported("ORDER BY takes columns of the result", detail=text_of(refused), hint=hint)
    if not is_plain:
        return text, ordering, []
    return f"{text[:start].rstrip()}{listed} {text[start:]}", wider, list(items.values())


def _item(key: str | int | exp.Expr, selected: set[str]) -> str | None:
    """Return what to add to a SELECT list for a sort key; None if the result has it."""
    if isinstance(key, exp.Expr):
        return text_of(key)
    return None if isinstance(key, int) or key.lower() in selected else f"`{key.lower()}`"


def _is_of_result(term: exp.Expr, selected: set[str]) -> bool:
    """Whether an expression is computed from columns of the result alone."""
    is_scalar = not next(aggregates_in(term), None) and not term.find(exp.Query, exp.Window)
    return is_scalar and all(not c.table and c.name.lower() in selected for c in term.find_all(exp.Column))


def _uses_alias(term: exp.Expr, query: exp.Expr) -> bool:
    """Whether an expression uses an alias: ORDER BY takes the alias, a SELECT list a column of that name."""
    aliases = {item.alias.lower() for item in query.expressions if isinstance(item, exp.Alias)}
    return any(not c.table and c.name.lower() in aliases for c in term.find_all(exp.Column))


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


def _key(item: exp.Expr) -> tuple[str | int | exp.Expr, Direction, Placement]:
    descending = bool(item.args.get("desc"))
    first = item.args.get("nulls_first")
    node = item.this
    direction: Direction = "descending" if descending else "ascending"
    placement: Placement = "at_start" if (not descending if first is None else first) else "at_end"
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.this) - 1, direction, placement
    is_name = isinstance(node, exp.Column) and not node.table
    return node.name if is_name else node, direction, placement
