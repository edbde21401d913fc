"""Report a state of another format as such, instead of the first missing field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rejoinder.errors import StateError
from rejoinder.store.objects.object_store import ObjectStore


class Stored(Protocol):
    """Reads a state: the engine."""

    store: ObjectStore


@contextmanager
def format_named(owner: Stored) -> Iterator[None]:
    """Raise `StateError` for a manifest with a valid checksum that lacks fields of this version."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as missing:
        raise StateError(
            "the state was written by another version of Rejoinder",
            detail=f"the manifest in {owner.store.url} does not have the fields that this version reads: {missing}",
            hint="run it with the version that wrote it, or start again with another state directory",
        ) from missing
