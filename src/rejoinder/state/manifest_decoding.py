"""Decode a manifest, and report one that another version has written in another format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rejoinder.errors import RejoinderError, StateError
from rejoinder.store.commits.manifest import Manifest


@contextmanager
def decoding(manifest: Manifest) -> Iterator[None]:
    """Raise `StateError` for a missing or malformed field. The checksum is valid, so the manifest is not damaged."""
    try:
        yield
    except RejoinderError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as failure:
        raise StateError(
            "the state was written by another version of Rejoinder",
            detail=f"`{manifest.name}`: {type(failure).__name__} {failure}",
            hint="use a new state directory, or the version that wrote this one",
        ) from failure
