"""Finds what nobody names in a store: the work of killed attempts, and manifests that a replaced driver left behind.

It is safe while the flow runs. A driver commits on top of the newest manifest only, and names files that this one
names, and new ones: those are in the folder of the next epoch, or of the newest one if it is at a definition. So

- an unnamed file in the folder of an older epoch can never be named again: it is garbage at once;
- an unnamed file in the folder of the newest epoch or a later one may be an attempt under way: it is garbage once it is
  older than `older_than_seconds`, by the clock of the store;
- a manifest below the newest that is not part of its chain is garbage at once;
- a marker of another driver than that of the newest manifest is garbage once it is old: by then its driver would have
  committed, or was replaced.

The newest manifest is read before the listing, the chain after it. So what is committed meanwhile is found named, and
the folders that are new since then are not touched. Names that no flow makes are not touched at all.
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
"""The folder of empty objects by which workers of a cluster know that they see the state."""

_NOTE = re.compile(r"sinks/(\d{20})\.json")
_MARKER = re.compile(rf"{MARKERS}/([0-9a-f]{{16}})-[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Garbage:
    """Something that nobody names: what it is, its name or path, how many bytes."""

    kind: str
    name: str
    bytes: int


def find_garbage(store: ObjectStore, named: Callable[[Manifest], set[str]], older_than_seconds: float) -> list[Garbage]:
    """List what can be deleted. Lists the whole store, and reads the manifests that are retained."""
    before = newest(store)
    if before is None:
        return []
    entries = store.real_entries()
    after = newest(store) or before
    chain = [after, *(find(store, version) for version in chain_below(store, after.version, after.parent))]
    versions = {each.version for each in chain if each is not None}
    wanted = {name for each in chain if each is not None for name in named(each)}
    old = _store_time(store) - older_than_seconds
    found = []
    for entry in entries:
        if entry.name in wanted:
            continue
        if is_own(entry.name):
            if _epoch(entry.name) < before.epoch or entry.modified < old:
                found.append(Garbage("orphaned files", entry.name, entry.size))
        elif manifest := _MANIFEST.fullmatch(entry.name):
            if int(manifest[1]) < before.version and int(manifest[1]) not in versions:
                found.append(Garbage("manifests of replaced drivers", entry.name, entry.size))
        elif (note := _NOTE.fullmatch(entry.name)) and int(note[1]) < min(versions):
            found.append(Garbage("notes of sinks", entry.name, entry.size))
        elif _is_abandoned(entry, {before.writer, after.writer}, old):
            found.append(Garbage("markers of killed drivers", entry.name, entry.size))
    return found


def delete_garbage(store: ObjectStore, garbage: Iterable[Garbage]) -> None:
    """Delete what `find_garbage` listed."""
    store.delete([each.name for each in garbage])


def _is_abandoned(entry: Entry, writers: set[str], old: float) -> bool:
    marker = _MARKER.fullmatch(entry.name)
    return marker is not None and marker[1] not in writers and entry.modified < old


def _epoch(name: str) -> int:
    return int(name.split("/")[1])


def _store_time(store: ObjectStore) -> float:
    """The time by the clock that dates objects, in seconds."""
    theirs = store.time_ms()
    return time.time() if theirs is None else theirs / 1000
