"""Local times of time zones, which DuckDB reads from ICU.

Java, and so Spark, takes a local time that exists twice as the earlier one, and ICU as the later one. The time is the
earlier one if the offset of the day before leads to the same local time:

    2026-10-25 02:30 in Berlin: ICU says 01:30 UTC, offset +1; with the offset of the day before, +2, it is 00:30 UTC

Both take a time that does not exist with the offset before the gap.
"""

from __future__ import annotations

from rejoinder.kernels.duckdb.functions.parts.datetime_text import has_offset, read_timestamp
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_LOCAL = "timezone({1}, CAST({0} AS TIMESTAMPTZ))"


def instant_text(local: str = "{0}", zone: str = "{1}") -> str:
    """DuckDB text of the instant of a local time."""
    late, with_late = bound(f"CAST(timezone({zone}, {local}) AS TIMESTAMP)")
    day_before = f"({late} - INTERVAL 1 DAY)"
    offset = f"(timezone({zone}, CAST({day_before} AS TIMESTAMPTZ)) - {day_before})"
    early, with_early = bound(f"({local} - {offset})")
    is_same = f"timezone({zone}, CAST({early} AS TIMESTAMPTZ)) = {local}"
    chosen = f"CASE WHEN {early} < {late} THEN CASE WHEN {is_same} THEN {early} ELSE {late} END ELSE {late} END"
    return with_late(with_early(chosen))


def _known() -> str:
    name, bind = bound("arrow_zone_names({0})")
    unknown = failing("there is no such time zone")
    return bind(f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {name} IS NULL THEN {unknown} ELSE {name} END")


def _near() -> str:
    """The instant of the local time {0} with the offset of the instant {1}, if the zone has that offset then."""
    same, with_same = bound("({0} + ({1} - timezone({2}, CAST({1} AS TIMESTAMPTZ))))")
    is_same = f"timezone({{2}}, CAST({same} AS TIMESTAMPTZ)) = {{0}}"
    return with_same(f"CASE WHEN {is_same} THEN {same} ELSE {instant_text(zone='{2}')} END")


def _read(wrong: str) -> str:
    """Read an instant from a text; one without an offset is a local time."""
    local, with_local = bound(read_timestamp("{0}", zoned=False))
    instant = f"CASE WHEN {has_offset('{0}')} THEN {read_timestamp('{0}', zoned=True)} ELSE {instant_text(local)} END"
    read = with_local(instant)
    return f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({read}, {wrong}) END"


RENDERINGS: dict[str, Rendering] = {
    "instant": instant_text(),
    "instant_near": _near(),
    "local_time": _LOCAL,
    "read_instant": _read(failing("a value of type string cannot be cast to timestamp")),
    "try_read_instant": _read("NULL"),
    "zone_name": _known(),
}
