"""Finds the newest manifest. Readers start from the hint, drivers from the listing.

A hint that is missing, stale or damaged costs time and nothing else. A store that lists no manifest is a new one only
if nothing in it shows that a flow was here. A newest manifest that cannot be the newest commit is refused
(`lost_commits`).
"""

from __future__ import annotations

from rejoinder import errors
from rejoinder.store.commits.lost_commits import hinted_version, lost, refuse_lost, sign_of_use
from rejoinder.store.commits.manifest import Manifest, check_chain, find, has_parent, last_line, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore

_PROBES = 16
_TRIES = 20


def latest(store: ObjectStore, known: Manifest | None = None) -> Manifest | None:
    """Return the newest manifest, None if nothing was ever committed here.

    `known`, which an earlier call returned, is where the search starts; while it is the newest, nothing is read.
    """
    start = known or _hinted(store)
    is_hinted = start is not None
    for _ in range(_TRIES):
        found = _walk_up(store, start) if start is not None else None
        if found is not None:
            if not is_hinted:
                refuse_lost(store, found)
            return found
        stored = versions(store)
        if not stored:
            sign = sign_of_use(store)
            if sign is None:
                return None
            stored = versions(store)  # a new flow may have begun since the first listing
            if not stored:
                raise lost(store, sign)
        start = find(store, stored[-1])
        if start is not None:
            has_parent(store, start)
    raise errors.StorageFailed(
        "the newest commit cannot be found",
        detail=f"the manifests in {store.url} are listed, but cannot be found when they are read",
        hint="check that the storage lists what it holds, and nothing else",
    )


def newest(store: ObjectStore) -> Manifest | None:
    """Return the newest manifest as `latest` does, from the listing. For a driver, which is about to commit.

    A manifest that was deleted and came back, because a request was late, can mislead a hint but not a listing.
    """
    for _ in range(_TRIES):
        stored = versions(store)
        if not stored:
            return latest(store)
        start = find(store, stored[-1])
        if start is None:
            continue
        has_parent(store, start)
        found = _walk_up(store, start)
        if found is not None:
            refuse_lost(store, found)
            return found
    return latest(store)


def load(store: ObjectStore, version: int) -> Manifest:
    """Return the manifest of `version`; `errors.NotCommitted` if there is none, or none any more."""
    found = find(store, version)
    if found is None:
        raise errors.NotCommitted(
            f"no manifest of version {version}",
            detail=f"`{name_of(version)}` is not in {store.url}",
            hint="it was never committed, or is no longer kept: read a newer one",
        )
    return found


def at_epoch(store: ObjectStore, epoch: int) -> Manifest:
    """Return the last manifest of `epoch`; `errors.NotCommitted`, naming what can be read, if it is not kept."""
    newest = latest(store)
    if newest is None:
        raise errors.NotCommitted(
            f"epoch {epoch} is not committed yet", detail=f"{store.url} holds no commit", hint="run the flow first"
        )
    if newest.epoch == epoch:
        return newest
    version = max((version for kept, _, version in newest.epochs if kept == epoch), default=None)
    if version is not None:
        found, following = find(store, version), find(store, version + 1)
        if found is not None and following is not None:
            check_chain(found, following)
            return found
    raise errors.NotCommitted(
        f"epoch {epoch} is {'not committed yet' if epoch > newest.epoch else 'no longer kept'}",
        detail=f"{store.url} keeps epochs {min(kept for kept, _, _ in newest.epochs)} to {newest.epoch}",
        hint="read one of these, or set the flow to keep more",
    )


def _walk_up(store: ObjectStore, start: Manifest) -> Manifest | None:
    """Follow the chain to its end; None if that takes too long, or if the end was dropped while we walked."""
    newest = start
    for _ in range(_PROBES):
        following = find(store, newest.version + 1)
        if following is None:
            return newest if store.exists(newest.name) else None  # asked after the probe: the newest is never deleted
        check_chain(newest, following)
        newest = following
    return None


def _hinted(store: ObjectStore) -> Manifest | None:
    """Return the manifest that the hint points to, if it is certainly one of the chain.

    Late requests may have brought back a hint, and manifests that were deleted or never committed: the listing decides.
    """
    version = hinted_version(store)
    found = None if version is None else find(store, version)
    if found is None or found.version == 0:
        return None
    before = store.find(name_of(found.version - 1))
    return found if before is not None and before.endswith(last_line(found.parent)) else None
