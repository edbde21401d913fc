"""Deliver watermarks to an operator with several inputs: those of each input, and those of all inputs together.

Several upstream instances may feed an input, which has an ordinal; their watermarks are always coalesced. The result is
delivered with the ordinal, so that a join can distinguish the same key on two inputs. When a key has arrived on all
inputs that are not idle, it is delivered once more, as the watermark of the whole operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import StateError
from rejoinder.watermarks.coalescer import Emitted, Idle, Watermark, WatermarkCoalescer


@dataclass(frozen=True)
class Delivery:
    """A watermark or idle message: of the input `ordinal`, or of all inputs (None)."""

    ordinal: int | None
    message: Watermark | Idle


class InputWatermarks:
    """The watermarks at the inputs of one operator; `upstream` is the number of instances that feed each input.

    >>> inputs = InputWatermarks([1, 1])
    >>> inputs.watermark(0, key=0, time=10)
    [Delivery(ordinal=0, message=Watermark(key=0, time=10))]
    >>> [delivery.ordinal for delivery in inputs.watermark(1, key=0, time=8)]
    [1, None]
    """

    def __init__(self, upstream: Sequence[int]) -> None:
        self.edges = tuple(WatermarkCoalescer(instances) for instances in upstream)
        self.whole = WatermarkCoalescer(len(upstream))

    def watermark(self, ordinal: int, key: int, time: int, *, upstream: int = 0) -> list[Delivery]:
        """Receive a watermark and return what is delivered. Raises `WatermarkRegress` if it does not rise."""
        self.whole.value_of(ordinal, key)  # raises `MissingInput`, with the inputs, for an unknown ordinal
        emitted = self.edges[ordinal].watermark(upstream, key, time)
        if not emitted and not self.edges[ordinal].is_idle:
            self.whole.event(ordinal)
        return self._deliver(ordinal, emitted)

    def event(self, ordinal: int, *, upstream: int = 0) -> None:
        """Mark the instance and the input as active because rows arrived."""
        self.whole.event(ordinal)
        self.edges[ordinal].event(upstream)

    def idle(self, ordinal: int, *, upstream: int = 0) -> list[Delivery]:
        """Receive an idle message: the input is idle once all its instances are. Returns what is delivered."""
        self.whole.value_of(ordinal, 0)
        return self._deliver(ordinal, self.edges[ordinal].idle(upstream))

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain JSON data."""
        return {"edges": [edge.snapshot() for edge in self.edges], "whole": self.whole.snapshot()}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Continue from snapshots; the smallest values count. Raises `StateError` if the number of inputs differs."""
        for inputs in (len(snapshot["edges"]) for snapshot in snapshots):
            if inputs != len(self.edges):
                raise StateError(
                    f"a snapshot of {inputs} input(s) cannot be restored to {len(self.edges)}",
                    hint="create the operator with as many inputs as it had",
                )
        for ordinal, edge in enumerate(self.edges):
            edge.restore(*(snapshot["edges"][ordinal] for snapshot in snapshots))
        self.whole.restore(*(snapshot["whole"] for snapshot in snapshots))

    def _deliver(self, ordinal: int, emitted: Emitted) -> list[Delivery]:
        result: list[Delivery] = []
        for message in emitted:
            result.append(Delivery(ordinal, message))
            if isinstance(message, Idle):
                onward = self.whole.idle(ordinal)
            else:
                onward = self.whole.watermark(ordinal, message.key, message.time)
            result.extend(Delivery(None, combined) for combined in onward)
        return result
