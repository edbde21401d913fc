"""Windows of time: TUMBLE, HOP and CUMULATE, Spark's `window`, sessions, and the two ends of a window.

A window is a `STRUCT<start, end>`, half-open and aligned to 1970-01-01 in UTC, as Spark's are, or to 0 if it is one of
integers. Whoever made it knows its ends as terms of their own (`Bounds`), so that `WINDOW_START(w)` and `w.start` need
no struct, and the equality of two windows is the equality of their starts, which a join can look up. A time that is
NULL has the window NULL; only Spark's `window` leaves such a row out.

TUMBLE is an expression. HOP and CUMULATE put a row into several windows: the binder repeats the row
(`logical.Expand`), and here its window is found by the starts or ends that the row was repeated for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir import nodes
from rejoinder.ir.expression import Expression
from rejoinder.ir.monotone import floor, shift
from rejoinder.sql.functions.time.window_times import read_length, read_time, ticks_of
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Bounds, Compiler, Term, build, combine, mismatch, quote_text, rising


@dataclass(frozen=True)
class ColumnBounds:
    """The identifiers of the columns that hold start and end of a window column, and its length if that is fixed."""

    start: str
    end: str
    size: int | None = None


@runtime_checkable
class WindowScope(Protocol):
    """A scope that knows of windows: those of its columns, and those that rows were repeated for."""

    def bounds(self, column: str) -> ColumnBounds | None:
        """The companions of a window column."""
        ...

    def repeated(self, starts: nodes.Node) -> str | None:
        """The column that holds the start of each window, by the list of starts."""
        ...


@dataclass(frozen=True)
class Hop:
    """What HOP asks for: the starts of all windows of a row as a list, in which it is repeated; and their length.

    With `cumulates`, the windows start every `size` and the list holds their ends.
    """

    starts: Term
    size: int
    cumulates: bool = False

    def window(self, element: Term) -> Term:
        """The window of an element of the list."""
        if not self.cumulates:
            return pack(element, _later(element, self.size), self.size)
        ticks = ticks_of(element.type)
        before = replace(ticks, number=f"({ticks.number} - 1)")
        start = build(before.of(before.last_start(self.size)), element.type, element)
        return pack(rising(start, element, *floor(self.size, plus=-1)), element)


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
    made = build("CASE WHEN {0} IS NOT NULL THEN {'start': {0}, 'end': {1}} END", window_type(start.type), start, end)
    return rising(replace(made, bounds=Bounds(start, end, size)), start)


def bounds_of(term: Term) -> Bounds:
    """Start and end of a window, as they were made, or taken out of the struct."""
    if term.bounds is not None:
        return term.bounds
    kind = term.type.field("start").type
    start, end = (build(f"struct_extract({{0}}, {quote_text(name)})", kind, term) for name in ("start", "end"))
    return Bounds(rising(start, term), rising(end, term, *shift(1), more=None))


def ends_of_column(i: str, kind: pa.DataType, size: int | None) -> tuple[Expression, Expression]:
    """Start and end of a column that holds windows of a length, if that is fixed."""
    window = Term(nodes.Column(i, window_type(kind)))
    start, end = (build(f"struct_extract({{0}}, '{name}')", kind, window) for name in ("start", "end"))
    end = rising(end, window, *shift(size or 1), more=None if size is None else 0)
    return Expression(rising(start, window).node), Expression(end.node)


def with_column_bounds(term: Term, scope: object) -> Term:
    """A column with the companions that its scope knows."""
    found = scope.bounds(term.node.columns[0]) if is_window(term.type) and isinstance(scope, WindowScope) else None
    if found is None:
        return term
    kind = term.type.field("start").type
    start, end = (Term(nodes.Column(name, kind)) for name in (found.start, found.end))
    return replace(term, bounds=Bounds(start, end, found.size))


def with_chosen_bounds(term: Term, parts: Sequence[Term], choose: Callable[[Sequence[Term]], Term]) -> Term:
    """One of several windows (COALESCE, CASE): its ends are chosen in the same way."""
    if not is_window(term.type) or not all(part.bounds for part in parts):
        return term
    ends = [bounds_of(part) for part in parts]
    sizes = {one.size for one in ends}
    size = sizes.pop() if len(sizes) == 1 else None
    start, end = choose([one.start for one in ends]), choose([one.end for one in ends])
    return replace(term, bounds=Bounds(start, end, size))


# -- functions ---------------------------------------------------------------------------------------------------------


def compile_tumble(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TUMBLE(time, size): the one window of that size that a time is in."""
    return _tumbled(compiler, node, *_arguments(node, "TUMBLE(time, INTERVAL '5' MINUTE)", 2))


