"""A state that was deleted while a flow was using it is called that, whatever the first file was that was missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rejoinder.errors import StateDeleted, StateError
from rejoinder.store.manifest import Manifest, versions
from rejoinder.store.objects import ObjectStore


class Committed(Protocol):
    """What has a state: the engine."""

    store: ObjectStore
    manifest: Manifest | None


@contextmanager
def deletion_named(owner: Committed) -> Iterator[None]:
    """Raise `StateDeleted` instead of any error of the state that comes from its deletion. Costs nothing otherwise."""
    try:
        yield
    except StateDeleted:
        raise
    except (StateError, OSError) as error:
        refuse_deleted(owner, error)
        raise


def refuse_deleted(owner: Committed, cause: BaseException | None = None) -> None:
    """Raise `StateDeleted` if something was committed here and no commit is left. Lists the manifests."""
    if owner.manifest is None:
        return
    try:
        is_deleted = not versions(owner.store)
    except StateError:
        return
    if is_deleted:
        raise StateDeleted(
            "the state was deleted while the flow was using it",
            detail=f"epoch {owner.manifest.epoch} was committed, and no commit is left in {owner.store.url}",
            hint="restore it from a backup, or start again: a new flow reads its sources from the beginning",
        ) from cause
