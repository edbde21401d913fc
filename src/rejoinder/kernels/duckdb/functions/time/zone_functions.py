"""Local times of time zones, which DuckDB reads from ICU.

Java, and so Spark, takes a local time that exists twice as the earlier one, and ICU as the later one. The time is the
earlier one if the offset of the day before leads to the same local time:

    2026-10-25 02:30 in Berlin: ICU says 01:30 UTC, offset +1; with the offset of the day before, +2, it is 00:30 UTC

Both take a time that does not exist with the offset before the gap.
"""

from __future__ import annotations

from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_LOCAL = "timezone({1}, CAST({0} AS TIMESTAMPTZ))"


def _instants() -> str:
    late, with_late = bound("CAST(timezone({1}, {0}) AS TIMESTAMP)")
    day_before = f"({late} - INTERVAL 1 DAY)"
    offset = f"(timezone({{1}}, CAST({day_before} AS TIMESTAMPTZ)) - {day_before})"
    early, with_early = bound(f"({{0}} - {offset})")
    is_same = f"timezone({{1}}, CAST({early} AS TIMESTAMPTZ)) = {{0}}"
    chosen = f"CASE WHEN {early} < {late} THEN CASE WHEN {is_same} THEN {early} ELSE {late} END ELSE {late} END"
    return with_late(with_early(chosen))


def _known() -> str:
    name, bind = bound("arrow_zone_names({0})")
    unknown = failing("there is no such time zone")
    return bind(f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {name} IS NULL THEN {unknown} ELSE {name} END")


RENDERINGS: dict[str, Rendering] = {"local_time": _LOCAL, "instant": _instants(), "zone_name": _known()}
