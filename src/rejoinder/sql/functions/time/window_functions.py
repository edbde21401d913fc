"""Functions that make windows: TUMBLE, HOP, Spark's `window`, VALIDITY_WINDOW; and the two ends of a window.

A time that is NULL has the window NULL; only Spark's `window` leaves such a row out. TUMBLE is an expression. HOP puts
a row into several windows: the binder repeats the row (`logical.Expand`), and HOP finds its window by the starts that
the row was repeated for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from rejoinder import errors
from rejoinder.ir import nodes, operators
from rejoinder.ir.monotone import floor, shift
from rejoinder.ir.scalar_operation import MonotoneArgument
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.functions.time.window_times import read_length, read_time
from rejoinder.sql.functions.time.windows import bounds_of, is_window, pack
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch


@dataclass(frozen=True)
class Hop:
    """What HOP asks for: the starts of all windows of a row as a list, in which it is repeated; and their length."""

    starts: Term
    size: int


def compile_tumble(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TUMBLE(time, size): the one window of that size that a time is in."""
    return _tumbled(compiler, node, *_arguments(node, "TUMBLE(time, INTERVAL '5' MINUTE)", 2))


def compile_hop(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile HOP(time, slide, size), for which the binder has repeated the row."""
    hop = read_hop(compiler, node)
    start = compiler.repeated(hop.starts.node)
    if start is None:
        raise errors.Unsupported(
            "HOP is not supported here",
            detail=f"in `{text_of(node)}`: it repeats rows",
            hint="use it in SELECT, WHERE, GROUP BY or ON; name it in a subquery to use it elsewhere",
        )
    column = Term(nodes.Column(start, hop.starts.type.value_type))
    return pack(column, Term(operators.shifted(column.node, hop.size)), hop.size)


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
    (inner,) = _arguments(node, f"WINDOW_{name.upper()}(window)", 1)
    term = compiler.compile(inner)
    if not is_window(term.type):
        raise mismatch(
            node,
            f"{spark_types.spark_name(term.type)} is not a window",
            "a window comes from TUMBLE, HOP, VALIDITY_WINDOW or window, or is a STRUCT<start, end> of two times",
        )
    bounds = bounds_of(term)
    return bounds.start if name == "start" else bounds.end


def _tumbled(compiler: Compiler, node: exp.Expr, argument: exp.Expr, size: exp.Expr) -> Term:
    time = read_time(compiler, argument, node)
    size_ = read_length(size, node, time.type)
    start_steps = floor(size_)
    start = call("tumble_start", time.type, time, options=(size_,), monotone=MonotoneArgument(0, start_steps))
    end_steps = (*start_steps, *shift(size_))
    end = call("tumble_end", time.type, time, options=(size_,), monotone=MonotoneArgument(0, end_steps))
    return pack(start, end, size_)


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
    is_spark = _called(node) == "window"
    if is_spark:
        time, size, slide = _arguments(node, "window(time, '10 minutes', '5 minutes')", 3)
    else:
        time, slide, size = _arguments(node, "HOP(time, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", 3)
    term = read_time(compiler, time, node)
    length, step = (read_length(part, node, term.type) for part in (size, slide))
    if step > length:
        raise errors.InvalidSql(
            f"the windows of `{text_of(node)}` would leave gaps",
            detail=f"a slide of {text_of(slide)} and a size of {text_of(size)}",
            hint="HOP(time, slide, size) takes a slide that is not longer than the size"
            if not is_spark
            else "window(time, size, slide) takes a slide that is not longer than the size",
        )
    monotone = MonotoneArgument(0, floor(step, plus=step - length), more=None)
    options = (length, step, 0 if is_spark else 1)
    starts = call("hop_starts", spark_types.array_of(term.type), term, options=options, monotone=monotone)
    return Hop(starts, length)


def _called(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _is_hop(node: exp.Expr) -> bool:
    name = _called(node)
    return name == "hop" or (name == "window" and len(node.expressions) == 3)


def _arguments(node: exp.Expr, form: str, count: int) -> list[exp.Expr]:
    values = list(node.expressions)
    if len(values) != count:
        raise errors.InvalidSql(
            f"`{node.name}` takes {count} argument{'s' if count > 1 else ''}, not {len(values)}",
            detail=f"in `{text_of(node)}`",
            hint=f"write {form}",
        )
    return values


_TEN = "TIMESTAMP '2024-02-29 10:11:12'"

FUNCTIONS = (
    ScalarFunction(
        "tumble(time, size)",
        "The window of a size that a time is in; tumble_start and tumble_end are its ends.",
        f"tumble({_TEN}, INTERVAL 1 HOUR).start = TIMESTAMP '2024-02-29 10:00:00'",
        aliases=("tumble_start", "tumble_end"),
        form=compile_tumble,
    ),
    ScalarFunction(
        "hop(time, slide, size)",
        "The windows of a size, one every `slide`, that a time is in: the row is repeated for each of them.",
        "",
        aliases=("hop_start", "hop_end"),
        form=compile_hop,
    ),
    ScalarFunction(
        "window(time, '5 minutes')",
        "Spark's windows, tumbling, or sliding with a third argument; a row whose time is NULL is left out.",
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
        "validity_window(time)",
        "In GROUP BY: the window from a time to the next later time of the same keys.",
        "",
        aliases=("validity",),
        form=compile_validity,
    ),
)
