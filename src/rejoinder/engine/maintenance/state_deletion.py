"""Report why a file of the state is missing: the state was deleted, or another driver has taken over and collected it.

The reason is reported instead of the first missing file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rejoinder.engine.publisher import Publisher
from rejoinder.errors import Corrupt, Fenced, StateDeleted, StateError
from rejoinder.store.commits.manifest import Manifest, find, versions
from rejoinder.store.objects.object_store import ObjectStore


class Named(Protocol):
    """The committed state, which its manifest names."""

    @property
    def manifest(self) -> Manifest | None: ...


class Committed(Protocol):
    """Has a committed state: the engine."""

    store: ObjectStore
    publisher: Publisher

    @property
    def version(self) -> Named: ...


@contextmanager
def deletion_named(owner: Committed) -> Iterator[None]:
    """Raise `StateDeleted` or `Fenced` instead of a state error that either has caused. Costs nothing otherwise."""
    try:
        yield
    except StateDeleted:
        raise
    except (StateError, OSError) as error:
        refuse_deleted(owner, error)
        if isinstance(error, Corrupt):
            _refuse_overtaken(owner, error)
        raise


def _refuse_overtaken(owner: Committed, cause: Corrupt) -> None:
    """Raise `Fenced` if another driver has committed after our last commit: it has collected the missing file."""
    manifest = owner.version.manifest
    if manifest is None:
        return
    try:
        stored = versions(owner.store)
        newest = find(owner.store, stored[-1]) if stored and stored[-1] > manifest.version else None
    except StateError:
        return
    if newest is not None and newest.writer != owner.publisher.writer:
        raise Fenced(
            "another driver has taken over this state",
            detail=f"version {newest.version} is committed, and our last commit was version {manifest.version}: "
            "files that we were reading are no longer kept",
            hint="run one driver per state; stop this one, or start it again once the other has ended",
        ) from cause


def refuse_deleted(owner: Committed, cause: BaseException | None = None) -> None:
    """Raise `StateDeleted` if an epoch was committed and no commit is left. Lists the manifests."""
    manifest = owner.version.manifest
    if manifest is None:
        return
    try:
        is_deleted = not versions(owner.store) and not owner.store.exists(manifest.name)  # a listing may be stale
    except StateError:
        return
    if is_deleted:
        raise StateDeleted(
            "the state was deleted while the flow was using it",
            detail=f"epoch {manifest.epoch} was committed, and no commit is left in {owner.store.url}",
            hint="restore it from a backup, or start again: a new flow reads its sources from the beginning",
        ) from cause
