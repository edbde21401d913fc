"""Commits: publishes a manifest under its version, once, whatever happens to the answers of the storage.

Invariants:
- a name that was deleted has a newer one above it for ever, and a name that was never used has none. A driver that has
  put its manifest lists the folder: it is committed if nothing is above it, or if the next one is its child. Otherwise
  the name had been used before and was free only because it was deleted; the driver is fenced and removes what it put;
- an answer that is lost decides nothing. A driver publishes no other manifest before it has published that one (again,
  with the same bytes) or was fenced; see `engine.publisher`.
"""

from __future__ import annotations

from contextlib import suppress

from rejoinder import errors
from rejoinder.store.commits.lost_commits import is_young, mark_flow, marked_flow, write_hint
from rejoinder.store.commits.manifest import Manifest, find, has_parent, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore


def commit(store: ObjectStore, manifest: Manifest) -> None:
    """Publish `manifest`; when this returns, it is committed.

    `errors.Fenced` if another driver has its version, or had it and went on so far that it was dropped;
    `errors.Corrupt`, and nothing is published, if the stored manifest before it is not its parent. After
    `errors.Unconfirmed` it may or may not be committed: call again with the same manifest, which makes no second
    commit. After any other error it is not committed.
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
            hint="fix the storage and go on: the next commit of this flow finishes this one first. "
            + (failure.hint or ""),
        ) from failure
    if not is_fenced:
        raise errors.StorageFailed(
            "the storage cannot hold state: it overwrites what it was told not to",
            detail=f"`{manifest.name}` in {store.url} was created twice",
            hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
        )
    with suppress(errors.StateError):  # it is committed; what follows saves time, and shows losses
        write_hint(store, manifest)
        if is_young(manifest):
            mark_flow(store, manifest, manifest.version)


def _put(store: ObjectStore, manifest: Manifest, data: bytes) -> None:
    """Put the manifest under its name, if that is free or holds this very manifest."""
    for _ in range(3):
        if store.put_if_absent(manifest.name, data):
            return
        stored = store.find(manifest.name)
        if stored == data:  # an earlier request of ours, whose answer was lost
            return
        if stored is not None:
            raise _fenced(manifest, stored)
    raise errors.StorageFailed(
        "the storage refuses a commit and shows no other one",
        detail=f"`{manifest.name}` in {store.url} is said to exist, and cannot be found",
        hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
    )


def _confirm(store: ObjectStore, manifest: Manifest) -> None:
    """Raise `errors.Fenced` if the name of `manifest`, which is put, had been used and deleted before."""
    stored = versions(store)
    if not stored or stored[-1] <= manifest.version:
        # The listing is proof where listings are consistent. In any case a name is deleted after the one below it, and
        # the first one after its flow was marked.
        if manifest.version == 0:
            if marked_flow(store) in (None, manifest.flow_id):
                return
            _withdraw(store, manifest)
            raise _taken_over(store, manifest, "another flow has begun here")
        if store.exists(name_of(manifest.version - 1)):
            return
        raise _taken_over(store, manifest, "the one before it is no longer kept")
    child = find(store, manifest.version + 1) if manifest.version + 1 in stored else None
    if child is not None and child.parent == manifest.checksum:
        return  # another driver has built on it
    if manifest.version in stored:
        _withdraw(store, manifest)
    raise _taken_over(store, manifest, f"version {stored[-1]} is committed")


def _withdraw(store: ObjectStore, manifest: Manifest) -> None:
    """Delete `manifest`, unless another one is under its name."""
    if store.find(manifest.name) == manifest.to_bytes():
        store.delete([manifest.name])


def _check_place(store: ObjectStore, manifest: Manifest) -> None:
    """Raise unless `manifest` comes right after what is stored (itself aside)."""
    if manifest.version == 0:
        if any(versions(store)):
            raise _taken_over(store, manifest, "newer ones are stored")
    elif not has_parent(store, manifest):
        raise _taken_over(store, manifest, "the one before it is no longer kept")


def _taken_over(store: ObjectStore, manifest: Manifest, why: str) -> errors.Fenced:
    return errors.Fenced(
        "another driver has taken over this state",
        detail=f"version {manifest.version} cannot be committed to {store.url}: {why}",
        hint="run one driver per state; stop this one, or start it again once the other has ended",
    )


def _is_fenced(store: ObjectStore, manifest: Manifest) -> bool:
    """Tell whether the storage keeps a second driver from the name of `manifest`; withdraw it otherwise.

    `errors.Fenced` if the name is free because other drivers have gone on and dropped it.
    """
    if not store.put_if_absent(manifest.name, manifest.to_bytes()):
        return True
    store.delete([manifest.name])
    _check_place(store, manifest)
    return False


def _fenced(manifest: Manifest, stored: bytes) -> errors.Fenced:
    try:
        other = Manifest.from_bytes(stored, manifest.name)
        by = f"another driver has committed it, with epoch {other.epoch}"
    except errors.StateError as error:
        by = f"another driver did, and what it wrote cannot be read ({error.fact})"
    return errors.Fenced(
        "another driver has committed to this state",
        detail=f"version {manifest.version} (epoch {manifest.epoch}) was ours to commit; {by}",
        hint="run one driver per state; stop this one, or start it again once the other has ended",
    )
