"""Make the watermarks of a source: each partition's follow its largest times at a lag, the slowest partition decides.

A watermark may also be told by who knows more than the times show: the higher of the two counts. A partition without
events for longer than a timeout is idle, and is said to be so once. The clock is handed in, so that time passes in a
test as the test says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rejoinder.watermarks.coalescer import Input, Released, WatermarkCoalescer

IDLE_AFTER_SECONDS = 60.0


class SourceWatermarks:
    """Watermarks of the event-time columns of a source; `lags` gives the lag of each key.

    >>> source = SourceWatermarks(1, lags={0: 3})
    >>> [source.events(0, {0: seen}) for seen in (10, 8, 12)]
    [[Watermark(key=0, time=7)], [], [Watermark(key=0, time=9)]]
    """

    def __init__(
        self,
        partitions: int | Iterable[Input],
        *,
        lags: Mapping[int, int],
        idle_after: float | None = IDLE_AFTER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lags = dict(lags)
        self._idle_after = idle_after
        self._clock = clock
        self._coalescer = WatermarkCoalescer(partitions)
        self._seen: dict[Input, float] = dict.fromkeys(self._coalescer.inputs, clock())

    @property
    def partitions(self) -> tuple[Input, ...]:
        """The partitions that are known, in the order in which they became so."""
        return self._coalescer.inputs

    def add(self, partition: Input) -> None:
        """Make a partition known: it holds every key back until it sends it or is idle. Nothing if it is known."""
        if partition not in self._seen:
            self._coalescer.add(partition)
            self._seen[partition] = self._clock()

    def events(self, partition: Input, largest: Mapping[int, int]) -> Released:
        """Take in the largest time of each key among new events of a partition; give what this releases."""
        return self.together({partition: largest}, {})

    def together(self, events: Mapping[Input, Mapping[int, int]], told: Mapping[Input, Mapping[int, int]]) -> Released:
        """Take in what partitions sent at once: the largest times of their events, and watermarks that are told.

        Gives what this releases. A told watermark that is behind the times seen adds nothing.
        """
        values: dict[Input, dict[int, int]] = {}
        for partition in (*events, *told):
            self._seen[partition] = self._clock()
            values[partition] = {key: seen - self._lags[key] for key, seen in events.get(partition, {}).items()}
            for key, value in told.get(partition, {}).items():
                values[partition][key] = max(value, values[partition].get(key, value))
        return self._coalescer.together(values)

    def idle(self, *partitions: Input) -> Released:
        """Leave partitions out until their next event or watermark; give what this releases."""
        return self._coalescer.idle(*partitions)

    def tick(self) -> Released:
        """Let time pass: partitions that were silent for long become idle; give what this releases."""
        return self._coalescer.idle(*self.silent())

    def silent(self) -> list[Input]:
        """The partitions that sent nothing for as long as it takes to be idle."""
        if self._idle_after is None:
            return []
        now = self._clock()
        return [partition for partition, seen in self._seen.items() if now - seen >= self._idle_after]

    def snapshot(self) -> dict[str, Any]:
        """Give the state as plain JSON data."""
        return {**self._coalescer.snapshot(), "seen": [[name, seen] for name, seen in self._seen.items()]}

    def restore(self, *snapshots: Mapping[str, Any], since: float | None = None) -> None:
        """Go on from snapshots. Silence is counted from then on, but not from before `since`, or from now on."""
        self._coalescer.restore(*snapshots)
        start = self._clock() if since is None else since
        seen = [dict(snapshot["seen"]) for snapshot in snapshots]
        self._seen = {p: max([start, *(each[p] for each in seen if p in each)]) for p in self._coalescer.inputs}
