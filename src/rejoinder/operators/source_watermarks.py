"""Make the watermarks of a source: each partition's follow its largest times at a lag, the slowest partition decides.

A partition without events for longer than a timeout is idle, and is said to be so once. The clock is handed in, so that
time passes in a test as the test says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rejoinder.operators.coalescer import Input, Released, WatermarkCoalescer

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

    def events(self, partition: Input, largest: Mapping[int, int]) -> Released:
        """Take in the largest time of each key among new events of a partition; give what this releases."""
        result = self._coalescer.event(partition)
        self._seen[partition] = self._clock()
        for key, seen in sorted(largest.items()):
            value, last = seen - self._lags[key], self._coalescer.value_of(partition, key)
            if last is None or value > last:
                result += self._coalescer.watermark(partition, key, value)
        return result

    def tick(self) -> Released:
        """Let time pass: partitions that were silent for long become idle; give what this releases."""
        result: Released = []
        if self._idle_after is not None:
            now = self._clock()
            for partition, seen in self._seen.items():
                if now - seen >= self._idle_after:
                    result += self._coalescer.idle(partition)
        return result

    def snapshot(self) -> dict[str, Any]:
        """Give the state as plain JSON data."""
        return self._coalescer.snapshot()

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from snapshots. Silence is counted from now on."""
        self._coalescer.restore(*snapshots)
        self._seen = dict.fromkeys(self._coalescer.inputs, self._clock())
