"""Functions on TIME, the time of day. Spark has the type if `spark.sql.timeType.enabled` is set."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.kernels.duckdb.functions.time.datetime_patterns import unreadable_piece
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.interval_literals import MICROS
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_UNITS = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_SECONDS = pa.decimal128(16, 6)
_NUMBER = pa.decimal128(38, 6)


def _time(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    term = compiler.compile(node)
    if term.type == spark_types.STRING or term.is_null:
        return coerce(term, spark_types.TIME, parent)
    if term.type != spark_types.TIME:
        name = spark_types.spark_name(term.type)
        raise mismatch(parent, f"a TIME is needed, not {name}", "make it with to_time(text) or make_time(h, m, s)")
    return term


def _unit(node: exp.Expr, parent: exp.Expr) -> int:
    """The microseconds of a literal unit."""
    name = node.this.upper() if isinstance(node, exp.Literal) and node.is_string else ""
    if name not in _UNITS:
        raise mismatch(parent, f"`{parent.name.lower()}` takes a literal unit", f"one of '{chr(39).join(_UNITS)}'")
    return MICROS[name]


def compile_make_time(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAKE_TIME(hour, minute, second)."""
    terms = [compiler.compile(part) for part in arguments(node, 3)]
    if not all(spark_types.is_numeric(term.type) or term.is_null for term in terms):
        raise mismatch(node, "make_time takes numbers only", "CAST them")
    hour, minute = (cast(term, spark_types.INT, node) for term in terms[:2])
    return call("make_time", spark_types.TIME, hour, minute, cast(terms[2], _SECONDS, node), can_fail=True)


def compile_difference(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIME_DIFF('UNIT', start, end): whole units, towards zero."""
    unit, start, end = arguments(node, 3)
    times = [_time(compiler, part, node) for part in (start, end)]
    return call("time_diff", spark_types.BIGINT, *times, options=(_unit(unit, node),), nulls="propagated")


def compile_truncation(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIME_TRUNC('UNIT', time)."""
    unit, time = arguments(node, 2)
    options = (_unit(unit, node),)
    return call("time_trunc", spark_types.TIME, _time(compiler, time, node), options=options, nulls="propagated")


def _compile_from(micros: int) -> NodeCompiler:
    """Make the compiler of TIME_FROM_SECONDS and its like: a time from so many units after midnight."""

    def compile_from(compiler: Compiler, node: exp.Expr) -> Term:
        (value,) = arguments(node, 1)
        number = compiler.compile(value)
        is_exact = spark_types.is_integer(number.type) or number.is_null
        if not is_exact and not (micros > 1_000 and spark_types.is_decimal(number.type) and number.type.scale <= 6):
            raise refuse(node, f"`{node.name.lower()}` takes an exact number", "CAST it to BIGINT or DECIMAL(14, 6)")
        number = cast(number, _NUMBER if micros > 1_000 else spark_types.BIGINT, node)
        return call("time_of_number", spark_types.TIME, number, options=(micros,), nulls="propagated", can_fail=True)

    return compile_from


def _compile_to(micros: int, kind: pa.DataType) -> NodeCompiler:
    """Make the compiler of TIME_TO_SECONDS and its like: the units since midnight."""

    def compile_to(compiler: Compiler, node: exp.Expr) -> Term:
        (value,) = arguments(node, 1)
        return call("number_of_time", kind, _time(compiler, value, node), options=(micros,), nulls="propagated")

    return compile_to


def _compile_read(*, is_try: bool) -> NodeCompiler:
    """Make the compiler of TO_TIME or TRY_TO_TIME: a cast of a text, or a text read by a literal pattern."""

    def compile_read(compiler: Compiler, node: exp.Expr) -> Term:
        value, *format_ = arguments(node, 1, 2)
        text = coerce(compiler.compile(value), spark_types.STRING, node)
        if not format_:
            return cast(text, spark_types.TIME, node, is_try=is_try)
        pattern = compiler.compile(format_[0])
        if not pattern.literal or pattern.type != spark_types.STRING:
            raise refuse(node, f"`{node.name.lower()}` takes a literal pattern only", "such as 'HH:mm'")
        letters = set(filter(str.isalpha, pattern.value))
        if unreadable_piece(pattern.value) or not letters <= set("HmsS") or "H" not in letters:
            raise refuse(node, f"the pattern '{pattern.value}' is not supported", "use HH, mm, ss and S")
        name = "try_read_time" if is_try else "read_time"
        moment = call(name, spark_types.TIMESTAMP, text, options=(pattern.value,), can_fail=not is_try)
        return call("time_of_timestamp", spark_types.TIME, moment, nulls="propagated")

    return compile_read


_TIME = "TIME '10:20:30.5'"

FUNCTIONS = (
    ScalarFunction(
        "make_time(hour, minute, second)", "The TIME of an hour, a minute and a second; other numbers fail.",
        f"make_time(10, 20, 30.5) = {_TIME}", form=compile_make_time,
    ),
    ScalarFunction(
        "time_diff('unit', start, end)", "The number of whole units from one TIME to another.",
        "time_diff('MINUTE', TIME '10:20:30', TIME '11:20:29') = 59", form=compile_difference,
    ),
    ScalarFunction(
        "time_from_micros(n)", "The TIME `n` microseconds after midnight.",
        f"time_from_micros(37230500000) = {_TIME}", form=_compile_from(1),
    ),
    ScalarFunction(
        "time_from_millis(n)", "The TIME `n` milliseconds after midnight.",
        f"time_from_millis(37230500) = {_TIME}", form=_compile_from(1_000),
    ),
    ScalarFunction(
        "time_from_seconds(n)", "The TIME `n` seconds after midnight.",
        f"time_from_seconds(37230.5) = {_TIME}", form=_compile_from(1_000_000),
    ),
    ScalarFunction(
        "time_to_micros(time)", "Microseconds since midnight.", f"time_to_micros({_TIME}) = 37230500000",
        form=_compile_to(1, spark_types.BIGINT),
    ),
    ScalarFunction(
        "time_to_millis(time)", "Milliseconds since midnight.", f"time_to_millis({_TIME}) = 37230500",
        form=_compile_to(1_000, spark_types.BIGINT),
    ),
    ScalarFunction(
        "time_to_seconds(time)", "Seconds since midnight, with their fraction.",
        f"time_to_seconds({_TIME}) = 37230.5", form=_compile_to(1_000_000, pa.decimal128(14, 6)),
    ),
    ScalarFunction(
        "time_trunc('unit', time)", "The TIME without what is smaller than a unit.",
        f"time_trunc('MINUTE', {_TIME}) = TIME '10:20:00'", form=compile_truncation,
    ),
    ScalarFunction(
        "to_time(text, pattern)", "The TIME that a text has, like CAST, or by a literal pattern.",
        "to_time('10.20', 'HH.mm') = TIME '10:20:00'", form=_compile_read(is_try=False),
    ),
    ScalarFunction(
        "try_to_time(text, pattern)", "As `to_time`; NULL if the text has none.", "try_to_time('abc') IS NULL",
        form=_compile_read(is_try=True),
    ),
)  # fmt: skip
