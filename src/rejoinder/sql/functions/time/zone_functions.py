"""Time zones: FROM_UTC_TIMESTAMP, TO_UTC_TIMESTAMP, CONVERT_TIMEZONE, CURRENT_TIMEZONE and AT TIME ZONE."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.kernels.zones.zone_names import FARTHEST
from rejoinder.kernels.zones.zone_offsets import arrow_zone
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.time.time_functions import time_argument
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast, coerce
from rejoinder.sql.types.flow_zone import flow_zone
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only
from rejoinder.sql.types.zone_literals import checked_zone

_WITHIN = MonotoneArgument(0, shift(-FARTHEST * 1_000_000), more=2 * FARTHEST * 1_000_000)
"""A local time is at most 18 hours from UTC, so that a watermark passes through."""


def local_time(time: Term, zone: Term, kind: pa.DataType) -> Term:
    """Make the local time of an instant in a zone."""
    return call("local_time", kind, time, zone, nulls="propagated", monotone=_WITHIN)


def instant(time: Term, zone: Term, kind: pa.DataType) -> Term:
    """Make the instant of a local time in a zone: the earlier one of two; with the offset before a gap."""
    return call("instant", kind, time, zone, nulls="propagated", monotone=_WITHIN)


def zone_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile the name of a zone. Raises `InvalidSql` for a literal that is not the name of a zone."""
    term = compiler.compile(node)
    if term.is_null:
        return Term(cast(term, spark_types.STRING, parent).node)
    if term.type != spark_types.STRING:
        kind = spark_types.spark_name(term.type)
        raise mismatch(parent, f"the name of a time zone is needed, not {kind}", "such as 'Europe/Berlin' or '+01:00'")
    if term.literal and term.value is not None:
        return constant(checked_zone(term.value, f"in `{text_of(parent)}`"), spark_types.STRING)
    return call("zone_name", spark_types.STRING, term, can_fail=True)


def _compile_utc(name: str) -> NodeCompiler:
    """Make the compiler of FROM_UTC_TIMESTAMP and TO_UTC_TIMESTAMP."""
    made = local_time if name == "local_time" else instant

    def compile_utc(compiler: Compiler, node: exp.Expr) -> Term:
        value, zone = arguments(node, 2)
        time = coerce(time_argument(compiler, value, node), spark_types.TIMESTAMP, node)
        return made(time, zone_argument(compiler, zone, node), spark_types.TIMESTAMP)

    return compile_utc


def compile_convert_timezone(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CONVERT_TIMEZONE([source,] target, time); without a source, the time is in the zone of the flow."""
    *zones, value = arguments(node, 2, 3)
    kind = spark_types.TIMESTAMP_NTZ
    time = coerce(time_argument(compiler, value, node), kind, node)
    source, target = [exp.Literal.string(flow_zone()), *zones][-2:]
    at = instant(time, zone_argument(compiler, source, node), kind)
    return local_time(at, zone_argument(compiler, target, node), kind)


def compile_current_timezone(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CURRENT_TIMEZONE: the zone of the flow."""
    only(node)
    return constant(arrow_zone(flow_zone()), spark_types.STRING)


def compile_at_time_zone(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile AT TIME ZONE: the local time of a TIMESTAMP, or the instant of a TIMESTAMP_NTZ."""
    only(node, "this", "zone")
    time, zone = time_argument(compiler, node.this, node), zone_argument(compiler, node.args["zone"], node)
    if time.type == spark_types.TIMESTAMP_NTZ:
        return instant(time, zone, spark_types.TIMESTAMP)
    return local_time(time, zone, spark_types.TIMESTAMP_NTZ)


FUNCTIONS = (
    ScalarFunction(
        "time AT TIME ZONE 'zone'", "The TIMESTAMP_NTZ of a TIMESTAMP in a zone, and the reverse.",
        "TIMESTAMP '2026-07-01 10:00:00' AT TIME ZONE 'Europe/Berlin' = TIMESTAMP_NTZ '2026-07-01 12:00:00'",
        operator="AT TIME ZONE", parsed=exp.AtTimeZone, form=compile_at_time_zone,
    ),
    ScalarFunction(
        "convert_timezone('source', 'target', time)",
        "A local time of one zone in another; of the flow's zone, without a source.",
        "convert_timezone('Europe/Berlin', 'America/New_York', TIMESTAMP_NTZ '2026-07-01 12:00:00') = "
        "TIMESTAMP_NTZ '2026-07-01 06:00:00'", form=compile_convert_timezone,
    ),
    ScalarFunction(
        "current_timezone()", "The time zone of the flow.", "current_timezone() = 'UTC'",
        parsed=exp.CurrentTimezone, form=compile_current_timezone,
    ),
    ScalarFunction(
        "from_utc_timestamp(time, 'zone')", "The local time of a zone, as a TIMESTAMP.",
        "from_utc_timestamp(TIMESTAMP '2026-07-01 10:00:00', 'Europe/Berlin') = TIMESTAMP '2026-07-01 12:00:00'",
        form=_compile_utc("local_time"),
    ),
    ScalarFunction(
        "to_utc_timestamp(time, 'zone')", "The time in UTC of a local time; of two, the earlier one.",
        "to_utc_timestamp(TIMESTAMP '2026-07-01 12:00:00', 'Europe/Berlin') = TIMESTAMP '2026-07-01 10:00:00'",
        form=_compile_utc("instant"),
    ),
)  # fmt: skip
