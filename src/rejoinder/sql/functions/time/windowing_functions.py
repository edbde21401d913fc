"""Functions that make windows: TUMBLE, HOP, CUMULATE, Spark's `window`, sessions, VALIDITY_WINDOW; and their ends.

A time that is NULL has the window NULL; only Spark's `window` leaves such a row out. TUMBLE is an expression. HOP and
CUMULATE put a row into several windows: the binder repeats the row (`logical.Expand`), and its window is found by the
starts or ends that the row was repeated for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.monotone import floor, shift
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.functions.time.window_times import follows_calendar, read_length, read_offset, read_time
from rejoinder.sql.functions.time.windows import bounds_of, is_window, pack
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.flow_zone import instant, local, spread
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch


@dataclass(frozen=True)
class Hop:
    """What HOP asks for: the starts of all windows of a row as a list, in which it is repeated; and their length.

    With `cumulates`, the windows start every `size` and the list holds their ends.
    """

    starts: Term
    size: int
    cumulates: bool = False
    is_local: bool = False
    """Whether the list holds local times of the flow's zone."""

    def window(self, element: Term) -> Term:
        """The window of an element of the list."""
        if not self.cumulates:
            end = Term(operators.shifted(element.node, self.size))
            return pack(instant(element), instant(end)) if self.is_local else pack(element, end, self.size)
        last = Term(operators.shifted(element.node, -1))
        monotone = MonotoneArgument(0, floor(self.size))
        start = call("tumble_start", element.type, last, options=(self.size,), monotone=monotone)
        return pack(instant(start), instant(element)) if self.is_local else pack(start, element)


def compile_tumble(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TUMBLE(time, size, offset): the one window of that size that a time is in."""
    return _tumbled(compiler, node, *_arguments(node, "TUMBLE(time, INTERVAL '5' MINUTE)", 2, 3), of_calendar=True)


def compile_hop(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile HOP(time, slide, size, offset) or CUMULATE(time, step, size): the binder has repeated the row."""
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
    """Compile Spark's `window(time, size)` and `window(time, size, slide, start)`."""
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
    return Term(operators.shifted(end.node, -1))


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
            hint="use one gap for all rows: INTERVAL '5' MINUTE; or find the rows that begin a session with window "
            "functions: a row does if max(time + gap) OVER (PARTITION BY key ORDER BY time ROWS BETWEEN UNBOUNDED "
            "PRECEDING AND 1 PRECEDING) is NULL or before its time",
        )
    term = read_time(compiler, time, node)
    return term, read_length(gap, node, term.type, "a session gap")


def compile_validity(compiler: Compiler, node: exp.Expr) -> Term:
    """Refuse VALIDITY_WINDOW where it is not a grouping expression: its end depends on other rows."""
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


def _tumbled(
    compiler: Compiler,
    node: exp.Expr,
    argument: exp.Expr,
    length: exp.Expr,
    start_at: exp.Expr | None = None,
    *,
    of_calendar: bool = False,
) -> Term:
    time = read_time(compiler, argument, node)
    size = read_length(length, node, time.type)
    offset = read_offset(start_at, node, time.type, size)
    steps = (*floor(size, plus=-offset % size), *shift(-(-offset % size)))
    starts, ends = MonotoneArgument(0, steps), MonotoneArgument(0, (*steps, *shift(size)))
    options = (size, offset) if offset else (size,)
    clock = local(time) if of_calendar and follows_calendar(time, size) else time
    start = call("tumble_start", clock.type, clock, options=options, monotone=starts)
    end = call("tumble_end", clock.type, clock, options=options, monotone=ends)
    if clock is time:
        return pack(start, end, size)
    longest = size + spread()
    return pack(instant(start, time, (-longest, 0)), instant(end, time, (1, longest)))


def hops_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The calls of HOP in an expression, without those of queries inside it."""
    for part in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if _is_hop(part):
            yield part


def times_that_must_be_known(node: exp.Expr) -> Iterator[exp.Expr]:
    """The times of Spark's `window` in an expression: a row in which one is NULL is left out there."""
    for part in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node):
        if _called(part) == "window" and not _is_hop(part) and part.expressions:
            yield part.expressions[0]


