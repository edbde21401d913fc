"""More functions on dates and timestamps: their names, months between them, and times made of parts."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.time.time_functions import compile_extract, date_argument, time_argument
from rejoinder.sql.functions.time.zone_functions import instant, zone_argument
from rejoinder.sql.types import flow_zone, spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.flow_zone import local
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_SECONDS = pa.decimal128(16, 6)


def compile_date_part(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_PART('unit', time): EXTRACT(unit FROM time)."""
    unit, value = arguments(node, 2)
    if not isinstance(unit, exp.Literal) or not unit.is_string:
        raise refuse(node, f"`{node.name}` takes a literal unit only", "as in date_part('year', ts)")
    return compile_extract(compiler, exp.Extract(this=exp.var(unit.this), expression=value.copy()))


def compile_next_day(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NEXT_DAY with a literal name of a day: the whole, or its first two or three letters."""
    value, day = arguments(node, 2)
    name = day.this.strip().upper() if isinstance(day, exp.Literal) and day.is_string else ""
    numbers = [number for number, full in enumerate(_DAYS, 1) if name in (full, full[:3], full[:2])]
    if not numbers:
        raise refuse(node, "next_day takes the literal name of a day", "as in next_day(date, 'MONDAY')")
    date = date_argument(compiler, value, node)
    return call("next_day", spark_types.DATE, date, options=(numbers[0],), nulls="propagated")


def compile_months_between(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MONTHS_BETWEEN, rounded to eight digits unless a third argument is FALSE."""
    first, second, *rest = arguments(node, 2, 3)
    is_rounded = compiler.compile(rest[0]).value if rest else True
    if not isinstance(is_rounded, bool):
        raise refuse(node, "months_between takes a literal TRUE or FALSE only")
    times = [coerce(time_argument(compiler, part, node), spark_types.TIMESTAMP, node) for part in (first, second)]
    clocks = [_since_midnight(time) for time in times] if flow_zone.is_local() else []
    months = call("months_between", spark_types.DOUBLE, *map(local, times), *clocks, nulls="propagated")
    return call("round", spark_types.DOUBLE, months, options=(8,)) if is_rounded else months


def _since_midnight(time: Term) -> Term:
    """The microseconds since the local day of a time began."""
    midnight = flow_zone.instant(call("date_trunc", spark_types.TIMESTAMP_NTZ, local(time), options=("day",)))
    return call("time_difference", spark_types.DAY_TIME, time, midnight, nulls="propagated")


def _compile_made(kind: pa.DataType, *, is_try: bool) -> NodeCompiler:
    """Make the compiler of MAKE_TIMESTAMP and its like, of six numbers, and of a zone for a TIMESTAMP."""

    def compile_made(compiler: Compiler, node: exp.Expr) -> Term:
        counts = (6, 7) if kind == spark_types.TIMESTAMP else (6,)
        given = arguments(node, *counts)
        terms = [compiler.compile(part) for part in given[:6]]
        if not all(spark_types.is_numeric(term.type) or term.is_null for term in terms):
            raise refuse(node, f"`{node.name}` takes numbers only", "CAST them")
        parts = [cast(term, spark_types.INT, node) for term in terms[:5]]
        seconds = cast(terms[5], _SECONDS, node)
        name = "try_make_timestamp" if is_try else "make_timestamp"
        made = call(name, kind, *parts, seconds, can_fail=True)
        if len(given) == 7:
            return instant(made, zone_argument(compiler, given[6], node), kind)
        return flow_zone.instant(made) if kind == spark_types.TIMESTAMP and flow_zone.is_local() else made

    return compile_made


def _compile_cast(kind: pa.DataType, *, is_try: bool) -> NodeCompiler:
    """Make the compiler of TO_TIMESTAMP_NTZ and its like without a format, which is a cast."""

    def compile_cast(compiler: Compiler, node: exp.Expr) -> Term:
        (value,) = arguments(node, 1)
        term = compiler.compile(value)
        if not (spark_types.is_datetime(term.type) or term.type == spark_types.STRING or term.is_null):
            raise mismatch(node, f"a time or a text is needed, not {spark_types.spark_name(term.type)}")
        return cast(term, kind, node, is_try=is_try and term.type == spark_types.STRING)

    return compile_cast


_MADE = "make_timestamp(2024, 2, 29, 10, 11, 12.5) = TIMESTAMP '2024-02-29 10:11:12.5'"
_MADE_DOC = "The time of a year, month, day, hour, minute and second; numbers that are none fail"
_NTZ = "make_timestamp_ntz(2024, 2, 29, 10, 11, 12) = TIMESTAMP_NTZ '2024-02-29 10:11:12'"

FUNCTIONS = (
    ScalarFunction(
        "date_part('unit', time)", "A part of a date or a time, like EXTRACT.",
        "date_part('year', DATE '2024-02-29') = 2024", aliases=("datepart",), form=compile_date_part,
    ),
    ScalarFunction(
        "dayname(date)", "The day of the week, as in Mon.", "dayname(DATE '2024-02-29') = 'Thu'", (date_argument,),
        spark_types.STRING, nulls="propagated",
    ),
    ScalarFunction(
        "make_timestamp(y, m, d, h, n, s, zone)", f"{_MADE_DOC}.", _MADE, aliases=("make_timestamp_ltz",),
        form=_compile_made(spark_types.TIMESTAMP, is_try=False),
    ),
    ScalarFunction(
        "make_timestamp_ntz(y, m, d, h, n, s)", f"{_MADE_DOC}.", _NTZ,
        form=_compile_made(spark_types.TIMESTAMP_NTZ, is_try=False),
    ),
    ScalarFunction(
        "monthname(date)", "The month, as in Jan.", "monthname(DATE '2024-02-29') = 'Feb'", (date_argument,),
        spark_types.STRING, nulls="propagated",
    ),
    ScalarFunction(
        "months_between(time, start)", "The months from one time to another, with the days as a fraction of 31.",
        "months_between(DATE '2024-03-31', DATE '2024-02-29') = 1", form=compile_months_between,
    ),
    ScalarFunction(
        "next_day(date, 'MONDAY')", "The first such day after a date.",
        "next_day(DATE '2024-02-29', 'MON') = DATE '2024-03-04'", form=compile_next_day,
    ),
    ScalarFunction(
        "to_timestamp_ltz(x)", "A text or a time as a TIMESTAMP.",
        "to_timestamp_ltz('2024-02-29') = TIMESTAMP '2024-02-29 00:00:00'",
        form=_compile_cast(spark_types.TIMESTAMP, is_try=False),
    ),
    ScalarFunction(
        "to_timestamp_ntz(x)", "A text or a time as a TIMESTAMP_NTZ.",
        "to_timestamp_ntz('2024-02-29') = TIMESTAMP_NTZ '2024-02-29 00:00:00'",
        form=_compile_cast(spark_types.TIMESTAMP_NTZ, is_try=False),
    ),
    ScalarFunction(
        "try_make_timestamp(y, m, d, h, n, s)", "The same, NULL if the numbers do not make a time.",
        "try_make_timestamp(2024, 2, 30, 0, 0, 0) IS NULL", aliases=("try_make_timestamp_ltz",),
        form=_compile_made(spark_types.TIMESTAMP, is_try=True),
    ),
    ScalarFunction(
        "try_make_timestamp_ntz(y, m, d, h, n, s)", "The same, NULL if the numbers do not make a time.",
        "try_make_timestamp_ntz(2024, 2, 30, 0, 0, 0) IS NULL",
        form=_compile_made(spark_types.TIMESTAMP_NTZ, is_try=True),
    ),
)  # fmt: skip
