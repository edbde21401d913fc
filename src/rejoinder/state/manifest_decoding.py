"""Reads what a manifest says about a flow; one that another version wrote differently is an error with a name."""

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
    """Turn a field that is missing or of another shape into `StateError`. The manifest is whole: its checksum fits."""
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
    """The positions of sources. Raises `ValueError` if they are kept in another way: rows would be read twice."""
    positions: Mapping[str, Any] = manifest.extra["positions"]
    if not _POSITIONS.issuperset(positions) or ("spark" in positions and STREAMS not in positions):
        raise ValueError("positions of sources are kept in another way")
    return dict(positions)