def read_hop(compiler: Compiler, node: exp.Expr) -> Hop:
    """Compile the starts of all windows that a call of HOP, or of `window` with a slide, puts a row into."""
    is_spark, cumulates = _called(node) == "window", _called(node) == "cumulate"
    start_at: list[exp.Expr] = []
    if cumulates:
        time, slide, size = _arguments(node, "CUMULATE(time, INTERVAL '1' HOUR, INTERVAL '1' DAY)", 3)
    elif is_spark:
        time, size, slide, *start_at = _arguments(node, "window(time, '10 minutes', '5 minutes')", 3, 4)
    else:
        time, slide, size, *start_at = _arguments(node, "HOP(time, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", 3, 4)
    term = read_time(compiler, time, node)
    length, step = (read_length(part, node, term.type) for part in (size, slide))
    is_local = not is_spark and follows_calendar(term, length, step)
    if cumulates and not is_local and follows_calendar(term, length):
        raise errors.Unsupported(
            "windows of days that grow by parts of a day are not supported in a time zone",
            detail=f"in `{text_of(node)}`: where clocks change, days do not consist of equal parts",
            hint="use a step of whole days, or a size of hours",
        )
    term = local(term) if is_local else term
    if cumulates:
        return replace(_cumulated(term, length, step, node), is_local=is_local)
    if step > length:
        raise errors.InvalidSql(
            f"the windows of `{text_of(node)}` would leave gaps",
            detail=f"a slide of {text_of(slide)} and a size of {text_of(size)}",
            hint="HOP(time, slide, size) takes a slide that is not longer than the size"
            if not is_spark
            else "window(time, size, slide) takes a slide that is not longer than the size",
        )
    offset = read_offset(start_at[0] if start_at else None, node, term.type, step)
    plus = -offset % step
    monotone = MonotoneArgument(0, (*floor(step, plus=step - length + plus), *shift(-plus)), more=None)
    options = (length, step, 0 if is_spark else 1, *((offset,) if offset else ()))
    starts = call("hop_starts", spark_types.array_of(term.type), term, options=options, monotone=monotone)
    return Hop(starts, length, is_local=is_local)


def _cumulated(time: Term, size: int, step: int, node: exp.Expr) -> Hop:
    """The ends of the windows of a time: they start with a multiple of the size and grow by the step."""
    if size % step:
        raise errors.InvalidSql(
            f"the size of `{text_of(node)}` is not a multiple of its step",
            detail="the last window of a size would end too early",
            hint="CUMULATE(time, step, size) takes a size such as ten times the step",
        )
    monotone = MonotoneArgument(0, floor(step, plus=step), more=None)
    ends = call("cumulate_ends", spark_types.array_of(time.type), time, options=(size, step), monotone=monotone)
    return Hop(ends, size, cumulates=True)


def _called(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _is_hop(node: exp.Expr) -> bool:
    name = _called(node)
    return name in ("hop", "cumulate") or (name == "window" and len(node.expressions) in (3, 4))


def _arguments(node: exp.Expr, form: str, *counts: int) -> list[exp.Expr]:
    values = list(node.expressions)
    if len(values) not in counts:
        wanted = " or ".join(map(str, counts))
        raise errors.InvalidSql(
            f"`{node.name}` takes {wanted} argument{'s' if counts != (1,) else ''}, not {len(values)}",
            detail=f"in `{text_of(node)}`",
            hint=f"write {form}",
        )
    return values


_TEN = "TIMESTAMP '2024-02-29 10:11:12'"

FUNCTIONS = (
    ScalarFunction(
        "tumble(time, size, offset)",
        "The window of a size that a time is in, begun at an offset; tumble_start and tumble_end are its ends.",
        f"tumble({_TEN}, INTERVAL 1 HOUR).start = TIMESTAMP '2024-02-29 10:00:00'",
        aliases=("tumble_start", "tumble_end"),
        form=compile_tumble,
    ),
    ScalarFunction(
        "hop(time, slide, size, offset)",
        "The windows of a size, one every `slide`, that a time is in: the row is repeated for each of them.",
        "",
        aliases=("hop_start", "hop_end"),
        form=compile_hop,
    ),
    ScalarFunction(
        "window(time, '5 minutes')",
        "Spark's windows, with a slide and a start as further arguments; a row whose time is NULL is left out.",
        f"window({_TEN}, '1 hour').end = TIMESTAMP '2024-02-29 11:00:00'",
        form=compile_window,
    ),
    ScalarFunction(
        "window_start(w)",
        "The start of a window.",
        f"window_start(tumble({_TEN}, INTERVAL 1 HOUR)) = TIMESTAMP '2024-02-29 10:00:00'",
        form=compile_start,
    ),
    ScalarFunction(
        "window_end(w)",
        "The end of a window, which is not part of it.",
        f"window_end(tumble({_TEN}, INTERVAL 1 HOUR)) = TIMESTAMP '2024-02-29 11:00:00'",
        form=compile_end,
    ),
    ScalarFunction(
        "window_time(w)",
        "The last time in a window, a microsecond before its end.",
        f"window_time(tumble({_TEN}, INTERVAL 1 HOUR)) = TIMESTAMP '2024-02-29 10:59:59.999999'",
        form=compile_window_time,
    ),
    ScalarFunction(
        "cumulate(time, step, size)",
        "The windows that begin every `size`, grow by the step and contain a time: the row is repeated for each.",
        "",
        form=compile_hop,
    ),
    ScalarFunction(
        "session(time, gap)",
        "In GROUP BY: the session of a row, in which no row comes more than the gap after the one before it.",
        "",
        form=compile_session,
    ),
    ScalarFunction(
        "session_window(time, '5 minutes')",
        "Spark's name for `session`.",
        "",
        form=compile_session,
    ),
    ScalarFunction(
        "validity_window(time)",
        "In GROUP BY: the window from a time to the next later time of the same keys.",
        "",
        aliases=("validity",),
        form=compile_validity,
    ),
)
