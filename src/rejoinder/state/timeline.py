"""The timeline: the commit time of each epoch. Recent epochs are in the manifest, older ones in blocks."""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import NotCommitted
from rejoinder.store.objects.checked_objects import CheckedRef, read_checked, write_checked
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import new_name

BLOCK = 256


@dataclass(frozen=True)
class Timeline:
    """(epoch, milliseconds) in order; `blocks` are (first epoch, last epoch, checked object) of older ones."""

    recent: tuple[tuple[int, int], ...] = ()
    blocks: tuple[tuple[int, int, CheckedRef], ...] = ()
    clock: int | None = None
    """Processing time, if it is before the last commit: an epoch that replaces views does not advance it."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        blocks = [[first, last, *ref.to_json()] for first, last, ref in self.blocks]
        clock = {} if self.clock is None else {"clock": self.clock}
        return {"recent": [list(entry) for entry in self.recent], "blocks": blocks, **clock}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Timeline:
        """Decode the result of `to_json`."""
        recent = tuple((int(epoch), int(time)) for epoch, time in data["recent"])
        blocks = ((int(first), int(last), CheckedRef.from_json(ref)) for first, last, *ref in data["blocks"])
        return cls(recent, tuple(blocks), data.get("clock"))

    def after(self, store: ObjectStore, epoch: int, time_ms: int, since: int, clock: int | None = None) -> Timeline:
        """Return a copy with one more epoch. Old entries are moved to a block; blocks before `since` are dropped.

        `clock` is the processing time after the epoch; None means `time_ms`. Commit times never go back.
        """
        last = self.recent[-1][1] if self.recent else 0
        committed, reached = max(last, time_ms), time_ms if clock is None else clock
        recent = (*self.recent, (epoch, committed))
        blocks = tuple(block for block in self.blocks if block[1] >= since)
        behind = reached if reached != committed else None
        if len(recent) < 2 * BLOCK:
            return Timeline(recent, blocks, behind)
        moved = recent[:BLOCK]
        name = new_name("epochs", epoch).replace(".arrow", ".json")
        ref = write_checked(store, name, json.dumps(moved).encode())
        return Timeline(recent[BLOCK:], (*blocks, (moved[0][0], moved[-1][0], ref)), behind)

    @property
    def latest(self) -> int:
        """Processing time at the last epoch; 0 before the first."""
        if self.clock is not None:
            return self.clock
        return self.recent[-1][1] if self.recent else 0

    def files(self) -> set[str]:
        """Return the names of the blocks."""
        return {ref.name for _, _, ref in self.blocks}

    def entries(self, store: ObjectStore) -> list[tuple[int, int]]:
        """Return all epochs of the history with their times. Raises `Corrupt` if a block is missing or damaged."""
        texts = (read_checked(store, ref, "a block of the times of epochs") for _, _, ref in self.blocks)
        older = [tuple(entry) for text in texts for entry in json.loads(text)]
        return [(int(epoch), int(time)) for epoch, time in [*older, *self.recent]]

    def times(self, store: ObjectStore) -> dict[int, int]:
        """Return the commit times in milliseconds, by epoch."""
        return dict(self.entries(store))

    def epoch_at(self, store: ObjectStore, time_ms: int) -> int:
        """Return the last epoch committed at or before a time. Raises `NotCommitted` if there is none."""
        entries = self.entries(store)
        count = bisect.bisect_right([time for _, time in entries], time_ms)
        if count == 0:
            raise NotCommitted("no epoch was committed by that time", hint="read a later time, or keep more history")
        return entries[count - 1][0]
