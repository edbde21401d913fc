"""TIME_BUCKET. The options of a call are the length and the origin, in microseconds since 1970."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound


def _bucket(call: Call) -> str:
    size, origin = (int(option) for option in call.operation.options)
    since = f"(epoch_us({{0}}) - {origin % size})"
    return f"make_timestamp(epoch_us({{0}}) - ({since} % {size} + {size}) % {size})"


def _bucket_of_months(call: Call) -> str:
    """The day of the origin, moved by months; a month without this day has its last day instead."""
    size, origin = call.operation.options
    start = f"make_timestamp({origin})"
    months = f"((year({{0}}) - year({start})) * 12 + month({{0}}) - month({start}))"
    count, with_count = bound(f"CAST(floor({months}::DOUBLE / {size}) AS INTEGER)")
    this, before = (f"({start} + to_months(({count} - {back}) * {size}))" for back in (0, 1))
    return with_count(f"CASE WHEN {this} > {{0}} THEN {before} ELSE {this} END")


RENDERINGS: dict[str, Rendering] = {"bucket_of_months": _bucket_of_months, "time_bucket": _bucket}
