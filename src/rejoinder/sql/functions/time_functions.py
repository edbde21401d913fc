"""Functions on dates and timestamps; the session's zone is UTC."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.monotone import Step, floor
from rejoinder.sql.functions.math_functions import arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.interval_literals import MICROS, add_days
from rejoinder.sql.types.terms import Compiler, Term, build, mismatch, only, refuse, rising

NodeCompiler = Callable[[Compiler, exp.Expr], Term]

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


def _date_part(part: str) -> NodeCompiler:
    def compile_part(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this")
        return build(f"CAST({_DATE_PARTS[part]} AS INTEGER)", spark_types.INT, date_argument(compiler, node.this, node))

    return compile_part


def _clock_part(part: str) -> NodeCompiler:
    def compile_part(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this")
        return build(
            f"CAST({_CLOCK_PARTS[part]} AS INTEGER)", spark_types.INT, time_argument(compiler, node.this, node)
        )

    return compile_part


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


def compile_date_diff(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATEDIFF(end, start) in days."""
    only(node, "this", "expression")
    days = (date_argument(compiler, node.this, node), date_argument(compiler, node.expression, node))
    return build("CAST({0} - {1} AS INTEGER)", spark_types.INT, *days)


def compile_add_months(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ADD_MONTHS; a day that the month has not becomes its last one."""
    only(node, "this", "expression")
    months = compiler.compile(node.expression)
    if not spark_types.is_integer(months.type) or months.type == spark_types.BIGINT:
        raise mismatch(node, f"months must be an int, not {spark_types.spark_name(months.type)}", "CAST it to INT")
    shifted = "CAST({0} + to_months({1}) AS DATE)"
    day = date_argument(compiler, node.this, node)
    return build(shifted, spark_types.DATE, day, coerce(months, spark_types.INT, node), can_fail=True)


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


def compile_last_day(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LAST_DAY of the month."""
    only(node, "this")
    return build("last_day({0})", spark_types.DATE, date_argument(compiler, node.this, node))


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


def _unix(size: int) -> NodeCompiler:
    def compile_unix(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this", "scale")
        term = compiler.compile(node.this)
        if term.type != spark_types.TIMESTAMP:
            raise mismatch(
                node, f"a timestamp is needed, not {spark_types.spark_name(term.type)}", "CAST it to TIMESTAMP"
            )
        return _since_epoch(term, size)

    return compile_unix


def _since_epoch(time: Term, size: int) -> Term:
    micros = "epoch_us({0})"
    if size == 1:
        return build(micros, spark_types.BIGINT, time)
    return build(_FLOORED.replace("{1}", str(size)).replace("{0}", micros), spark_types.BIGINT, time)


def compile_unix_date(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile UNIX_DATE: days since 1970."""
    only(node, "this")
    term = compiler.compile(node.this)
    if term.type != spark_types.DATE:
        raise mismatch(node, f"a date is needed, not {spark_types.spark_name(term.type)}", "CAST it to DATE")
    return build("CAST({0} - DATE '1970-01-01' AS INTEGER)", spark_types.INT, term)


def compile_date_from_unix(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_FROM_UNIX_DATE."""
    only(node, "this")
    days = coerce(compiler.compile(node.this), spark_types.INT, node)
    return build("(DATE '1970-01-01' + {0})", spark_types.DATE, days, can_fail=True)


def _timestamp_of(size: int) -> NodeCompiler:
    def compile_timestamp(compiler: Compiler, node: exp.Expr) -> Term:
        (value,) = arguments(node, 1)
        term = compiler.compile(value)
        if not spark_types.is_integer(term.type):
            raise refuse(node, f"`{node.name}` takes integers only", "CAST it to BIGINT")
        return build(
            f"make_timestamp({{0}} * {size})",
            spark_types.TIMESTAMP,
            coerce(term, spark_types.BIGINT, node),
            can_fail=True,
        )

    return compile_timestamp


def compile_make_date(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAKE_DATE; a date that is not in the calendar fails."""
    parts = [cast(compiler.compile(part), spark_types.INT, node) for part in arguments(node, 3)]
    return build("make_date({0}, {1}, {2})", spark_types.DATE, *parts, can_fail=True)


def compile_weekday(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile WEEKDAY, 0 for Monday."""
    (value,) = arguments(node, 1)
    return build(f"CAST({_DATE_PARTS['WEEKDAY']} AS INTEGER)", spark_types.INT, date_argument(compiler, value, node))


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Year: _date_part("YEAR"),
    exp.Quarter: _date_part("QUARTER"),
    exp.Month: _date_part("MONTH"),
    exp.Day: _date_part("DAY"),
    exp.DayOfMonth: _date_part("DAY"),
    exp.DayOfWeek: _date_part("DAYOFWEEK"),
    exp.DayOfYear: _date_part("DOY"),
    exp.WeekOfYear: _date_part("WEEK"),
    exp.Hour: _clock_part("HOUR"),
    exp.Minute: _clock_part("MINUTE"),
    exp.Second: _clock_part("SECOND"),
    exp.Extract: compile_extract,
    exp.TimestampTrunc: compile_date_trunc,
    exp.DateTrunc: compile_trunc,
    exp.TsOrDsAdd: compile_date_add,
    exp.DateDiff: compile_date_diff,
    exp.AddMonths: compile_add_months,
    exp.TimestampAdd: compile_timestamp_add,
    exp.TimestampDiff: compile_timestamp_diff,
    exp.LastDay: compile_last_day,
    exp.TsOrDsToDate: compile_to_date,
    exp.StrToUnix: compile_unix_timestamp,
    exp.UnixSeconds: _unix(1_000_000),
    exp.UnixMillis: _unix(1_000),
    exp.UnixMicros: _unix(1),
    exp.UnixDate: compile_unix_date,
    exp.DateFromUnixDate: compile_date_from_unix,
}

NAMED: dict[str, NodeCompiler] = {
    "weekday": compile_weekday,
    "make_date": compile_make_date,
    "timestamp_seconds": _timestamp_of(1_000_000),
    "timestamp_millis": _timestamp_of(1_000),
    "timestamp_micros": _timestamp_of(1),
}
