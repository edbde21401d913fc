"""Rows that HOP puts into several windows: repeated below the expressions that name the window.

Each call of HOP in a part of a query becomes one `Expand` under it, whose column is the start of the window. Equal
calls are one: in `SELECT HOP(l.ts, …) FROM l JOIN r ON HOP(l.ts, …) = HOP(r.ts, …)` the selected window is the joined
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from rejoinder.errors import UnknownName
from rejoinder.ir.expression import Expression
from rejoinder.ir.logical import Expand, Filter, Node, Predicate
from rejoinder.ir.operators import is_not_null
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression, hop_starts
from rejoinder.sql.functions.time.window_functions import hops_in, times_that_must_be_known


def repeat_rows(
    root: Node, scope: Scope, parts: Sequence[exp.Expr | None], numbers: Iterator[int]
) -> tuple[Node, Scope]:
    """Repeat rows for every HOP in some parts of a query; leave out those that Spark's `window` leaves out."""
    given = [part for part in parts if part is not None]
    for call in (call for part in given for call in hops_in(part)):
        root, scope = _repeated(root, scope, hop_starts(call, scope), numbers)
    known = [compile_expression(time, scope) for part in given for time in times_that_must_be_known(part)]
    if known:
        root = Filter(root, tuple(Predicate(_is_known(time)) for time in dict.fromkeys(known)))
    return root, scope


def repeat_sides(
    left: tuple[Node, Scope], right: tuple[Node, Scope], condition: exp.Expr, numbers: Iterator[int]
) -> tuple[tuple[Node, Scope], tuple[Node, Scope]]:
    """Repeat the rows of the two sides of a join for every HOP in its condition."""
    for call in hops_in(condition):
        for side in (left, right):
            try:
                starts = hop_starts(call, side[1])
            except UnknownName:
                continue  # of the other side, or of none: then the condition as a whole is refused
            made = _repeated(*side, starts, numbers)
            left, right = (made, right) if side is left else (left, made)
            break
    return left, right


def _repeated(root: Node, scope: Scope, starts: Expression, numbers: Iterator[int]) -> tuple[Node, Scope]:
    if scope.repeated(starts.node) is not None:
        return root, scope
    number = next(numbers)
    # An identifier begins with the number of its input: that of the time, by which conditions know the sides of a join.
    place = starts.columns[0].split(".", 1)[0] if starts.columns else str(number)
    name = f"{place}.start/{number}"
    column = Column("", name, name, starts.type.value_type, hidden=True)
    return Expand(root, name, starts), scope.repeating(starts.node, column)


def _is_known(time: Expression) -> Expression:
    return Expression(is_not_null(time.node), f"{time.text} IS NOT NULL")
