"""Publishes a manifest under its version exactly once, even if answers of the storage are lost.

Invariants:
- above a deleted manifest there is always a newer one; above a name that was never used there is none. After a driver
  has put its manifest, it lists the folder. The manifest is committed if no version is above it, or if the next one is
  its child. Otherwise the name had been used and deleted before; the driver is fenced and deletes what it put;
- a lost answer decides nothing. A driver does not publish another manifest before it has published this one (again,
  with the same bytes) or was fenced; see `engine.publisher`.
"""

from __future__ import annotations

from contextlib import suppress

from rejoinder import errors
from rejoinder.store.commits.lost_commits import is_young, mark_flow, marked_flow, write_hint
from rejoinder.store.commits.manifest import Manifest, find, has_parent, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore


def commit(store: ObjectStore, manifest: Manifest) -> None:
    """Publish `manifest`. When this returns, it is committed.

    Raises `errors.Fenced` if another driver has committed this version, or had and dropped it since. Raises
    `errors.Corrupt` and publishes nothing if the stored manifest before it is not its parent. After
    `errors.Unconfirmed` it may or may not be committed: call again with the same manifest, which does not commit twice.
    After any other error it is not committed.
    """
    data = manifest.to_bytes()
    _check_place(store, manifest)
    try:
        _put(store, manifest, data)
        _confirm(store, manifest)
        is_fenced = manifest.version > 0 or _is_fenced(store, manifest)
    except errors.StorageFailed as failure:
        raise errors.Unconfirmed(
            "the storage did not confirm a commit",
            detail=f"version {manifest.version} (epoch {manifest.epoch}) may or may not be stored: "
            + (failure.detail or failure.fact),
            hint="fix the storage and continue: the next commit of this flow completes this one first. "
            + (failure.hint or ""),
        ) from failure
    if not is_fenced:
        raise errors.StorageFailed(
            "the storage cannot hold state: it overwrites existing objects",
            detail=f"`{manifest.name}` in {store.url} was created twice",
            hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
        )
    with suppress(errors.StateError):  # already committed; the rest only speeds up reads and helps to detect losses
        write_hint(store, manifest)
        if is_young(manifest):
            mark_flow(store, manifest, manifest.version)


def _put(store: ObjectStore, manifest: Manifest, data: bytes) -> None:
    """Put the manifest under its name. Raises `Fenced` if another manifest has that name."""
    for _ in range(3):
        if store.put_if_absent(manifest.name, data):
            return
        stored = store.find(manifest.name)
        if stored == data:  # an earlier request of ours, whose answer was lost
            return
        if stored is not None:
            raise _fenced(manifest, stored)
    raise errors.StorageFailed(
        "the storage rejects a commit but has no other one",
        detail=f"put-if-absent says that `{manifest.name}` exists in {store.url}, but a read does not find it",
        hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
    )


def _confirm(store: ObjectStore, manifest: Manifest) -> None:
    """Raise `errors.Fenced` if the name of `manifest`, which was just put, had been used and deleted before."""
    stored = versions(store)
    if not stored or stored[-1] <= manifest.version:
        # A consistent listing proves it. Without one: a name is deleted only after the one below it, and version 0
        # only after its flow was marked with a later version.
        if manifest.version == 0:
            mark = marked_flow(store)
            is_own = mark is None or mark.flow_id == manifest.flow_id
            if is_own and (mark is None or mark.version == 0 or _is_parent(manifest, find(store, 1))):
                return
            _withdraw(store, manifest)
            why = "newer versions were committed" if is_own else "another flow was started here"
            raise _taken_over(store, manifest, why)
        if store.exists(name_of(manifest.version - 1)):
            return
        raise _taken_over(store, manifest, "the version before it is no longer retained")
    child = find(store, manifest.version + 1) if manifest.version + 1 in stored else None
    if _is_parent(manifest, child):
        return  # another driver has committed on top of it, so it was committed
    if manifest.version in stored:
        _withdraw(store, manifest)
    raise _taken_over(store, manifest, f"version {stored[-1]} is committed")


def _is_parent(manifest: Manifest, child: Manifest | None) -> bool:
    return child is not None and child.parent == manifest.checksum


def _withdraw(store: ObjectStore, manifest: Manifest) -> None:
    """Delete `manifest`, unless its name holds another one."""
    if store.find(manifest.name) == manifest.to_bytes():
        store.delete([manifest.name])


def _check_place(store: ObjectStore, manifest: Manifest) -> None:
    """Raise `Fenced` unless `manifest` is the direct successor of the newest stored one (itself aside)."""
    if manifest.version == 0:
        if any(versions(store)):
            raise _taken_over(store, manifest, "newer versions are stored")
    elif not has_parent(store, manifest):
        raise _taken_over(store, manifest, "the version before it is no longer retained")


def _taken_over(store: ObjectStore, manifest: Manifest, why: str) -> errors.Fenced:
    return errors.Fenced(
        "another driver has taken over this state",
        detail=f"version {manifest.version} cannot be committed to {store.url}: {why}",
        hint="run one driver per state; stop this one, or restart it after the other has ended",
    )


def _is_fenced(store: ObjectStore, manifest: Manifest) -> bool:
    """Whether the storage rejects a second put under the name of `manifest`. Withdraws the manifest otherwise.

    Raises `errors.Fenced` if the name is free because other drivers have committed since and dropped it.
    """
    if not store.put_if_absent(manifest.name, manifest.to_bytes()):
        return True
    store.delete([manifest.name])
    _check_place(store, manifest)
    return False


def _fenced(manifest: Manifest, stored: bytes) -> errors.Fenced:
    try:
        other = Manifest.from_bytes(stored, manifest.name)
        winner = f"another driver has committed that version with epoch {other.epoch}"
    except errors.StateError as error:
        winner = f"another driver has committed that version, and its manifest cannot be read ({error.fact})"
    return errors.Fenced(
        "another driver has committed to this state",
        detail=f"this driver tried to commit version {manifest.version} (epoch {manifest.epoch}); {winner}",
        hint="run one driver per state; stop this one, or restart it after the other has ended",
    )
