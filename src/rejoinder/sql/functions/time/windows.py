"""Windows as values: their type, their two ends, and their equality.

A window is a `STRUCT<start, end>`, half-open and aligned to 1970-01-01 in UTC, as Spark's are, or to 0 if it is one of
integers. A term that made a window knows its ends as terms of their own (`Bounds`). So `WINDOW_START(w)` and `w.start`
need no struct, and the equality of two windows is the equality of their starts, which a join can look up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.ir.identities import column_part
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Bounds, Compiler, Term, call


@dataclass(frozen=True)
class ColumnBounds:
    """The identifiers of the columns that hold start and end of a window column, and its length if that is fixed."""

    start: str
    end: str
    size: int | None = None

    @staticmethod
    def of(column: str, size: int | None = None) -> ColumnBounds:
        """The bounds of a window column, in the two columns that are named after it."""
        return ColumnBounds(column_part(column, "start"), column_part(column, "end"), size)


@runtime_checkable
class WindowScope(Protocol):
    """A scope that knows windows: those of its columns, and those that rows were repeated for."""

    def bounds(self, column: str) -> ColumnBounds | None:
        """The companions of a window column."""
        ...

    def repeated(self, starts: nodes.Node) -> str | None:
        """The column that holds the start of each window, by the list of starts."""
        ...


def window_type(kind: pa.DataType) -> pa.DataType:
    """The type of a window over times of a type.

    >>> spark_types.spark_name(window_type(spark_types.TIMESTAMP))
    'struct<start:timestamp,end:timestamp>'
    """
    return pa.struct([pa.field("start", kind), pa.field("end", kind)])


_WINDOW_TYPES = tuple(map(window_type, (spark_types.TIMESTAMP, spark_types.TIMESTAMP_NTZ, spark_types.BIGINT)))


def is_window(kind: pa.DataType) -> bool:
    """Say whether a type is that of a window."""
    return bool(pa.types.is_struct(kind)) and kind in _WINDOW_TYPES


def pack(start: Term, end: Term, size: int | None = None) -> Term:
    """Make a window from its two ends; it is NULL if the start is."""
    window = call("window", window_type(start.type), start, end, monotone=MonotoneArgument())
    return replace(window, bounds=Bounds(start, end, size))


def bounds_of(term: Term) -> Bounds:
    """Start and end of a window, as they were made, or taken out of the struct."""
    return term.bounds or Bounds(_start(term), _end(term, None))


def ends_of_column(i: str, kind: pa.DataType, size: int | None) -> tuple[Expression, Expression]:
    """Start and end of a column that holds windows, of a fixed size if it is not None."""
    window = Term(nodes.Column(i, window_type(kind)))
    return Expression(_start(window).node), Expression(_end(window, size).node)


def _start(window: Term) -> Term:
    return call("window_start", window.type.field("start").type, window, monotone=MonotoneArgument())


def _end(window: Term, size: int | None) -> Term:
    """The end of a window. Windows of a fixed size end that much later than they start, others by any amount."""
    monotone = MonotoneArgument(0, shift(size or 1), more=None if size is None else 0)
    options = () if size is None else (size,)
    return call("window_end", window.type.field("end").type, window, options=options, monotone=monotone)


def with_column_bounds(term: Term, scope: object) -> Term:
    """A column with the companions that its scope knows."""
    bounds = scope.bounds(term.node.columns[0]) if is_window(term.type) and isinstance(scope, WindowScope) else None
    if bounds is None:
        return term
    kind = term.type.field("start").type
    start, end = (Term(nodes.Column(name, kind)) for name in (bounds.start, bounds.end))
    return replace(term, bounds=Bounds(start, end, bounds.size))


def with_chosen_bounds(term: Term, parts: Sequence[Term], choose: Callable[[Sequence[Term]], Term]) -> Term:
    """One of several windows (COALESCE, CASE): its ends are chosen in the same way."""
    if not is_window(term.type) or not all(part.bounds for part in parts):
        return term
    ends = [bounds_of(part) for part in parts]
    sizes = {bounds.size for bounds in ends}
    size = sizes.pop() if len(sizes) == 1 else None
    start, end = choose([bounds.start for bounds in ends]), choose([bounds.end for bounds in ends])
    return replace(term, bounds=Bounds(start, end, size))


def split_equality(compiler: Compiler, node: exp.Expr) -> list[exp.Expr]:
    """`a = b` (or `<=>`) of two windows as equalities of their starts and, where lengths may differ, ends."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return [node]
    sides = (node.this, node.expression.unnest())
    if not any(isinstance(side, exp.Column | exp.Anonymous | exp.Coalesce | exp.Case | exp.Dot) for side in sides):
        return [node]
    try:
        terms = [compiler.compile(side) for side in sides]
    except errors.PlanningError:
        return [node]  # compiling the whole condition raises the same error
    if not all(is_window(term.type) and term.bounds for term in terms) or terms[0].type != terms[1].type:
        return [node]
    sizes = {bounds_of(term).size for term in terms}
    ends = ("window_start",) if len(sizes) == 1 and None not in sizes else ("window_start", "window_end")
    return [type(node)(this=_call(name, sides[0]), expression=_call(name, sides[1])) for name in ends]


def compared(sign: str, left: Term, right: Term, compare: Callable[[str, Term, Term], Term]) -> Term:
    """Compare two windows: by start and end where both are known, otherwise as structs."""
    if left.bounds is None or right.bounds is None:
        return Term(operators.compared(left.node, sign, right.node, in_turn=True))
    ours, theirs = left.bounds, right.bounds
    ends = compare(sign, ours.start, theirs.start), compare(sign, ours.end, theirs.end)
    return Term(nodes.And([end.node for end in ends]))


def _call(name: str, inner: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[inner.copy()])
