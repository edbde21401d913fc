"""The epoch log: durations by part and counts of the last epochs. The manifest has it, so a stopped flow shows it too.

The manifest of an epoch is written before the epoch knows how long its commit and its sinks took. The next commit adds
these parts, so the last entry of a log never has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Part = Literal["rounds", "emission", "commit", "sinks"]
PARTS: tuple[Part, ...] = ("rounds", "emission", "commit", "sinks")
"""`rounds` includes scanning the sources; `commit` includes deleting files of old versions."""
ENTRIES = 64
NAMES = 8
"""An entry names this many sources and views, those with most rows. So a flow with many views has a small manifest."""
OTHERS = ""
"""The name under which the rows of all other sources or views are counted."""


@dataclass(frozen=True)
class EpochEntry:
    """The durations and counts of one epoch."""

    epoch: int
    time_ms: int
    """Processing time of the epoch."""
    parts: Mapping[Part, int] = field(default_factory=dict)
    """Milliseconds by part. Parts that are not known yet are left out."""
    rows_in: Mapping[str, int] = field(default_factory=dict)
    """Rows read by source; `OTHERS` counts the sources that are not named."""
    rows_out: Mapping[str, int] = field(default_factory=dict)
    """Changes by view; `OTHERS` counts the views that are not named."""
    bytes_written: int = 0
    state_bytes: int = 0
    late: int = 0
    lag_ms: int | None = None
    """The age of the newest file that was read; None if no file was read."""

    @property
    def milliseconds(self) -> int:
        """The duration of all known parts."""
        return sum(self.parts.values())

    def to_json(self) -> list[Any]:
        """Return plain data for the manifest."""
        parts = [self.parts.get(part) for part in PARTS]
        counts = [self.bytes_written, self.state_bytes, self.late, self.lag_ms]
        return [self.epoch, self.time_ms, parts, dict(self.rows_in), dict(self.rows_out), *counts]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> EpochEntry:
        """Decode the result of `to_json`."""
        epoch, time_ms, parts, rows_in, rows_out, *counts = data
        known = {part: int(value) for part, value in zip(PARTS, parts, strict=True) if value is not None}
        return cls(int(epoch), int(time_ms), known, rows_in, rows_out, *counts)


@dataclass(frozen=True)
class EpochLog:
    """The last epochs, oldest first."""

    entries: tuple[EpochEntry, ...] = ()

    def to_json(self) -> list[Any]:
        """Return plain data for the manifest."""
        return [entry.to_json() for entry in self.entries]

    @classmethod
    def from_json(cls, data: Iterable[Sequence[Any]]) -> EpochLog:
        """Decode the result of `to_json`."""
        return cls(tuple(map(EpochEntry.from_json, data)))

    def after(self, entry: EpochEntry) -> EpochLog:
        """Return the log with one more epoch, and without the oldest one if it is full."""
        return EpochLog((*self.entries, entry)[-ENTRIES:])

    def with_parts(self, seconds: Mapping[Part, float]) -> EpochLog:
        """Return the log with more parts of its last epoch."""
        if not self.entries or not seconds:
            return self
        *older, last = self.entries
        return EpochLog((*older, replace(last, parts={**last.parts, **in_milliseconds(seconds)})))


def in_milliseconds(seconds: Mapping[Part, float]) -> dict[Part, int]:
    """Round the durations of parts to milliseconds."""
    return {part: round(value * 1000) for part, value in seconds.items()}


def largest(rows: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts by name, and the sum of all others.

    >>> largest({"a": 1, "b": 0})
    {'a': 1}
    """
    counted = sorted(((name, count) for name, count in rows.items() if count), key=lambda item: -item[1])
    others = sum(count for _, count in counted[NAMES:])
    return {**dict(counted[:NAMES]), **({OTHERS: others} if others else {})}
