"""Functions on dates and timestamps; the session's zone is UTC."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.monotone import Step, floor
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, called_by_name, parsed_as_nodes
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.interval_literals import MICROS, add_days
from rejoinder.sql.types.terms import Compiler, Term, build, mismatch, only, refuse, rising

_DATE_PARTS = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "day({0})",
    "DAYOFWEEK": "dayofweek({0}) + 1",
    "DOW": "dayofweek({0}) + 1",
    "DAYOFWEEK_ISO": "isodow({0})",
    "DOW_ISO": "isodow({0})",
    "WEEKDAY": "isodow({0}) - 1",
    "DOY": "dayofyear({0})",
}
_CLOCK_PARTS = {"HOUR": "hour({0})", "MINUTE": "minute({0})", "SECOND": "second({0})"}
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
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
# Division that rounds down: DuckDB's // goes towards zero.
_FLOORED = "(({0} - ({0} % {1} + {1}) % {1}) // {1})"


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
    parts = [*_DATE_PARTS, *_CLOCK_PARTS, "SECOND"]
    return errors.near_misses(part, parts) or f"one of {', '.join(sorted(parts))}"


def compile_extract(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile EXTRACT; the second has its fraction."""
    only(node, "this", "expression")
    part = node.this.name.upper()
    if part in _DATE_PARTS:
        return build(
            f"CAST({_DATE_PARTS[part]} AS INTEGER)", spark_types.INT, date_argument(compiler, node.expression, node)
        )
    term = time_argument(compiler, node.expression, node)
    if part == "SECOND":
        micros = "CAST(microsecond({0}) AS DECIMAL(8,0)) * CAST('0.000001' AS DECIMAL(6,6))"
        return build(f"CAST({micros} AS DECIMAL(8,6))", pa.decimal128(8, 6), term)
    if part in _CLOCK_PARTS:
        return build(f"CAST({_CLOCK_PARTS[part]} AS INTEGER)", spark_types.INT, term)
    raise refuse(node, f"EXTRACT of `{part}` is not supported", _extract_hint(part))


