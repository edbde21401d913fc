"""The timeline: when each epoch was committed. Recent epochs are in the manifest, older ones in blocks it names."""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rejoinder.errors import NotCommitted
from rejoinder.store.objects import ObjectStore
from rejoinder.store.run import new_name

BLOCK = 256


@dataclass(frozen=True)
class Timeline:
    """(epoch, milliseconds) in order; `blocks` are (first epoch, last epoch, object) of older ones."""

    recent: tuple[tuple[int, int], ...] = ()
    blocks: tuple[tuple[int, int, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {"recent": [list(entry) for entry in self.recent], "blocks": [list(block) for block in self.blocks]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Timeline:
        """Read what `to_json` gave."""
        recent = tuple((int(epoch), int(time)) for epoch, time in data["recent"])
        return cls(recent, tuple((int(first), int(last), str(name)) for first, last, name in data["blocks"]))

    def after(self, store: ObjectStore, epoch: int, time_ms: int, since: int) -> Timeline:
        """Add an epoch. Now and then the oldest entries move to a block; blocks before `since` are forgotten."""
        recent = (*self.recent, (epoch, time_ms))
        blocks = tuple(block for block in self.blocks if block[1] >= since)
        if len(recent) < 2 * BLOCK:
            return replace(self, recent=recent, blocks=blocks)
        moved = recent[:BLOCK]
        name = new_name("epochs", epoch).replace(".arrow", ".json")
        store.write(name, json.dumps(moved).encode())
        return Timeline(recent[BLOCK:], (*blocks, (moved[0][0], moved[-1][0], name)))

    @property
    def latest(self) -> int:
        """When the last epoch was committed; 0 before the first."""
        return self.recent[-1][1] if self.recent else 0

    def files(self) -> set[str]:
        """The objects that hold older epochs."""
        return {name for _, _, name in self.blocks}

    def entries(self, store: ObjectStore) -> list[tuple[int, int]]:
        """All epochs that are remembered, with their times."""
        older = [tuple(entry) for _, _, name in self.blocks for entry in json.loads(store.get(name))]
        return [(int(epoch), int(time)) for epoch, time in [*older, *self.recent]]

    def times(self, store: ObjectStore) -> dict[int, int]:
        """Milliseconds by epoch."""
        return dict(self.entries(store))

    def epoch_at(self, store: ObjectStore, time_ms: int) -> int:
        """The last epoch committed at or before a time."""
        entries = self.entries(store)
        at = bisect.bisect_right([time for _, time in entries], time_ms)
        if at == 0:
            raise NotCommitted("no epoch was committed by that time", hint="read a later time, or keep more history")
        return entries[at - 1][0]