def compile_hop(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile HOP(time, slide, size) or CUMULATE(time, step, size), for which the binder has repeated the row."""
    hop = read_hop(compiler, node)
    element = compiler.repeated(hop.starts.node)
    if element is None:
        name = _called(node).upper()
        raise errors.Unsupported(
            f"{name} is not supported here",
            detail=f"in `{text_of(node)}`: it repeats rows",
            hint="use it in SELECT, WHERE, GROUP BY or ON; name it in a subquery to use it elsewhere",
        )
    return hop.window(Term(nodes.Column(element, hop.starts.type.value_type)))


def compile_window(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile Spark's `window(time, size)` and `window(time, size, slide)`."""
    if _is_hop(node):
        return compile_hop(compiler, node)
    return _tumbled(compiler, node, *_arguments(node, "window(time, '5 minutes')", 2))


def compile_start(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile WINDOW_START."""
    return _end_of(compiler, node, "start")


def compile_end(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile WINDOW_END."""
    return _end_of(compiler, node, "end")


def compile_window_time(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile Spark's `window_time`: the last time that is in a window, just before its end."""
    end = _end_of(compiler, node, "end")
    if not pa.types.is_timestamp(end.type):
        why = f"`{text_of(node)}` is of a window of integers"
        raise mismatch(node, why, "window_end(w) - 1 is its last integer")
    ticks = ticks_of(end.type)
    return rising(build(ticks.of(f"{ticks.number} - 1"), end.type, end), end, *shift(-1))


def compile_session(compiler: Compiler, node: exp.Expr) -> Term:
    """Refuse SESSION where it is not a grouping expression: what it is depends on other rows."""
    read_session(compiler, node)
    raise errors.InvalidSql(
        f"`{text_of(node)}` is not among the grouping expressions",
        detail="a session lasts until no row of the same keys follows within the gap",
        hint=f"add it to GROUP BY, as in GROUP BY key, {text_of(node)}",
    )


def is_session(node: exp.Expr) -> bool:
    """Say whether a node is a call of SESSION, or of Spark's `session_window`."""
    return _called(node) in ("session_window", "session")


def read_session(compiler: Compiler, node: exp.Expr) -> tuple[Term, int]:
    """Compile the time of a session, and read its gap."""
    name = _called(node)
    time, gap = _arguments(node, f"{name}(time, INTERVAL '5' MINUTE)", 2)
    if any(True for _ in gap.find_all(exp.Column)):
        raise errors.Unsupported(
            "a session gap that depends on the row is not supported",
            detail=f"in `{text_of(node)}`",
            hint="use one gap for all rows: INTERVAL '5' MINUTE",
        )
    term = read_time(compiler, time, node)
    return term, read_length(gap, node, term.type, "a session gap")


def compile_validity(compiler: Compiler, node: exp.Expr) -> Term:
    """Refuse VALIDITY_WINDOW where it is no grouping expression: what it is depends on other rows."""
    read_validity(compiler, node)
    raise errors.InvalidSql(
        f"`{text_of(node)}` is not among the grouping expressions",
        detail="a validity window lasts until the next later time of the same keys",
        hint=f"add it to GROUP BY, as in GROUP BY key, {text_of(node)}",
    )


def is_validity(node: exp.Expr) -> bool:
    """Say whether a node is a call of VALIDITY_WINDOW, or of VALIDITY, its other name."""
    return _called(node) in ("validity_window", "validity")


def read_validity(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile the time of a call of VALIDITY_WINDOW: the start of the window."""
    (time,) = _arguments(node, "VALIDITY_WINDOW(time)", 1)
    term = read_time(compiler, time, node)
    if spark_types.is_integer(term.type):
        why = f"a validity window is of a time on the clock, and `{text_of(time)}` is an integer"
        raise mismatch(node, why, f"if it counts seconds, CAST({text_of(time)} AS TIMESTAMP) is one")
    return term


def _end_of(compiler: Compiler, node: exp.Expr, name: str) -> Term:
    (inner,) = _arguments(node, f"{node.name.upper()}(window)", 1)
    term = compiler.compile(inner)
    if not is_window(term.type):
        raise mismatch(
            node,
            f"{spark_types.spark_name(term.type)} is not a window",
            "a window comes from TUMBLE, HOP, CUMULATE, SESSION, VALIDITY_WINDOW or window, or is a STRUCT<start, end>",
        )
    bounds = bounds_of(term)
    return bounds.start if name == "start" else bounds.end


def _tumbled(compiler: Compiler, node: exp.Expr, argument: exp.Expr, size: exp.Expr) -> Term:
    time = read_time(compiler, argument, node)
    length, ticks = read_length(size, node, time.type), ticks_of(time.type)
    number = ticks.last_start(length)
    start = rising(build(ticks.of(number), time.type, time), time, *floor(length))
    end = build(ticks.of(f"{number} + {length}"), time.type, time)
    return pack(start, rising(end, time, *floor(length), *shift(length)), length)


def _later(start: Term, size: int) -> Term:
    ticks = ticks_of(start.type)
    return rising(build(ticks.of(f"{ticks.number} + {size}"), start.type, start), start, *shift(size))


# -- hops: rows that are repeated --------------------------------------------------------------------------------------


def hops_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The calls of HOP in an expression, without those of queries inside it."""
    for found in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if _is_hop(found):
            yield found


def times_that_must_be_known(node: exp.Expr) -> Iterator[exp.Expr]:
    """The times of Spark's `window` in an expression: a row in which one is NULL is left out there."""
    for found in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if _called(found) == "window" and not _is_hop(found) and found.expressions:
            yield found.expressions[0]


def read_hop(compiler: Compiler, node: exp.Expr) -> Hop:
    """Compile the starts of all windows that a call of HOP, or of `window` with a slide, puts a row into."""
    is_spark, cumulates = _called(node) == "window", _called(node) == "cumulate"
    if cumulates:
        time, slide, size = _arguments(node, "CUMULATE(time, INTERVAL '1' HOUR, INTERVAL '1' DAY)", 3)
    elif is_spark:
        time, size, slide = _arguments(node, "window(time, '10 minutes', '5 minutes')", 3)
    else:
        time, slide, size = _arguments(node, "HOP(time, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", 3)
    term = read_time(compiler, time, node)
    ticks = ticks_of(term.type)
    length, step = (read_length(each, node, term.type) for each in (size, slide))
    if cumulates:
        return _cumulated(term, length, step, node)
    if step > length:
        raise errors.InvalidSql(
            f"the windows of `{text_of(node)}` would leave gaps",
            detail=f"a slide of {text_of(slide)} and a size of {text_of(size)}",
            hint="HOP(time, slide, size) takes a slide that is not longer than the size"
            if not is_spark
            else "window(time, size, slide) takes a slide that is not longer than the size",
        )
    numbers = f"range({ticks.last_start(step)}, {ticks.number} - {length}, -{step})"
    starts = f"list_transform({numbers}, lambda number: {ticks.of('number')})"
    unknown = "[]" if is_spark else "[NULL]"
    kind = spark_types.array_of(term.type)
    made = build(f"CASE WHEN {{0}} IS NULL THEN {unknown} ELSE {starts} END", kind, term)
    return Hop(rising(made, term, *floor(step, plus=step - length), more=None), length)


def _cumulated(time: Term, size: int, step: int, node: exp.Expr) -> Hop:
    """The ends of the windows of a time: they start with a multiple of the size and grow by the step."""
    if size % step:
        raise errors.InvalidSql(
            f"the size of `{text_of(node)}` is not a multiple of its step",
            detail="the last window of a size would end too early",
            hint="CUMULATE(time, step, size) takes a size such as ten times the step",
        )
    ticks = ticks_of(time.type)
    numbers = f"range({ticks.last_start(step)} + {step}, {ticks.last_start(size)} + {size} + 1, {step})"
    ends = f"list_transform({numbers}, lambda number: {ticks.of('number')})"
    made = build(f"CASE WHEN {{0}} IS NULL THEN [NULL] ELSE {ends} END", spark_types.array_of(time.type), time)
    return Hop(rising(made, time, *floor(step, plus=step), more=None), size, cumulates=True)


def _called(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _is_hop(node: exp.Expr) -> bool:
    name = _called(node)
    return name in ("hop", "cumulate") or (name == "window" and len(node.expressions) == 3)


# -- equality ----------------------------------------------------------------------------------------------------------


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
        return [node]  # the condition as a whole says what is wrong with it
    if not all(is_window(term.type) and term.bounds for term in terms) or terms[0].type != terms[1].type:
        return [node]
    sizes = {bounds_of(term).size for term in terms}
    ends = ("window_start",) if len(sizes) == 1 and None not in sizes else ("window_start", "window_end")
    return [type(node)(this=_call(name, sides[0]), expression=_call(name, sides[1])) for name in ends]


def compared(sign: str, left: Term, right: Term, compare: Callable[[str, Term, Term], Term]) -> Term:
    """Compare two windows: by start and end where both are known, otherwise as structs."""
    if left.bounds is None or right.bounds is None:
        return build(f"({{0}} {sign} {{1}})", spark_types.BOOLEAN, left, right, name=sign)
    one, two = left.bounds, right.bounds
    first, second = compare(sign, one.start, two.start), compare(sign, one.end, two.end)
    return combine("({0} AND {1})", spark_types.BOOLEAN, first, second)


def _call(name: str, inner: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[inner.copy()])


# -- arguments ---------------------------------------------------------------------------------------------------------


def _arguments(node: exp.Expr, form: str, count: int) -> list[exp.Expr]:
    given = list(node.expressions)
    if len(given) != count:
        raise errors.InvalidSql(
            f"`{node.name}` takes {count} argument{'s' if count > 1 else ''}, not {len(given)}",
            detail=f"in `{text_of(node)}`",
            hint=f"write {form}",
        )
    return given


NAMED = {
    "tumble": compile_tumble,
    "hop": compile_hop,
    "window": compile_window,
    "window_start": compile_start,
    "window_end": compile_end,
    "window_time": compile_window_time,
    "cumulate": compile_hop,
    "session_window": compile_session,
    "session": compile_session,
    "validity_window": compile_validity,
    "validity": compile_validity,
}
