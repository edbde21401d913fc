"""Dates and times as text by a pattern of Spark. The pattern is a literal; the session's zone is UTC."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.kernels.duckdb.functions.datetime_patterns import names_year, unsupported_piece
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.time.time_functions import time_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, refuse


def compile_date_format(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile DATE_FORMAT with a literal pattern. Letters that depend on weeks, eras or zones are refused."""
    value, format_ = arguments(node, 2)
    pattern = compiler.compile(format_)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, "date_format takes a literal pattern only", "as in date_format(ts, 'yyyy-MM-dd')")
    piece = unsupported_piece(pattern.value)
    if piece:
        hint = "supported letters: y M L d D E H h m s S a q; quote text as in 'T'"
        raise refuse(node, f"`{piece}` in the pattern '{pattern.value}' is not supported", hint)
    time = time_argument(compiler, value, node)
    name, options, can_fail = "date_format", (pattern.value,), names_year(pattern.value)
    return call(name, spark_types.STRING, time, options=options, nulls="propagated", can_fail=can_fail)


FUNCTIONS = (
    ScalarFunction(
        "date_format(time, pattern)",
        "The time as text by a literal pattern, such as `yyyy-MM-dd HH:mm`.",
        "date_format(TIMESTAMP '2024-02-29 10:11:12', 'dd.MM.yy, HH:mm') = '29.02.24, 10:11'",
        form=compile_date_format,
    ),
)
