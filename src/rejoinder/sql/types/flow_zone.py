"""The time zone of the flow whose text is being bound, and terms that put it into the tree.

In Spark, a TIMESTAMP is an instant, and `spark.sql.session.timeZone` says which local time it is. Here that zone
belongs to the flow (`Catalog.time_zone`). What depends on it becomes a call with the zone as an argument: a tree says
by itself what it computes, and two zones make two relations. In UTC, a local time is the instant, and no such call is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.kernels.zones.zone_offsets import UTC, offset_range
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, call

Part = Literal["all", "days", "rest"]
"""What of an interval is added: all of it, its whole days and months, or the rest."""
_ZONE: ContextVar[str] = ContextVar("the zone of the flow", default=UTC)


@contextmanager
def bound_in(zone: str) -> Iterator[None]:
    """Bind what is bound inside in a zone. The binder calls this once per text, with the zone of the catalog."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def flow_zone() -> str:
    """Return the name of the zone, as DuckDB knows it."""
    return _ZONE.get()


def is_local() -> bool:
    """Say whether local times differ from UTC."""
    return _ZONE.get() != UTC


def spread() -> int:
    """Return by how much two offsets of the zone differ at most, in microseconds."""
    least, most = offset_range(flow_zone())
    return most - least


def local(time: Term) -> Term:
    """Return the local time of a TIMESTAMP in the zone of the flow, as a TIMESTAMP_NTZ; any other term as it is."""
    if not is_local() or time.type != spark_types.TIMESTAMP:
        return time
    least, most = offset_range(flow_zone())
    monotone = MonotoneArgument(0, shift(least), more=most - least)
    return call("local_time", spark_types.TIMESTAMP_NTZ, time, _zone(), nulls="propagated", monotone=monotone)


def instant(time: Term, near: Term | None = None, bounds: tuple[int, int] = (0, 0)) -> Term:
    """Return the TIMESTAMP of a local time: the earlier one of two; with the offset before a gap.

    `near`: a TIMESTAMP from which the result is known to differ by amounts in `bounds`.
    """
    if near is not None:
        monotone = MonotoneArgument(2, shift(bounds[0]), more=bounds[1] - bounds[0])
        return call("instant", spark_types.TIMESTAMP, time, _zone(), near, nulls="propagated", monotone=monotone)
    least, most = offset_range(flow_zone())
    monotone = MonotoneArgument(0, shift(-most), more=most - least)
    return call("instant", spark_types.TIMESTAMP, time, _zone(), nulls="propagated", monotone=monotone)


def changed(time: Term, change: Callable[[Term], Term], bounds: tuple[int, int] | None = None) -> Term:
    """Change the local time of a TIMESTAMP, and return the instant with the same offset, if there is one.

    So does Java's ZonedDateTime. `bounds`: the least and the largest amount by which the change moves a time.
    """
    if not is_local() or time.type != spark_types.TIMESTAMP:
        return change(time)
    monotone = None
    if bounds is not None:
        least, most = bounds[0] - spread(), bounds[1] + spread()
        monotone = MonotoneArgument(1, shift(least), more=most - least)
    made = change(local(time))
    can_fail = made.can_fail
    return call("instant_near", time.type, made, time, _zone(), can_fail=can_fail, monotone=monotone)


def moved(time: Term, move: Callable[[Term, Part], Term], bounds: tuple[int, int] | None = None) -> Term:
    """Move a time by an interval: by its days on the calendar of the zone, then by the rest on the clock.

    `bounds`: the least and the largest amount, as in `changed`.
    """
    if not is_local() or time.type != spark_types.TIMESTAMP:
        return move(time, "all")
    return move(changed(time, lambda start: move(start, "days"), bounds), "rest")


def read_text(text: Term, *, is_try: bool) -> Term:
    """Read a TIMESTAMP from a text: in the zone of the flow, unless the text has an offset."""
    name = "try_read_instant" if is_try else "read_instant"
    return call(name, spark_types.TIMESTAMP, text, _zone(), can_fail=not is_try)


def _zone() -> Term:
    return Term(nodes.Literal(flow_zone(), spark_types.STRING))
