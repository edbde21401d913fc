"""Hot backup: copies one committed version of a state while its flow runs.

Invariants:
- the manifest is written after all objects that it names, so an interrupted backup leaves the previous backup, or none.
  The progress of sinks follows it: beside an older manifest it would be taken for that of a lost commit. Without it,
  sinks that do not store epochs get the last epoch again;
- every object is checked against the size and checksum in the manifest when it is copied. An object that an earlier
  backup copied is checked again; on an object store, only by its size;
- if the flow deletes an object during the copy, there is a newer manifest, and the copy continues with that one. Most
  of its objects are copied already. So a backup needs no lock, and the flow is not aware of it.

Inserted rows that are not read yet are copied too. Spark's checkpoint is not copied, since it is written from the
manifest. The exception is the state of operators in the user's own DataFrames, which only Spark has.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from rejoinder.engine.maintenance.backup_targets import CHECKPOINT, INBOX, check_content, check_place
from rejoinder.errors import Corrupt, NotCommitted, StorageFailed, Unsupported
from rejoinder.state.flow_state import State
from rejoinder.state.positions import Positions
from rejoinder.state.sink_progress import progress_file, recorded, write_progress
from rejoinder.state.timeline import Timeline
from rejoinder.store.commits.lost_commits import mark_flow, write_hint
from rejoinder.store.commits.manifest import Manifest, name_of, versions
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.checked_objects import CheckedRef, map_checked
from rejoinder.store.objects.object_store import ObjectStore

_TRIES = 100


@dataclass(frozen=True)
class Backup:
    """The result of a backup: its epoch, its number of objects, and how many objects and bytes were copied."""

    epoch: int
    objects: int
    copied: int
    copied_bytes: int


def backup(source: ObjectStore, target: ObjectStore) -> Backup:
    """Copy the newest committed version of a state to `target`, which is empty or an earlier backup of the same flow.

    May run while the flow runs. Raises `NotCommitted` if there is nothing to copy, `Corrupt` if the state or the copy
    is damaged, and `DefinitionConflict` if `target` is, contains or is inside the state, or has a newer backup or other
    files.
    """
    manifest = latest(source)
    if manifest is None:
        raise NotCommitted(f"there is no state in {source.url}", hint="give the state directory of a flow")
    check_place(source, target)
    check_content(target, manifest)
    # Copy unread rows before the manifest is chosen: once a later epoch has read them, they may be vacuumed. Rows that
    # are inserted meanwhile are copied at the end.
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
            manifest = newest  # the flow deleted an object during the copy
    else:
        raise StorageFailed(
            "the state changes faster than it can be copied",
            detail=f"{len(copied)} objects are copied to {target.url}, and others were dropped meanwhile",
            hint="copy to a faster storage, or stop the flow for the copy",
        )
    beside = {*unread, *_copy_unread(source, target), *_copy_frames(source, target, manifest)}
    progress = recorded(source, manifest)
    check_content(target, manifest)  # another backup to the same target may have been faster
    target.put(manifest.name, manifest.to_bytes())
    if progress:
        write_progress(target, manifest, progress)
        beside.add(progress_file(manifest))
    mark_flow(target, manifest, manifest.version, first=manifest.version)
    write_hint(target, manifest)
    _drop_others(target, manifest, {ref.name for ref in refs} | beside)
    return Backup(manifest.epoch, len(refs) + len(beside) + 1, len(copied), sum(copied.values()))


def refs_of(manifest: Manifest) -> list[CheckedRef]:
    """Return all objects that a manifest references with checksums: runs, times of epochs, logs of read files."""
    runs = {ref.name: ref for parts in State.from_json(manifest.spines).parts.values() for p in parts for ref in p.refs}
    logs = [position.files for position in Positions.from_json(manifest.extra["positions"]).streams.values()]
    return [
        *(CheckedRef(ref.name, ref.size, ref.crc) for ref in runs.values()),
        *(ref for _, _, ref in Timeline.from_json(manifest.extra["timeline"]).blocks),
        *(ref for log in logs for ref, _ in log.chunks),
    ]


def _copy(source: ObjectStore, target: ObjectStore, ref: CheckedRef) -> dict[str, int]:
    """Copy an object unless the target has it. Returns its size by name if it was copied.

    An existing object is read again only on a local disk: an object store writes whole objects and checks them itself,
    and reading would be a download. Raises `Corrupt` if the source is damaged.
    """
    exists = target.exists(ref.name) and target.size(ref.name) == ref.size
    if exists and (not target.is_local or zlib.crc32(target.map(ref.name, ref.size)) == ref.crc):
        return {}
    target.put(ref.name, map_checked(source, ref, "an object to copy"))
    return {ref.name: ref.size}


def _copy_unread(source: ObjectStore, target: ObjectStore) -> list[str]:
    """Copy inserted rows: those that the manifest has not read are read after a restore."""
    copied = []
    for name in _objects(source, INBOX):
        data = None if target.exists(name) else source.find(name)
        if data is not None:
            target.put(name, data)
        if data is not None or target.exists(name):  # otherwise an epoch has read it, and it was vacuumed meanwhile
            copied.append(name)
    return copied


def _copy_frames(source: ObjectStore, target: ObjectStore, manifest: Manifest) -> list[str]:
    """Copy Spark's state of DataFrames, if there is any. Raises `Unsupported` if it is not in the store."""
    spark = Positions.from_json(manifest.extra["positions"]).spark
    if spark is None or spark.header is None:
        return []
    folder = f"{CHECKPOINT}/{spark.folder}"
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
        if data is not None:  # otherwise Spark has removed an old version meanwhile
            target.put(name, data)
            copied.append(name)
    return copied


def _objects(store: ObjectStore, folder: str) -> list[str]:
    """List a folder, without temporary files and Hadoop's checksum files."""
    return [name for name in store.list(folder) if "/." not in name]


def _drop_others(target: ObjectStore, manifest: Manifest, wanted: set[str]) -> None:
    """Remove objects of earlier or interrupted backups that this one does not reference."""
    for version in versions(target):
        if version < manifest.version:
            target.delete([name_of(version)])
    folders = ("runs", "epochs", "positions", "sinks", CHECKPOINT)
    target.delete(name for folder in folders for name in target.list(folder) if name not in wanted)
