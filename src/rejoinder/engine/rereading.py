"""Read a source again: every row that it has delivered, up to the committed position and no further.

Files can be read again as long as all that were read still exist and were not changed; records of a topic (on Spark) as
long as the broker has them all. What was read is part of the commit, so that no row is lost or doubled at the seam.
Other sources cannot be read again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rejoinder.engine.positions import Position, files_read
from rejoinder.engine.state import Listed
from rejoinder.operators.stage import EpochWork
from rejoinder.operators.task import Report
from rejoinder.plan.catalog import Source
from rejoinder.store.file_log import FileRead
from rejoinder.store.objects import ObjectStore


class Topics(Protocol):
    """Who can read records of topics again: Spark."""

    def unreadable(self, source: Source, position: Position) -> str | None:
        """Why the records up to a position cannot be read again; None if they can."""
        ...

    def run(
        self, work: EpochWork, splits: Sequence[Listed], again: Sequence[tuple[Source, Position]]
    ) -> dict[int, Report]:
        """Run a hydration on splits and on the records of topics up to their positions."""
        ...

    def collected(self, source: Source, position: Position) -> list[Listed]:
        """The records of a topic up to a position, in this process."""
        ...


def unreadable(
    store: ObjectStore, positions: Mapping[str, Any], attached: Mapping[str, str], source: Source
) -> str | None:
    """Why the rows that a source has delivered cannot be read again; None if they can."""
    if not source.is_file:
        if source.format == "kafka":
            return "a topic is read again on Spark only"
        what = {"dataframe": "a DataFrame", "delta": "a change feed"}.get(source.format, "it")
        return f"{what} is not read again"
    if source.max_ahead is not None:
        return "its files are not read again, since rows that `max_ahead` rejected could be accepted now"
    for file in files_read(store, positions, attached[source.name]):
        problem = _changed(file)
        if problem is not None:
            return problem
    return None


def delivered_files(
    store: ObjectStore, positions: Mapping[str, Any], attached: Mapping[str, str], source: Source
) -> list[Listed]:
    """The files that the committed epochs have read, as splits."""
    found = files_read(store, positions, attached[source.name])
    return [(source.name, file.path, file.modified, None) for file in found]


def _changed(file: FileRead) -> str | None:
    """What happened to a file since it was read; None if nothing did, or if it is not on a local disk."""
    local = local_path(file.path)
    if local is None:
        return None
    try:
        modified = os.stat(local).st_mtime_ns // 1_000_000
    except OSError:
        return f"its file `{file.path}` no longer exists"
    return f"its file `{file.path}` was changed after it was read" if modified > file.modified else None


def local_path(path: str) -> str | None:
    """The path on a local disk; None if it lies elsewhere."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else path
