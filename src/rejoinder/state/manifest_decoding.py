"""Decode a manifest, and report one that another version has written in another format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rejoinder.errors import RejoinderError, StateError
from rejoinder.state.positions import STREAMS
from rejoinder.store.commits.manifest import Manifest

_POSITIONS = {"spark", STREAMS}


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


def checked_positions(manifest: Manifest) -> dict[str, Any]:
    """Return the positions of sources. Raises `ValueError` for another format, since rows would be read twice."""
    positions: Mapping[str, Any] = manifest.extra["positions"]
    if not _POSITIONS.issuperset(positions) or ("spark" in positions and STREAMS not in positions):
        raise ValueError("the positions of sources have another format")
    return dict(positions)
