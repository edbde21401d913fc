"""TIME_BUCKET: the start of the bucket of a fixed length that a time is in."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions.monotone import floor, shift
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.flow_zone import is_local
from rejoinder.sql.types.interval_literals import MICROS, interval_of
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_EPOCH = datetime(1970, 1, 1)


def compile_bucket(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TIME_BUCKET of a literal length; buckets are counted from 1970, or from a literal origin."""
    length, value, *rest = arguments(node, 2, 3)
    size, time = interval_of(length), compiler.compile(value)
    if size is None:
        raise refuse(node, "time_bucket takes a literal interval only", "such as INTERVAL '15' MINUTE")
    if size.months <= 0 and size.micros <= 0:
        raise mismatch(node, "a bucket must be longer than nothing", "such as INTERVAL '15' MINUTE")
    if not pa.types.is_timestamp(time.type):
        raise mismatch(node, f"a timestamp is needed, not {spark_types.spark_name(time.type)}", "CAST it to TIMESTAMP")
    if is_local() and time.type == spark_types.TIMESTAMP and (size.months or size.micros >= MICROS["DAY"]):
        hint = "use date_trunc, or a bucket of a TIMESTAMP_NTZ: CAST(time AS TIMESTAMP_NTZ)"
        raise refuse(node, "a bucket of days or months is not supported in a time zone", hint)
    origin = compiler.compile(rest[0]) if rest else None
    if origin is not None and (not origin.literal or origin.type != time.type or origin.value is None):
        kind = spark_types.spark_name(time.type).upper()
        raise refuse(node, f"time_bucket takes a literal {kind} as origin", f"such as {kind} '2024-01-01 00:00:00'")
    since = (origin.value - _EPOCH) if origin is not None else _EPOCH - _EPOCH
    start = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if size.months:
        return call("bucket_of_months", time.type, time, options=(size.months, start), can_fail=True)
    plus = -start % size.micros
    monotone = MonotoneArgument(0, (*floor(size.micros, plus=plus), *shift(-plus)))
    return call("time_bucket", time.type, time, options=(size.micros, start), can_fail=True, monotone=monotone)


FUNCTIONS = (
    ScalarFunction(
        "time_bucket(length, time, origin)", "The start of the bucket of a literal length that a time is in.",
        "time_bucket(INTERVAL '15' MINUTE, TIMESTAMP '2024-02-29 10:20:00') = TIMESTAMP '2024-02-29 10:15:00'",
        form=compile_bucket,
    ),
)  # fmt: skip
