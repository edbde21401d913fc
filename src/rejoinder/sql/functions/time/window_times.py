"""What windows are cut from: timestamps, counted in microseconds, or integers, counted in a unit of their own.

A window of integers is one of two BIGINTs, whatever integer the time is: the last window of an INT ends beyond it. An
integer of 2^62 or more is taken for no time, as everywhere, and one below -2^62 likewise: so no end is beyond a BIGINT.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.kernels.duckdb.functions.time.windowing_functions import MAX_COUNT
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.flow_zone import is_local
from rejoinder.sql.types.interval_literals import MICROS, interval_of
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch


def read_time(compiler: Compiler, argument: exp.Expr, node: exp.Expr) -> Term:
    """Compile the time of a window: a timestamp, which a DATE is made to, or a BIGINT."""
    term = compiler.compile(argument)
    if term.type == spark_types.DATE:
        return cast(term, spark_types.TIMESTAMP, node)
    if spark_types.is_integer(term.type) and term.type != spark_types.BIGINT:
        return cast(term, spark_types.BIGINT, node)
    if term.type == spark_types.BIGINT:
        return call("window_time", term.type, term, monotone=MonotoneArgument())
    if term.type not in (spark_types.TIMESTAMP, spark_types.TIMESTAMP_NTZ):
        why = f"a window is of a time, and `{text_of(argument)}` is {spark_types.spark_name(term.type)}"
        raise mismatch(node, why, "CAST it to TIMESTAMP, or to BIGINT")
    return term


def read_length(argument: exp.Expr, node: exp.Expr, kind: pa.DataType, what: str = "a window") -> int:
    """Read the length of a window, a slide or a gap, as times of a type are counted."""
    length = _count(argument, node) if spark_types.is_integer(kind) else _micros(argument, node)
    if length <= 0:
        raise errors.InvalidSql(
            f"{what} must be longer than nothing",
            detail=f"in `{text_of(node)}`",
            hint="as in TUMBLE(t, 10)" if spark_types.is_integer(kind) else "as in INTERVAL '5' MINUTE",
        )
    return length


def read_offset(argument: exp.Expr | None, node: exp.Expr, kind: pa.DataType, slide: int) -> int:
    """Read how far the start of windows is from 1970, or from 0. Raises `InvalidSql` unless it is less than a slide."""
    if argument is None:
        return 0
    offset = _count(argument, node) if spark_types.is_integer(kind) else _micros(argument, node)
    if abs(offset) >= slide:
        raise errors.InvalidSql(
            "the offset of windows must be less than the distance of their starts",
            detail=f"in `{text_of(node)}`",
            hint="take the rest: windows begin at all multiples of the distance from the offset",
        )
    return offset


def follows_calendar(time: Term, *lengths: int) -> bool:
    """Whether windows are of whole days on the calendar of the flow's zone, whatever their length in hours."""
    return is_local() and time.type == spark_types.TIMESTAMP and not any(length % MICROS["DAY"] for length in lengths)


def _count(argument: exp.Expr, node: exp.Expr) -> int:
    sign, count = (-1, argument.this) if isinstance(argument, exp.Neg) else (1, argument)
    if not (isinstance(count, exp.Literal) and not count.is_string and count.this.isdigit()):
        time = text_of(node.expressions[0])
        raise errors.InvalidSql(
            "the length of a window of integers must be an integer, and the same for all rows",
            detail=f"in `{text_of(node)}`: `{time}` is an integer",
            hint=f"as in TUMBLE({time}, 10); if `{time}` counts seconds, CAST({time} AS TIMESTAMP) is a time",
        )
    if int(count.this) > MAX_COUNT:
        raise errors.InvalidSql(
            "a window must be shorter than 2^62", detail=f"in `{text_of(node)}`", hint="as in TUMBLE(t, 10)"
        )
    return sign * int(count.this)


def _micros(argument: exp.Expr, node: exp.Expr) -> int:
    if isinstance(argument, exp.Literal) and argument.is_string:
        words = argument.this.strip()
        bare = words[len("interval ") :] if words.lower().startswith("interval ") else words
        argument = exp.Interval(this=exp.Literal.string(bare))
    interval = interval_of(argument)
    if interval is None:
        raise errors.InvalidSql(
            "the length of a window must be an interval, and the same for all rows",
            detail=f"in `{text_of(node)}`",
            hint="write it as INTERVAL '5' MINUTE",
        )
    if interval.months:
        raise errors.Unsupported(
            "a window of months or years is not supported",
            detail=f"in `{text_of(node)}`: months have different lengths",
            hint="use a number of days, or GROUP BY date_trunc('MONTH', time)",
        )
    return interval.micros
