"""Finds objects that no manifest names: files of killed attempts, and manifests that a replaced driver left behind.

This is safe while the flow runs. A driver commits only on top of the newest manifest. Its manifest names files of that
one, and new files, which are in the folder of the next epoch, or of the newest epoch during a definition. So:

- an unnamed file in the folder of an older epoch can never be named again: it is garbage at once;
- an unnamed file in the folder of the newest epoch or a later one may belong to an attempt in progress: it is garbage
  once it is older than `older_than_seconds`, by the clock of the store;
- a manifest below the newest that is not part of its chain is garbage at once;
- a marker of a driver that did not write the newest manifest is garbage once it is old: its driver would have committed
  by then, or was replaced.

The newest manifest is read before the listing, the chain after it. So files that are committed meanwhile are in the
chain, and folders that are created meanwhile are not touched. Files with other names than those of a flow are not
touched.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rejoinder.store.commits.garbage import chain_below, is_own
from rejoinder.store.commits.manifest import FOLDER, Manifest, find
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.objects.object_store import Entry, ObjectStore

_MANIFEST = re.compile(rf"{FOLDER}/(\d{{20}})\.json")
MARKERS = "markers"
"""The folder of empty objects that prove to the workers of a cluster that they can access the state."""

_SINK_PROGRESS = re.compile(r"sinks/(\d{20})\.json")
_MARKER = re.compile(rf"{MARKERS}/([0-9a-f]{{16}})-[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Garbage:
    """An object that no manifest names: what kind it is, its name or path, its size in bytes."""

    kind: str
    name: str
    bytes: int


def find_garbage(store: ObjectStore, named: Callable[[Manifest], set[str]], older_than_seconds: float) -> list[Garbage]:
    """Return the objects that can be deleted. Lists the whole store, and reads the retained manifests."""
    before = newest(store)
    if before is None:
        return []
    entries = store.real_entries()
    after = newest(store) or before
    chain = [after, *(find(store, version) for version in chain_below(store, after.version, after.parent))]
    versions = {manifest.version for manifest in chain if manifest is not None}
    live = {name for manifest in chain if manifest is not None for name in named(manifest)}
    old = _store_time(store) - older_than_seconds
    garbage = []
    for entry in entries:
        if entry.name in live:
            continue
        if is_own(entry.name):
            if _epoch(entry.name) < before.epoch or entry.modified < old:
                garbage.append(Garbage("orphaned files", entry.name, entry.size))
        elif match := _MANIFEST.fullmatch(entry.name):
            if int(match[1]) < before.version and int(match[1]) not in versions:
                garbage.append(Garbage("manifests of replaced drivers", entry.name, entry.size))
        elif (match := _SINK_PROGRESS.fullmatch(entry.name)) and int(match[1]) < min(versions):
            garbage.append(Garbage("progress of sinks", entry.name, entry.size))
        elif _is_abandoned(entry, {before.writer, after.writer}, old):
            garbage.append(Garbage("markers of killed drivers", entry.name, entry.size))
    return garbage


def delete_garbage(store: ObjectStore, garbage: Iterable[Garbage]) -> None:
    """Delete the objects that `find_garbage` returned."""
    store.delete([item.name for item in garbage])


def _is_abandoned(entry: Entry, writers: set[str], old: float) -> bool:
    marker = _MARKER.fullmatch(entry.name)
    return marker is not None and marker[1] not in writers and entry.modified < old


def _epoch(name: str) -> int:
    return int(name.split("/")[1])


def _store_time(store: ObjectStore) -> float:
    """Return the time, in seconds, of the clock that sets the modification times of objects."""
    milliseconds = store.time_ms()
    return time.time() if milliseconds is None else milliseconds / 1000
