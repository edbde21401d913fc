"""Functions on dates and timestamps, in the zone of the flow."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions.monotone import Step, floor
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.flow_zone import Part, changed, instant, is_local, local, moved
from rejoinder.sql.types.interval_literals import MICROS, add_days, part_of
from rejoinder.sql.types.interval_values import part_of_interval
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only, refuse

_DATE_PARTS = {
    **{part: part for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFWEEK_ISO", "DOY")},
    "DOW": "DAYOFWEEK",
    "DOW_ISO": "DAYOFWEEK_ISO",
    "WEEKDAY": "WEEKDAY",
}
_CLOCK_PARTS = ("HOUR", "MINUTE", "SECOND")
_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "QUARTER": "quarter",
    "WEEK": "week",
}
_TRUNCATED_TIME = {
    **_TRUNCATED,
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
_BY_DATE = tuple(_TRUNCATED)
"""Units in which Spark truncates the date: of two midnights, it takes the first."""
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def date_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a DATE."""
    if isinstance(node, exp.TsOrDsToDate) and not any(node.args.get(name) for name in ("format", "safe")):
        # sqlglot wraps the argument; the cast that it stands for comes next.
        node = node.this
    return _as_datetime(compiler.compile(node), spark_types.DATE, parent)


def time_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a TIMESTAMP of either kind."""
    term = compiler.compile(node)
    return term if term.type == spark_types.TIMESTAMP_NTZ else _as_datetime(term, spark_types.TIMESTAMP, parent)


def clock_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a TIME, or as a TIMESTAMP of either kind, which is a local time then."""
    term = compiler.compile(node)
    return term if term.type == spark_types.TIME else local(time_argument(compiler, node, parent))


def _as_datetime(term: Term, kind: pa.DataType, parent: exp.Expr) -> Term:
    if not (spark_types.is_datetime(term.type) or term.type == spark_types.STRING or term.is_null):
        raise mismatch(parent, f"a {spark_types.spark_name(kind)} is needed, not {spark_types.spark_name(term.type)}")
    return coerce(term, kind, parent)