def compile_date_trunc(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_TRUNC, which gives a TIMESTAMP."""
    only(node, "this", "unit")
    unit = node.args["unit"].name.upper()
    _refuse_column_as_unit(compiler, unit, node)
    if unit not in _TRUNCATED_TIME:
        raise refuse(node, f"DATE_TRUNC to `{unit}` is not supported", errors.near_misses(unit, _TRUNCATED_TIME))
    term = coerce(time_argument(compiler, node.this, node), spark_types.TIMESTAMP, node)
    made = build(f"date_trunc('{_TRUNCATED_TIME[unit]}', {{0}})", spark_types.TIMESTAMP, term)
    length = MICROS.get("DAY" if unit == "DD" else unit)
    if length is None or unit == "WEEK":  # it begins on Monday, and months have different lengths
        return made
    return rising(made, term, *floor(length))


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
    return build(f"CAST(date_trunc('{_TRUNCATED[unit.name.upper()]}', {{0}}) AS DATE)", spark_types.DATE, term)


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
        moved = f"({{1}} + to_microseconds(CAST({{0}} AS BIGINT) * {MICROS[unit]}))"
        made = build(moved, time.type, amount, time, can_fail=True)
        is_fixed = amount.literal and amount.value is not None
        return rising(made, time, Step(amount.value * MICROS[unit])) if is_fixed else made
    if unit in _MONTHS:
        return build(f"({{1}} + to_months({{0}} * {_MONTHS[unit]}))", time.type, amount, time, can_fail=True)
    raise refuse(node, f"the unit `{unit}` is not supported", errors.near_misses(unit, [*MICROS, *_MONTHS]))


def compile_timestamp_diff(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIMESTAMPDIFF(unit, start, end) in whole units up to weeks."""
    only(node, "this", "expression", "unit")
    unit = node.args["unit"].name.upper()
    if unit not in MICROS:
        raise refuse(node, f"TIMESTAMPDIFF in `{unit}` is not supported", "use DAY, or EXTRACT the parts")
    end, start = (time_argument(compiler, part, node) for part in (node.this, node.expression))
    return build(
        f"((epoch_us({{1}}) - epoch_us({{0}})) // {MICROS[unit]})", spark_types.BIGINT, start, end, can_fail=True
    )


def compile_to_date(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_DATE without a format, which is a cast."""
    only(node, "this", "safe")
    return date_argument(compiler, node.this, node)


def compile_unix_timestamp(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile UNIX_TIMESTAMP of a time; of a string it would need a format."""
    only(node, "this", "format")
    term = compiler.compile(node.this)
    if not spark_types.is_datetime(term.type):
        raise refuse(node, "UNIX_TIMESTAMP of a string is not supported", "CAST it to TIMESTAMP before")
    # Before 1970 this goes towards zero, other than UNIX_SECONDS.
    return build("(epoch_us({0}) // 1000000)", spark_types.BIGINT, coerce(term, spark_types.TIMESTAMP, node))


def _since_epoch(size: int) -> str:
    return _FLOORED.replace("{1}", str(size)).replace("{0}", "epoch_us({0})")


def _date_part(name: str, part: str, doc: str, parsed: type[exp.Expr] | None) -> ScalarFunction:
    template = f"CAST({_DATE_PARTS[part]} AS INTEGER)"
    return ScalarFunction(f"{name}(date)", (date_argument,), spark_types.INT, template, doc, parsed=parsed)


def _clock_part(name: str, doc: str, parsed: type[exp.Expr]) -> ScalarFunction:
    template = f"CAST({_CLOCK_PARTS[name.upper()]} AS INTEGER)"
    return ScalarFunction(f"{name}(time)", (time_argument,), spark_types.INT, template, doc, parsed=parsed)


def _unix(name: str, template: str, doc: str, parsed: type[exp.Expr]) -> ScalarFunction:
    rule, kind = (_timestamp_alone,), spark_types.BIGINT
    return ScalarFunction(f"{name}(time)", rule, kind, template, doc, parsed=parsed, ignored=("scale",))


def _timestamp_of(name: str, size: int, unit: str) -> ScalarFunction:
    doc, template = f"The time so many {unit} after 1970.", f"make_timestamp({{0}} * {size})"
    return ScalarFunction(f"{name}(n)", (_number_argument,), spark_types.TIMESTAMP, template, doc, can_fail=True)


FUNCTIONS = (
    _date_part("year", "YEAR", "The year.", exp.Year),
    _date_part("quarter", "QUARTER", "The quarter, from 1.", exp.Quarter),
    _date_part("month", "MONTH", "The month, from 1.", exp.Month),
    _date_part("day", "DAY", "The day of the month.", exp.Day),
    _date_part("dayofmonth", "DAY", "The day of the month.", exp.DayOfMonth),
    _date_part("dayofweek", "DAYOFWEEK", "The day of the week, 1 for Sunday.", exp.DayOfWeek),
    _date_part("dayofyear", "DOY", "The day of the year.", exp.DayOfYear),
    _date_part("weekofyear", "WEEK", "The week of the year, as in ISO 8601.", exp.WeekOfYear),
    _date_part("weekday", "WEEKDAY", "The day of the week, 0 for Monday.", None),
    _clock_part("hour", "The hour.", exp.Hour),
    _clock_part("minute", "The minute.", exp.Minute),
    _clock_part("second", "The second, without its fraction.", exp.Second),
    _unix("unix_seconds", _since_epoch(1_000_000), "Seconds since 1970, rounded down.", exp.UnixSeconds),
    _unix("unix_millis", _since_epoch(1_000), "Milliseconds since 1970, rounded down.", exp.UnixMillis),
    _unix("unix_micros", "epoch_us({0})", "Microseconds since 1970.", exp.UnixMicros),
    _timestamp_of("timestamp_seconds", 1_000_000, "seconds"),
    _timestamp_of("timestamp_millis", 1_000, "milliseconds"),
    _timestamp_of("timestamp_micros", 1, "microseconds"),
    ScalarFunction(
        "datediff(end_date, start_date)",
        (date_argument, date_argument),
        spark_types.INT,
        "CAST({0} - {1} AS INTEGER)",
        "The days from the second date to the first.",
        parsed=exp.DateDiff,
        aliases=("date_diff",),
    ),
    ScalarFunction(
        "add_months(date, n)",
        (date_argument, _months_argument),
        spark_types.DATE,
        "CAST({0} + to_months({1}) AS DATE)",
        "The date so many months later; a day that the month has not becomes its last one.",
        parsed=exp.AddMonths,
        can_fail=True,
    ),
    ScalarFunction(
        "last_day(date)",
        (date_argument,),
        spark_types.DATE,
        "last_day({0})",
        "The last day of the month.",
        parsed=exp.LastDay,
    ),
    ScalarFunction(
        "unix_date(date)",
        (_date_alone,),
        spark_types.INT,
        "CAST({0} - DATE '1970-01-01' AS INTEGER)",
        "Days since 1970.",
        parsed=exp.UnixDate,
    ),
    ScalarFunction(
        "date_from_unix_date(n)",
        (_int_argument,),
        spark_types.DATE,
        "(DATE '1970-01-01' + {0})",
        "The date so many days after 1970.",
        parsed=exp.DateFromUnixDate,
        can_fail=True,
    ),
    ScalarFunction(
        "make_date(y, m, d)",
        (_int_cast, _int_cast, _int_cast),
        spark_types.DATE,
        "make_date({0}, {1}, {2})",
        "The date of a year, a month and a day; one that is not in the calendar fails.",
        can_fail=True,
    ),
)

NODES: dict[type[exp.Expr], NodeCompiler] = {
    **parsed_as_nodes(FUNCTIONS),
    exp.Extract: compile_extract,
    exp.TimestampTrunc: compile_date_trunc,
    exp.DateTrunc: compile_trunc,
    exp.TsOrDsAdd: compile_date_add,
    exp.TimestampAdd: compile_timestamp_add,
    exp.TimestampDiff: compile_timestamp_diff,
    exp.TsOrDsToDate: compile_to_date,
    exp.StrToUnix: compile_unix_timestamp,
}

NAMED: dict[str, NodeCompiler] = called_by_name(FUNCTIONS)
