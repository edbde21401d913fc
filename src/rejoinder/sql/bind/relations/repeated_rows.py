"""Rewrite HOP: repeat each row once per window below the expressions that use the window.

    SELECT HOP(ts, slide, size) AS w, … FROM t
    →  SELECT window of s AS w, … FROM t CROSS JOIN UNNEST(all window starts of ts) AS s      -- an `Expand`

Equal calls share one `Expand`: in `SELECT HOP(l.ts, …) FROM l JOIN r ON HOP(l.ts, …) = HOP(r.ts, …)`, the selected
window is the joined one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from rejoinder.errors import UnknownName
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.operators import is_not_null
from rejoinder.ir.identities import column_id, column_text
from rejoinder.ir.logical import Expand, Filter, Node, Predicate
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression, hop_starts
from rejoinder.sql.functions.time.windowing_functions import hops_in, times_that_must_be_known


def repeat_rows(
    root: Node, scope: Scope, parts: Sequence[exp.Expr | None], numbers: Iterator[int]
) -> tuple[Node, Scope]:
    """Repeat rows for every HOP in parts of a query. Like Spark's `window`, drop rows whose time is NULL."""
    present = [part for part in parts if part is not None]
    for call in (call for part in present for call in hops_in(part)):
        root, scope = _repeated(root, scope, hop_starts(call, scope), numbers)
    times = [compile_expression(time, scope) for part in present for time in times_that_must_be_known(part)]
    if times:
        root = Filter(root, tuple(Predicate(_is_not_null(time)) for time in dict.fromkeys(times)))
    return root, scope


def repeat_sides(
    left: tuple[Node, Scope], right: tuple[Node, Scope], condition: exp.Expr, numbers: Iterator[int]
) -> tuple[tuple[Node, Scope], tuple[Node, Scope]]:
    """Repeat the rows of both sides of a join for every HOP in its condition."""
    for call in hops_in(condition):
        for side in (left, right):
            try:
                starts = hop_starts(call, side[1])
            except UnknownName:
                continue  # of the other side, or of neither: then binding the condition raises
            repeated = _repeated(*side, starts, numbers)
            left, right = (repeated, right) if side is left else (left, repeated)
            break
    return left, right


def _repeated(root: Node, scope: Scope, starts: Expression, numbers: Iterator[int]) -> tuple[Node, Scope]:
    if scope.repeated(starts.node) is not None:
        return root, scope
    number = next(numbers)
    # A column id begins with the number of its input, by which `are_apart` tells the sides of a join: use that of the
    # time column.
    input_number = column_id(starts.columns[0]).input if starts.columns else number
    name = column_text(input_number, f"start/{number}")
    column = Column("", name, name, starts.type.value_type, hidden=True)
    return Expand(root, name, starts), scope.repeating(starts.node, column)


def _is_not_null(time: Expression) -> Expression:
    return Expression(is_not_null(time.node), f"{time.text} IS NOT NULL")