def _timestamp_alone(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return _exactly(compiler.compile(node), spark_types.TIMESTAMP, parent)


def _date_alone(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return _exactly(compiler.compile(node), spark_types.DATE, parent)


def _exactly(term: Term, kind: pa.DataType, parent: exp.Expr) -> Term:
    """Require a type that Spark does not cast to."""
    name = spark_types.spark_name(kind)
    if term.type != kind:
        why = f"a {name} is needed, not {spark_types.spark_name(term.type)}"
        raise mismatch(parent, why, f"CAST it to {name.upper()}")
    return term


def _int_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return coerce(compiler.compile(node), spark_types.INT, parent)


def _int_cast(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return cast(compiler.compile(node), spark_types.INT, parent)


def _months_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    months = compiler.compile(node)
    if not spark_types.is_integer(months.type) or months.type == spark_types.BIGINT:
        raise mismatch(parent, f"months must be an int, not {spark_types.spark_name(months.type)}", "CAST it to INT")
    return coerce(months, spark_types.INT, parent)


def _number_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    term = compiler.compile(node)
    if not spark_types.is_integer(term.type):
        raise refuse(parent, f"`{parent.name}` takes integers only", "CAST it to BIGINT")
    return coerce(term, spark_types.BIGINT, parent)


def _extract_hint(part: str) -> str:
    if part == "EPOCH":
        return "CAST(time AS BIGINT) gives seconds, UNIX_MILLIS(time) milliseconds"
    parts = [*_DATE_PARTS, *_CLOCK_PARTS]
    return errors.near_misses(part, parts) or f"one of {', '.join(sorted(parts))}"


def compile_extract(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile EXTRACT; the second has its fraction."""
    only(node, "this", "expression")
    part = node.this.name.upper()
    interval = compiler.compile(node.expression)
    if interval.type in (spark_types.DAY_TIME, spark_types.YEAR_MONTH):
        return part_of_interval(interval, part, node)
    if part in _DATE_PARTS:
        date = date_argument(compiler, node.expression, node)
        return call("extract", spark_types.INT, date, options=(_DATE_PARTS[part],))
    time = clock_argument(compiler, node.expression, node)
    if part in _CLOCK_PARTS:
        kind = pa.decimal128(8, 6) if part == "SECOND" else spark_types.INT
        return call("extract", kind, time, options=(part,))
    raise refuse(node, f"EXTRACT of `{part}` is not supported", _extract_hint(part))


def compile_date_trunc(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_TRUNC, which gives a TIMESTAMP."""
    only(node, "this", "unit")
    unit = node.args["unit"].name.upper()
    _refuse_column_as_unit(compiler, unit, node)
    if unit not in _TRUNCATED_TIME:
        raise refuse(node, f"DATE_TRUNC to `{unit}` is not supported", errors.near_misses(unit, _TRUNCATED_TIME))
    term = coerce(time_argument(compiler, node.this, node), spark_types.TIMESTAMP, node)
    length = MICROS.get("DAY" if unit == "DD" else unit)
    # a week begins on Monday, and months have different lengths
    fixed = None if unit == "WEEK" else length
    monotone = None if fixed is None else MonotoneArgument(0, floor(fixed))

    def truncated(time: Term) -> Term:
        return call("date_trunc", time.type, time, options=(_TRUNCATED_TIME[unit],), monotone=monotone)

    if length is not None and length <= MICROS["SECOND"]:
        return truncated(term)  # offsets have no fractions of a second
    if unit in _BY_DATE and is_local():
        return instant(truncated(local(term)))
    return changed(term, truncated, None if fixed is None else (-fixed, 0))


def _refuse_column_as_unit(compiler: Compiler, unit: str, node: exp.Expr) -> None:
    """Refuse `date_trunc(month, t)` where there is a column `month`: sqlglot reads it as if it were quoted."""
    try:
        compiler.resolve(exp.column(unit))
    except errors.UnknownName:
        return
    except errors.PlanningError:
        pass
    raise refuse(node, f"`{unit.lower()}` is a column and a unit", "give the column another name")


def compile_trunc(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRUNC of a date."""
    only(node, "this", "unit")
    unit = node.args["unit"]
    if not isinstance(unit, exp.Literal) or unit.name.upper() not in _TRUNCATED:
        raise refuse(node, "TRUNC takes a literal 'year', 'quarter', 'month' or 'week'")
    term = date_argument(compiler, node.this, node)
    return call("trunc", spark_types.DATE, term, options=(_TRUNCATED[unit.name.upper()],))


def compile_date_add(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_ADD and DATE_SUB, in days."""
    only(node, "this", "expression", "unit")
    if node.args["unit"].name.upper() != "DAY":
        raise refuse(node, "this unit is not supported here")
    days = node.expression
    if isinstance(days, exp.Mul) and isinstance(days.this, exp.Literal) and days.expression == exp.Literal.number(-1):
        days = exp.Neg(this=days.this.copy())  # so sqlglot writes the days of DATE_SUB
    return add_days(date_argument(compiler, node.this, node), compiler.compile(days), node)


def compile_timestamp_add(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIMESTAMPADD and DATEADD with a unit."""
    only(node, "this", "expression", "unit")
    unit = node.args["unit"].name.upper()
    amount = coerce(compiler.compile(node.expression), spark_types.INT, node)
    time = time_argument(compiler, node.this, node)
    if unit in MICROS:
        size, fixed = MICROS[unit], amount.value

        def add(start: Term, part: Part) -> Term:
            monotone = MonotoneArgument(1, (Step(part_of(fixed * size, part)),)) if fixed is not None else None
            options = ("microseconds", size) if part == "all" else ("microseconds", size, part)
            return call("timestampadd", start.type, amount, start, options=options, can_fail=True, monotone=monotone)

        days = 0 if fixed is None else part_of(fixed * size, "days")
        is_calendar = unit in ("DAY", "WEEK")  # other than `+ INTERVAL 24 HOURS`, so many hours are hours on the clock
        return moved(time, add, None if fixed is None else (days, days)) if is_calendar else add(time, "all")
    if unit in _MONTHS:
        return changed(
            time,
            lambda start: call(
                "timestampadd", start.type, amount, start, options=("months", _MONTHS[unit]), can_fail=True
            ),
        )
    raise refuse(node, f"the unit `{unit}` is not supported", errors.near_misses(unit, [*MICROS, *_MONTHS]))


def compile_timestamp_diff(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIMESTAMPDIFF(unit, start, end) in whole units up to weeks."""
    only(node, "this", "expression", "unit")
    unit = node.args["unit"].name.upper()
    if unit not in MICROS:
        raise refuse(node, f"TIMESTAMPDIFF in `{unit}` is not supported", "use DAY, or EXTRACT the parts")
    end, start = (local(time_argument(compiler, part, node)) for part in (node.this, node.expression))
    return call("timestampdiff", spark_types.BIGINT, start, end, options=(MICROS[unit],), can_fail=True)


def _date_part(name: str, doc: str, example: str, parsed: type[exp.Expr] | tuple[()] = ()) -> ScalarFunction:
    return ScalarFunction(f"{name}(date)", doc, example, (date_argument,), spark_types.INT, parsed=parsed)


def _clock_part(name: str, doc: str, example: str, parsed: type[exp.Expr]) -> ScalarFunction:
    return ScalarFunction(f"{name}(time)", doc, example, (clock_argument,), spark_types.INT, parsed=parsed)


def _unix(name: str, doc: str, example: str, parsed: type[exp.Expr]) -> ScalarFunction:
    rule, kind = (_timestamp_alone,), spark_types.BIGINT
    return ScalarFunction(f"{name}(time)", doc, example, rule, kind, parsed=parsed, ignored=("scale",))


def _timestamp_of(name: str, unit: str, example: str) -> ScalarFunction:
    doc, rule = f"The time `n` {unit} after 1970.", (_number_argument,)
    return ScalarFunction(f"{name}(n)", doc, example, rule, spark_types.TIMESTAMP, can_fail=True)


FUNCTIONS = (
    _date_part("year", "The year.", "year(DATE '2024-02-29') = 2024", exp.Year),
    _date_part("quarter", "The quarter, from 1.", "quarter(DATE '2024-02-29') = 1", exp.Quarter),
    _date_part("month", "The month, from 1.", "month(DATE '2024-02-29') = 2", exp.Month),
    ScalarFunction(
        "day(date)",
        "The day of the month.",
        "day(DATE '2024-02-29') = 29",
        (date_argument,),
        spark_types.INT,
        aliases=("dayofmonth",),
        parsed=(exp.Day, exp.DayOfMonth),
    ),
    _date_part("dayofweek", "The day of the week, 1 for Sunday.", "dayofweek(DATE '2024-02-29') = 5", exp.DayOfWeek),
    _date_part("dayofyear", "The day of the year.", "dayofyear(DATE '2024-02-29') = 60", exp.DayOfYear),
    _date_part(
        "weekofyear", "The week of the year, as in ISO 8601.", "weekofyear(DATE '2024-02-29') = 9", exp.WeekOfYear
    ),
    _date_part("weekday", "The day of the week, 0 for Monday.", "weekday(DATE '2024-02-29') = 3"),
    _clock_part("hour", "The hour.", "hour(TIMESTAMP '2024-02-29 10:11:12') = 10", exp.Hour),
    _clock_part("minute", "The minute.", "minute(TIMESTAMP '2024-02-29 10:11:12') = 11", exp.Minute),
    _clock_part(
        "second", "The second, without its fraction.", "second(TIMESTAMP '2024-02-29 10:11:12') = 12", exp.Second
    ),
    ScalarFunction(
        "extract(YEAR FROM date)",
        "A part of a date or a time; the second has its fraction.",
        "extract(SECOND FROM TIMESTAMP '2024-02-29 10:11:12.5') = 12.5",
        parsed=exp.Extract,
        form=compile_extract,
    ),
    _unix(
        "unix_seconds",
        "Seconds since 1970, rounded down.",
        "unix_seconds(TIMESTAMP '1970-01-01 00:01:00') = 60",
        exp.UnixSeconds,
    ),
    _unix(
        "unix_millis",
        "Milliseconds since 1970, rounded down.",
        "unix_millis(TIMESTAMP '1970-01-01 00:00:01') = 1000",
        exp.UnixMillis,
    ),
    _unix(
        "unix_micros",
        "Microseconds since 1970.",
        "unix_micros(TIMESTAMP '1970-01-01 00:00:01') = 1000000",
        exp.UnixMicros,
    ),
    _timestamp_of("timestamp_seconds", "seconds", "timestamp_seconds(60) = TIMESTAMP '1970-01-01 00:01:00'"),
    _timestamp_of("timestamp_millis", "milliseconds", "timestamp_millis(1000) = TIMESTAMP '1970-01-01 00:00:01'"),
    _timestamp_of("timestamp_micros", "microseconds", "timestamp_micros(0) = TIMESTAMP '1970-01-01 00:00:00'"),
    ScalarFunction(
        "date_trunc('day', time)",
        "The time, rounded down to a unit.",
        "date_trunc('HOUR', TIMESTAMP '2024-02-29 10:11:12') = TIMESTAMP '2024-02-29 10:00:00'",
        parsed=exp.TimestampTrunc,
        form=compile_date_trunc,
    ),
    ScalarFunction(
        "trunc(date, 'month')",
        "The date, rounded down to a year, quarter, month or week.",
        "trunc(DATE '2024-02-29', 'MONTH') = DATE '2024-02-01'",
        parsed=exp.DateTrunc,
        form=compile_trunc,
    ),
    ScalarFunction(
        "date_add(date, n)",
        "The date `n` days later; with date_sub, earlier.",
        "date_add(DATE '2024-02-28', 2) = DATE '2024-03-01'",
        aliases=("date_sub",),
        parsed=exp.TsOrDsAdd,
        form=compile_date_add,
    ),
    ScalarFunction(
        "timestampadd(DAY, n, time)",
        "The time `n` units later.",
        "timestampadd(HOUR, 1, TIMESTAMP '2024-02-29 10:00:00') = TIMESTAMP '2024-02-29 11:00:00'",
        aliases=("dateadd",),
        parsed=exp.TimestampAdd,
        form=compile_timestamp_add,
    ),
    ScalarFunction(
        "timestampdiff(DAY, start_time, end_time)",
        "The whole units from one time to another, up to weeks.",
        "timestampdiff(HOUR, TIMESTAMP '2024-02-29 10:00:00', TIMESTAMP '2024-03-01 10:00:00') = 24",
        parsed=exp.TimestampDiff,
        form=compile_timestamp_diff,
    ),
    ScalarFunction(
        "datediff(end_date, start_date)",
        "The days from the second date to the first.",
        "datediff(DATE '2024-03-01', DATE '2024-02-28') = 2",
        (date_argument, date_argument),
        spark_types.INT,
        parsed=exp.DateDiff,
        aliases=("date_diff",),
    ),
    ScalarFunction(
        "add_months(date, n)",
        "The date `n` months later, or the last day of that month if it has no such day.",
        "add_months(DATE '2024-01-31', 1) = DATE '2024-02-29'",
        (date_argument, _months_argument),
        spark_types.DATE,
        parsed=exp.AddMonths,
        can_fail=True,
    ),
    ScalarFunction(
        "last_day(date)",
        "The last day of the month.",
        "last_day(DATE '2024-02-01') = DATE '2024-02-29'",
        (date_argument,),
        spark_types.DATE,
        parsed=exp.LastDay,
    ),
    ScalarFunction(
        "unix_date(date)",
        "Days since 1970.",
        "unix_date(DATE '1970-01-02') = 1",
        (_date_alone,),
        spark_types.INT,
        parsed=exp.UnixDate,
    ),
    ScalarFunction(
        "date_from_unix_date(n)",
        "The date `n` days after 1970.",
        "date_from_unix_date(1) = DATE '1970-01-02'",
        (_int_argument,),
        spark_types.DATE,
        parsed=exp.DateFromUnixDate,
        can_fail=True,
    ),
    ScalarFunction(
        "make_date(y, m, d)",
        "The date of a year, a month and a day; a date that is not in the calendar fails.",
        "make_date(2024, 2, 29) = DATE '2024-02-29'",
        (_int_cast, _int_cast, _int_cast),
        spark_types.DATE,
        can_fail=True,
    ),
)
