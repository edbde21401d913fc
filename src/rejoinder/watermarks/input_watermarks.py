"""Deliver watermarks to an operator with several inputs: of each input by itself, and of all inputs together.

An input (named by its ordinal) may be fed by several instances upstream; these are always coalesced. What comes of it
is delivered at once with its ordinal, so that a join can tell the same key on two inputs apart; then, where a key has
come on all inputs that are not idle, once more as the watermark of the operator as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import StateError
from rejoinder.watermarks.coalescer import Idle, Released, Watermark, WatermarkCoalescer


@dataclass(frozen=True)
class Delivery:
    """A watermark or idle message: of the input `ordinal`, or of all inputs (None)."""

    ordinal: int | None
    message: Watermark | Idle


class InputWatermarks:
    """The watermarks at the inputs of one operator; `upstream` says how many instances feed each input.

    >>> inputs = InputWatermarks([1, 1])
    >>> inputs.watermark(0, key=0, time=10)
    [Delivery(ordinal=0, message=Watermark(key=0, time=10))]
    >>> [each.ordinal for each in inputs.watermark(1, key=0, time=8)]
    [1, None]
    """

    def __init__(self, upstream: Sequence[int]) -> None:
        self.edges = tuple(WatermarkCoalescer(instances) for instances in upstream)
        self.whole = WatermarkCoalescer(len(upstream))

    def watermark(self, ordinal: int, key: int, time: int, *, upstream: int = 0) -> list[Delivery]:
        """Take a watermark. Raises `WatermarkRegress` if it does not rise."""
        self.whole.value_of(ordinal, key)  # names the inputs there are, where this is none of them
        released = self.edges[ordinal].watermark(upstream, key, time)
        if not released and not self.edges[ordinal].is_idle:
            self.whole.event(ordinal)
        return self._deliver(ordinal, released)

    def event(self, ordinal: int, *, upstream: int = 0) -> None:
        """Note that rows came: neither the instance nor the input is idle any more."""
        self.whole.event(ordinal)
        self.edges[ordinal].event(upstream)

    def idle(self, ordinal: int, *, upstream: int = 0) -> list[Delivery]:
        """Take an idle message: the input is idle when all its instances are."""
        self.whole.value_of(ordinal, 0)
        return self._deliver(ordinal, self.edges[ordinal].idle(upstream))

    def snapshot(self) -> dict[str, Any]:
        """Give the state as plain JSON data."""
        return {"edges": [edge.snapshot() for edge in self.edges], "whole": self.whole.snapshot()}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from snapshots, the smallest values counting. The number of inputs has to be the same."""
        for inputs in (len(snapshot["edges"]) for snapshot in snapshots):
            if inputs != len(self.edges):
                raise StateError(
                    f"a snapshot of {inputs} input(s) cannot be restored to {len(self.edges)}",
                    hint="make the operator with as many inputs as it had",
                )
        for ordinal, edge in enumerate(self.edges):
            edge.restore(*(snapshot["edges"][ordinal] for snapshot in snapshots))
        self.whole.restore(*(snapshot["whole"] for snapshot in snapshots))

    def _deliver(self, ordinal: int, released: Released) -> list[Delivery]:
        result: list[Delivery] = []
        for message in released:
            result.append(Delivery(ordinal, message))
            if isinstance(message, Idle):
                onward = self.whole.idle(ordinal)
            else:
                onward = self.whole.watermark(ordinal, message.key, message.time)
            result.extend(Delivery(None, each) for each in onward)
        return result
