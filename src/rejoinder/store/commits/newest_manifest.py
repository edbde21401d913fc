"""Finds the newest manifest. Readers start from the hint, drivers from the listing.

A hint that is missing, stale or damaged only costs time. A store without manifests is new only if it contains no object
of a flow. If there is evidence of a newer commit than the newest manifest, the state is refused (`lost_commits`).
"""

from __future__ import annotations

from rejoinder import errors
from rejoinder.store.commits.lost_commits import hinted_version, lost, refuse_lost, sign_of_use
from rejoinder.store.commits.manifest import Manifest, check_chain, find, has_parent, last_line, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore

_PROBES = 16
_TRIES = 20


def latest(store: ObjectStore, known: Manifest | None = None) -> Manifest | None:
    """Return the newest manifest; None if nothing was ever committed here.

    The search starts at `known`, the result of an earlier call. If that is still the newest, no manifest is read.
    Raises `errors.Corrupt` if commits were lost.
    """
    start = known or _hinted(store)
    is_hinted = start is not None
    for _ in range(_TRIES):
        manifest = _walk_up(store, start) if start is not None else None
        if manifest is not None:
            if not is_hinted:
                refuse_lost(store, manifest)
            return manifest
        stored = versions(store)
        if not stored:
            sign = sign_of_use(store)
            if sign is None:
                return None
            stored = versions(store)  # a new flow may have started since the first listing
            if not stored:
                raise lost(store, sign)
        start = find(store, stored[-1])
        if start is not None:
            has_parent(store, start)
    raise errors.StorageFailed(
        "the newest commit cannot be found",
        detail=f"the manifests in {store.url} are listed, but cannot be found when they are read",
        hint="check that the storage lists exactly the objects that it holds",
    )


def newest(store: ObjectStore) -> Manifest | None:
    """Return the newest manifest like `latest`, but from the listing. For a driver, which is about to commit.

    A late request can restore a manifest that was deleted. That can mislead the hint, but not the listing.
    """
    for _ in range(_TRIES):
        stored = versions(store)
        if not stored:
            return latest(store)
        start = find(store, stored[-1])
        if start is None:
            continue
        has_parent(store, start)
        manifest = _walk_up(store, start)
        if manifest is not None:
            refuse_lost(store, manifest)
            return manifest
    return latest(store)


def load(store: ObjectStore, version: int) -> Manifest:
    """Return the manifest of `version`. Raises `errors.NotCommitted` if it does not exist, or no longer."""
    manifest = find(store, version)
    if manifest is None:
        raise errors.NotCommitted(
            f"no manifest of version {version}",
            detail=f"`{name_of(version)}` is not in {store.url}",
            hint="it was never committed, or is no longer retained: read a newer one",
        )
    return manifest


def _walk_up(store: ObjectStore, start: Manifest) -> Manifest | None:
    """Follow the chain to its end; None after too many steps, or if the end was deleted meanwhile."""
    newest = start
    for _ in range(_PROBES):
        following = find(store, newest.version + 1)
        if following is None:
            return newest if store.exists(newest.name) else None  # checked after the probe: the newest is never deleted
        check_chain(newest, following)
        newest = following
    return None


def _hinted(store: ObjectStore) -> Manifest | None:
    """Return the manifest that the hint names, if it is certainly part of the chain.

    Late requests may have restored an old hint, and manifests that were deleted or never committed. Then this returns
    None, and the caller uses the listing.
    """
    version = hinted_version(store)
    manifest = None if version is None else find(store, version)
    if manifest is None or manifest.version == 0:
        return None
    before = store.find(name_of(manifest.version - 1))
    return manifest if before is not None and before.endswith(last_line(manifest.parent)) else None
