"""Generate the watermarks of a source: the minimum over its partitions of the largest event time minus a lag.

A partition may also get explicit watermarks; the higher of the two counts. A partition without events for longer than a
timeout becomes idle. The clock is a parameter, so that tests control the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rejoinder.watermarks.coalescer import Emitted, Input, WatermarkCoalescer

IDLE_AFTER_SECONDS = 60.0


class SourceWatermarks:
    """Watermarks of the event-time columns of a source; `lags` is the lag of each key.

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
        """The partitions, in the order in which they were added."""
        return self._coalescer.inputs

    def add(self, partition: Input) -> None:
        """Add a partition, if it is new. It blocks every key until it sends that key or is idle."""
        if partition not in self._seen:
            self._coalescer.add(partition)
            self._seen[partition] = self._clock()

    def events(self, partition: Input, largest: Mapping[int, int]) -> Emitted:
        """Receive the largest time of each key among new events of a partition, and return what is emitted."""
        return self.update({partition: largest}, {})

    def update(self, events: Mapping[Input, Mapping[int, int]], explicit: Mapping[Input, Mapping[int, int]]) -> Emitted:
        """Receive the largest event times and the explicit watermarks of partitions at once; return what is emitted.

        An explicit watermark below that of the event times has no effect.
        """
        watermarks: dict[Input, dict[int, int]] = {}
        for partition in (*events, *explicit):
            self._seen[partition] = self._clock()
            by_key = {key: largest - self._lags[key] for key, largest in events.get(partition, {}).items()}
            for key, value in explicit.get(partition, {}).items():
                by_key[key] = max(value, by_key.get(key, value))
            watermarks[partition] = by_key
        return self._coalescer.update(watermarks)

    def idle(self, *partitions: Input) -> Emitted:
        """Mark partitions as idle until their next event or watermark; return what is emitted."""
        return self._coalescer.idle(*partitions)

    def tick(self) -> Emitted:
        """Mark partitions as idle that exceeded the timeout; return what is emitted."""
        return self._coalescer.idle(*self.silent())

    def silent(self) -> list[Input]:
        """Return the partitions that sent nothing for longer than the timeout."""
        if self._idle_after is None:
            return []
        now = self._clock()
        return [partition for partition, seen in self._seen.items() if now - seen >= self._idle_after]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain JSON data."""
        return {**self._coalescer.snapshot(), "seen": [[name, seen] for name, seen in self._seen.items()]}

    def restore(self, *snapshots: Mapping[str, Any], since: float | None = None) -> None:
        """Continue from snapshots. The timeout counts from the last event, or from `since` (default: now) if later."""
        self._coalescer.restore(*snapshots)
        start = self._clock() if since is None else since
        seen = [dict(snapshot["seen"]) for snapshot in snapshots]
        self._seen = {p: max([start, *(times[p] for times in seen if p in times)]) for p in self._coalescer.inputs}
