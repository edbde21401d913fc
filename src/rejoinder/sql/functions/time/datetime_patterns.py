"""Dates and times as text by a pattern of Spark. The pattern is a literal; TIMESTAMPs are in the zone of the flow."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions.scalar_operation import Nulls
from rejoinder.kernels.duckdb.functions.time.datetime_patterns import names_year, unreadable_piece, unsupported_piece
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.time.time_functions import date_argument, time_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.flow_zone import instant, is_local, local
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only, refuse


def _literal(compiler: Compiler, format_: exp.Expr, node: exp.Expr) -> str:
    pattern = compiler.compile(format_)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, f"{node.name.lower()} takes a literal pattern only", "such as 'yyyy-MM-dd'")
    return str(pattern.value)


def _written(compiler: Compiler, format_: exp.Expr, node: exp.Expr) -> str:
    """A literal pattern by which times can be written."""
    pattern = _literal(compiler, format_, node)
    piece = unsupported_piece(pattern)
    if piece:
        hint = "supported letters: y M L d D E H h m s S a q; quote text as in 'T'"
        raise refuse(node, f"`{piece}` in the pattern '{pattern}' is not supported", hint)
    return pattern


def compile_date_format(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_FORMAT with a literal pattern. Letters that depend on weeks, eras or zones are refused."""
    value, format_ = arguments(node, 2)
    pattern = _written(compiler, format_, node)
    time = local(time_argument(compiler, value, node))
    name, options, can_fail = "date_format", (pattern,), names_year(pattern)
    return call(name, spark_types.STRING, time, options=options, nulls="propagated", can_fail=can_fail)


def compile_from_unixtime(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile FROM_UNIXTIME: seconds since 1970 as text."""
    seconds, *format_ = arguments(node, 1, 2)
    pattern = _written(compiler, format_[0], node) if format_ else "yyyy-MM-dd HH:mm:ss"
    number = coerce(compiler.compile(seconds), spark_types.BIGINT, node)
    time = local(call("timestamp_seconds", spark_types.TIMESTAMP, number, can_fail=True))
    name, options, can_fail = "date_format", (pattern,), names_year(pattern)
    return call(name, spark_types.STRING, time, options=options, nulls="propagated", can_fail=can_fail)


def compile_to_date(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_DATE: a cast, or a text read by a pattern."""
    if not isinstance(node, exp.Anonymous):
        only(node, "this", "safe")
        return date_argument(compiler, node.this, node)
    return cast(compile_to_timestamp(compiler, node), spark_types.DATE, node)


def compile_to_timestamp(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_TIMESTAMP of a text by a literal pattern; the pattern means nothing to a time."""
    value, format_ = arguments(node, 2)
    return _read(compiler, value, format_, node)


def _compile_try(kind: pa.DataType) -> NodeCompiler:
    """Make the compiler of TRY_TO_TIMESTAMP or TRY_TO_DATE: a cast, or a text read by a pattern, NULL if it is none."""

    def compile_try(compiler: Compiler, node: exp.Expr) -> Term:
        value, *format_ = arguments(node, 1, 2)
        if format_:
            return cast(_read(compiler, value, format_[0], node, is_try=True), kind, node)
        term = compiler.compile(value)
        if not (spark_types.is_datetime(term.type) or term.type == spark_types.STRING or term.is_null):
            raise mismatch(node, f"a time or a text is needed, not {spark_types.spark_name(term.type)}")
        return cast(term, kind, node, is_try=term.type == spark_types.STRING)

    return compile_try


def compile_unix_timestamp(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile UNIX_TIMESTAMP of a time, or of a text by a literal pattern."""
    if isinstance(node, exp.Anonymous):
        value, *format_ = arguments(node, 1, 2)
    else:
        only(node, "this", "format")
        value, format_ = node.this, []
    term = compiler.compile(value)
    if spark_types.is_datetime(term.type):
        time = coerce(term, spark_types.TIMESTAMP, node)
    elif format_:
        time = _read(compiler, value, format_[0], node)
    else:
        raise refuse(node, "UNIX_TIMESTAMP of a string is not supported", "add a pattern, or CAST it to TIMESTAMP")
    return call("unix_timestamp", spark_types.BIGINT, time)


def _read(compiler: Compiler, value: exp.Expr, format_: exp.Expr, node: exp.Expr, *, is_try: bool = False) -> Term:
    """A text as a TIMESTAMP, read by a literal pattern; a time as it is."""
    term = compiler.compile(value)
    if spark_types.is_datetime(term.type):
        return coerce(term, spark_types.TIMESTAMP, node)
    pattern = _literal(compiler, format_, node)
    piece = unreadable_piece(pattern)
    if piece:
        hint = "supported are yyyy M d H m s, single or double, MMM, MMMM, and fractions S; each field once"
        raise refuse(node, f"`{piece}` in the pattern '{pattern}' is not supported", hint)
    text = coerce(term, spark_types.STRING, node)
    name = "try_read_time" if is_try else "read_time"
    nulls: Nulls = "possible" if is_try else "propagated"
    kind = spark_types.TIMESTAMP_NTZ if is_local() else spark_types.TIMESTAMP
    time = call(name, kind, text, options=(pattern,), nulls=nulls, can_fail=not is_try)
    return instant(time) if is_local() else time


FUNCTIONS = (
    ScalarFunction(
        "from_unixtime(n, pattern)",
        "The time `n` seconds after 1970 as text, by a pattern or as `yyyy-MM-dd HH:mm:ss`.",
        "from_unixtime(60) = '1970-01-01 00:01:00'",
        form=compile_from_unixtime,
    ),
    ScalarFunction(
        "to_date(x, pattern)",
        "The date of a text or a time, like CAST(x AS DATE), or read by a literal pattern.",
        "to_date('29.02.2024', 'dd.MM.yyyy') = DATE '2024-02-29'",
        parsed=exp.TsOrDsToDate,
        by_name=True,
        form=compile_to_date,
    ),
    ScalarFunction(
        "to_timestamp(x, pattern)",
        "The time of a text, like CAST(x AS TIMESTAMP), or read by a literal pattern.",
        "to_timestamp('29.02.2024 10:11', 'dd.MM.yyyy HH:mm') = TIMESTAMP '2024-02-29 10:11:00'",
        form=compile_to_timestamp,
    ),
    ScalarFunction(
        "date_format(time, pattern)",
        "The time as text by a literal pattern, such as `yyyy-MM-dd HH:mm`.",
        "date_format(TIMESTAMP '2024-02-29 10:11:12', 'dd.MM.yy, HH:mm') = '29.02.24, 10:11'",
        form=compile_date_format,
    ),
    ScalarFunction(
        "try_to_date(x, pattern)",
        "A text or a time as a DATE, NULL if it is none.",
        "try_to_date('abc') IS NULL",
        form=_compile_try(spark_types.DATE),
    ),
    ScalarFunction(
        "try_to_timestamp(x, pattern)",
        "A text or a time as a TIMESTAMP, NULL if it is none.",
        "try_to_timestamp('abc') IS NULL",
        form=_compile_try(spark_types.TIMESTAMP),
    ),
    ScalarFunction(
        "unix_timestamp(time, pattern)",
        "Seconds since 1970, rounded towards zero, of a time, or of a text by a literal pattern.",
        "unix_timestamp('01.01.1970 00:01', 'dd.MM.yyyy HH:mm') = 60",
        aliases=("to_unix_timestamp",),
        parsed=exp.StrToUnix,
        by_name=True,
        form=compile_unix_timestamp,
    ),
)
