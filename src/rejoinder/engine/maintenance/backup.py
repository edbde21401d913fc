"""A hot backup: a copy of one committed version of a state, made while its flow runs.

Invariants:
- the manifest is written last, so a backup that was interrupted is either the one before it or none;
- every object that the manifest names is compared with the size and checksum in it when it is copied. One that an
  earlier backup had copied is compared again, on an object store by its size only;
- what the flow drops while it is copied does no harm: then a newer manifest is there, and the copy goes on with that.
  It has most of its objects already. So a backup needs no lock, and the flow does not know of it.

Rows that were inserted and not read yet are copied too. Spark's checkpoint is not: it is written anew from the
manifest. The one exception is the state of operators in the user's own DataFrames, which Spark alone has.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from rejoinder.engine.maintenance.backup_targets import CHECKPOINT, INBOX, check_content, check_place
from rejoinder.errors import Corrupt, NotCommitted, StorageFailed, Unsupported
from rejoinder.state.flow_state import State
from rejoinder.state.positions import STREAMS, position_of
from rejoinder.state.sink_progress import note_name, recorded
from rejoinder.state.timeline import Timeline
from rejoinder.store.commits.lost_commits import mark_flow, write_hint
from rejoinder.store.commits.manifest import Manifest, name_of, versions
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.checked_objects import CheckedRef
from rejoinder.store.objects.object_store import ObjectStore

_TRIES = 100


@dataclass(frozen=True)
class Backup:
    """What was copied: up to which epoch, how many objects that was in all, and how much of it was new."""

    epoch: int
    objects: int
    copied: int
    copied_bytes: int


def backup(source: ObjectStore, target: ObjectStore) -> Backup:
    """Copy the newest committed version of a state to `target`, which is empty or an earlier backup of the same flow.

    May run beside the flow. Raises `NotCommitted` if there is nothing to copy, `Corrupt` if the state or the copy is
    damaged, `DefinitionConflict` if `target` is the state itself, inside of it or around it, or if it holds a newer
    backup or something else.
    """
    manifest = latest(source)
    if manifest is None:
        raise NotCommitted(f"there is no state in {source.url}", hint="give the state directory of a flow")
    check_place(source, target)
    check_content(target, manifest)
    # Rows that wait come first, and the manifest is looked up after them: what it has not read may be vacuumed as soon
    # as a later epoch has. Those that were inserted since are copied at the end.
    unread = _copy_unread(source, target)
    manifest = latest(source) or manifest
    copied: dict[str, int] = {}
    for _ in range(_TRIES):
        refs = refs_of(manifest)
        try:
            for ref in refs:
                copied |= _copy(source, target, ref)
            break
        except Corrupt:
            newest = latest(source)
            if newest is None or newest.version == manifest.version:
                raise
            manifest = newest  # it was dropped while we copied
    else:
        raise StorageFailed(
            "the state changes faster than it can be copied",
            detail=f"{len(copied)} objects are copied to {target.url}, and others were dropped meanwhile",
            hint="copy to a faster storage, or stop the flow for the copy",
        )
    beside = {*_copy_note(source, target, manifest), *unread, *_copy_unread(source, target)}
    beside |= {*_copy_frames(source, target, manifest)}
    check_content(target, manifest)  # another backup to the same place may have been faster
    target.put(manifest.name, manifest.to_bytes())
    mark_flow(target, manifest, manifest.version, first=manifest.version)
    write_hint(target, manifest)
    _drop_others(target, manifest, {ref.name for ref in refs} | beside)
    return Backup(manifest.epoch, len(refs) + len(beside) + 1, len(copied), sum(copied.values()))


def refs_of(manifest: Manifest) -> list[CheckedRef]:
    """All objects that a manifest names with their checksums: runs, times of epochs, files that sources have read."""
    runs = {ref.name: ref for parts in State.from_json(manifest.spines).parts.values() for p in parts for ref in p.refs}
    positions = manifest.extra["positions"]
    logs = [position_of(positions, stream).files for stream in positions.get(STREAMS, {})]
    return [
        *(CheckedRef(ref.name, ref.size, ref.crc) for ref in runs.values()),
        *(ref for _, _, ref in Timeline.from_json(manifest.extra["timeline"]).blocks),
        *(ref for log in logs for ref, _ in log.chunks),
    ]


def _copy(source: ObjectStore, target: ObjectStore, ref: CheckedRef) -> dict[str, int]:
    """Copy an object unless the target has it. Gives its size by name if it was copied.

    What an earlier backup copied is read again only if that is not a download: an object store puts whole objects, and
    checks by itself what it holds.
    """
    is_there = target.exists(ref.name) and target.size(ref.name) == ref.size
    if is_there and (not target.is_local or zlib.crc32(target.map(ref.name, ref.size)) == ref.crc):
        return {}
    data = source.map(ref.name, ref.size)
    if zlib.crc32(data) != ref.crc:
        source.drop_cached(ref.name)  # it may be this host's copy that is damaged
        data = source.map(ref.name, ref.size)
    if zlib.crc32(data) != ref.crc:
        raise Corrupt(
            f"`{ref.name}` fails its checksum and cannot be copied",
            detail=f"the manifest says {ref.size} bytes with checksum {ref.crc:08x}",
            hint="restore it from an earlier backup: no epoch has been committed on top of the damaged file",
        )
    target.put(ref.name, data)
    return {ref.name: ref.size}


def _copy_note(source: ObjectStore, target: ObjectStore, manifest: Manifest) -> list[str]:
    """Copy what says how far sinks are. Without it they get the last epoch once more, if they do not remember it."""
    name = note_name(manifest)
    data = source.find(name)
    if data is None:
        return []
    target.put(name, data)
    recorded(target, manifest)  # raises if it is damaged
    return [name]


def _copy_unread(source: ObjectStore, target: ObjectStore) -> list[str]:
    """Copy the rows of `insert`: what the manifest has not read is read after a restore."""
    copied = []
    for name in _objects(source, INBOX):
        data = None if target.exists(name) else source.find(name)
        if data is not None:
            target.put(name, data)
        if data is not None or target.exists(name):  # else an epoch has read it, and it was vacuumed meanwhile
            copied.append(name)
    return copied


def _copy_frames(source: ObjectStore, target: ObjectStore, manifest: Manifest) -> list[str]:
    """Copy the state that Spark keeps for DataFrames, if there is any."""
    spark = manifest.extra["positions"].get("spark", {})
    if "header" not in spark:
        return []
    folder = f"{CHECKPOINT}/{spark['folder']}"
    names = [*_objects(source, f"{folder}/state"), *_objects(source, f"{folder}/commits")]
    if not names:
        raise Unsupported(
            "this flow has a DataFrame with state of its own, and its checkpoint is not beside the state",
            detail=f"there is no `{folder}/state` in {source.url}",
            hint="stop the flow and copy the state and the checkpoint, or do what needs state in a view",
        )
    copied = []
    for name in names:
        data = source.find(name)
        if data is not None:  # else Spark has removed an old version meanwhile
            target.put(name, data)
            copied.append(name)
    return copied


def _objects(store: ObjectStore, folder: str) -> list[str]:
    """What is in a folder, without files that are being written and checksums of Hadoop's."""
    return [name for name in store.list(folder) if "/." not in name]


def _drop_others(target: ObjectStore, manifest: Manifest, wanted: set[str]) -> None:
    """Remove what an earlier backup, or an interrupted one, had copied and this one does not name."""
    for version in versions(target):
        if version < manifest.version:
            target.delete([name_of(version)])
    folders = ("runs", "epochs", "positions", "sinks", CHECKPOINT)
    target.delete(name for folder in folders for name in target.list(folder) if name not in wanted)
