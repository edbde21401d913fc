"""Garbage collection: deletes files that no retained manifest names, then old manifests, oldest first.

Invariants:
- a file is deleted only if no retained manifest names it, and one of two conditions holds: an older manifest of this
  flow named it; or it lies in the folder of an older manifest's epoch, which no retained manifest has. The latter was
  compacted away or expired within that epoch, or a killed attempt wrote it; a driver that could still commit that epoch
  is fenced;
- a manifest is deleted after all files that only it and older ones named, and after every older manifest. So a killed
  call leaves manifests that still name what it did not delete, the next call continues from there, and the stored
  versions have no gaps (see `manifest`);
- of files that no manifest named, only those with a name of the form of `run.new_name` are deleted, and none through a
  link: files that others put into the state are not touched;
- the newest version and its parent are always retained: `commit` checks the parent after it has published;
- version 0 is deleted after `flow.json` names a later version.

Requirement on the driver: a new manifest names new files, and files that a retained manifest names; never a file that
only dropped manifests name.

Two concurrent calls delete the same objects twice, which is harmless. Cost: a call reads each manifest that it drops
and each retained one that is not in `seen`, and lists the folder of each epoch that it drops. The cost does not depend
on the number of objects in the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rejoinder.store.commits.lost_commits import mark_flow
from rejoinder.store.commits.manifest import Manifest, find, name_of
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import folder_of

Named: TypeAlias = "Callable[[Manifest], set[str]]"
Seen: TypeAlias = "dict[str, tuple[str, frozenset[str], int]]"
_BATCH = 64
_OWN = re.compile(r"(runs|epochs|positions|merge)/(?:\d{10,}|-\d{9})/[0-9a-f]{32}\.(?:arrow|json|log)")


def is_own(name: str) -> bool:
    """Whether a name has the form of `run.new_name`. Other files in the folder of an epoch must not be deleted.

    >>> is_own("runs/0000000012/" + "ab" * 16 + ".arrow"), is_own("runs/0000000012/notes.txt")
    (True, False)
    """
    return _OWN.fullmatch(name) is not None


@dataclass(frozen=True)
class Collected:
    """How many versions and files a collection deleted."""

    versions: int
    files: int


def collect(
    store: ObjectStore,
    keep_versions: int,
    named: Named,
    *,
    known: Manifest | None = None,
    seen: Seen | None = None,
) -> Collected:
    """Retain the newest `keep_versions` (at least two) versions, and delete files that only older ones named.

    `named` returns the files that a manifest names. `known` is a manifest that was the newest a while ago. A driver
    that calls this after every commit passes the same dict as `seen` each time: it caches the files of the retained
    manifests by checksum, so that a call reads only the new manifests and those that it drops.
    """
    newest = latest(store, known)
    if newest is None:
        return Collected(0, 0)
    floor = newest.version - max(keep_versions, 2) + 1
    if floor <= 0 or not store.exists(name_of(floor - 1)):
        return Collected(0, 0)
    seen = {} if seen is None else seen
    retained, parent = _retained(store, newest, floor, named, seen)
    oldest = min(epoch for _, _, epoch in seen.values())
    dropped = chain_below(store, floor, parent)
    if 0 in dropped:  # a first commit that is sent again must find that it is no longer the newest (see `commit`)
        mark_flow(store, newest, newest.version)
    deleted: set[str] = set()
    for start in range(0, len(dropped), _BATCH):
        batch = dropped[start : start + _BATCH]
        manifests = [manifest for version in batch if (manifest := find(store, version))]
        garbage = {file for manifest in manifests for file in named(manifest)}
        for epoch in {manifest.epoch for manifest in manifests if manifest.epoch < oldest}:
            garbage |= {entry.name for entry in store.real_entries(folder_of(epoch)) if is_own(entry.name)}
        garbage = {file for file in garbage - deleted if not any(file in files for files in retained)}
        store.delete(sorted(garbage))
        for version in batch:
            store.delete([name_of(version)])  # one call each: a bulk delete keeps no order
        deleted |= garbage
    return Collected(len(dropped), len(deleted))


def _retained(
    store: ObjectStore, newest: Manifest, floor: int, named: Named, seen: Seen
) -> tuple[list[frozenset[str]], str | None]:
    """Return the files of each retained manifest, and the checksum of the manifest below the oldest of them.

    The checksum is None if they do not reach down to `floor`: a concurrent collection that retains less drops the rest.
    """
    retained: Seen = {}
    checksum: str | None = newest.checksum
    for version in range(newest.version, floor - 1, -1):
        if checksum not in seen:
            manifest = newest if version == newest.version else find(store, version)
            if manifest is None or manifest.checksum != checksum:
                checksum = None
                break
            seen[checksum] = (manifest.parent, frozenset(named(manifest)), manifest.epoch)
        retained[checksum] = seen[checksum]
        checksum = seen[checksum][0]
    for stale in seen.keys() - retained.keys():
        del seen[stale]
    return [files for _, files, _ in retained.values()], checksum


def chain_below(store: ObjectStore, floor: int, checksum: str | None) -> list[int]:
    """Return the stored versions below `floor`, ascending, as far down as the chain from `checksum` goes."""
    chain: list[int] = []
    for version in range(floor - 1, -1, -1):
        manifest = find(store, version) if checksum else None
        if manifest is None or manifest.checksum != checksum:  # dropped before, or left by a fenced driver
            break
        chain.append(version)
        checksum = manifest.parent
    return chain[::-1]
