"""Read a source again: every row that it has delivered, up to the committed position and no further.

Files can be read again as long as all that were read still exist and were not changed. On Spark, records of a topic can
be read again as long as the broker has them all, and a change feed as long as Delta has the versions. What was read is
part of the commit, so that no row is lost or doubled at the seam.
Other sources cannot be read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from rejoinder.errors import MissingInput
from rejoinder.formats import open_path
from rejoinder.formats.file_signatures import local_signature, remote_signature
from rejoinder.ir.catalog import Source
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Report
from rejoinder.state.flow_state import Listed
from rejoinder.state.positions import Position, files_read
from rejoinder.store.commits.file_log import FileRead
from rejoinder.store.objects.object_store import ObjectStore

READ_BY_SPARK = {"kafka": "a topic", "delta": "a change feed"}
REQUESTS = 16  # at a time, to look at files that are not on a local disk


class Topics(Protocol):
    """Who can read records of topics again: Spark."""

    def unreadable(self, source: Source, position: Position) -> str | None:
        """Why the records up to a position cannot be read again; None if they can.

        Raises `InputError` if that cannot be found out now.
        """
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
    """Why the rows that a source has delivered cannot be read again; None if they can.

    Only what will not pass by itself is a reason. Raises `MissingInput` if that cannot be found out now: an answer must
    not depend on whether the storage of a file happens to fail.
    """
    if not source.is_file:
        if source.format in READ_BY_SPARK:
            return f"{READ_BY_SPARK[source.format]} is read again on Spark only"
        what = {"dataframe": "a DataFrame"}.get(source.format, "it")
        return f"{what} is not read again"
    if source.max_ahead is not None:
        return "its files are not read again, since rows that `max_ahead` rejected could be accepted now"
    read = files_read(store, positions, attached[source.name])
    remote = [file for file in read if local_path(file.path) is None and file.signature]
    with ThreadPoolExecutor(REQUESTS) as pool:  # starts a thread for each remote file only, up to its limit
        problems = [_problem(source, file) for file in read if local_path(file.path) is not None]
        problems += pool.map(partial(_problem, source), remote)
    return next((problem for problem in problems if problem is not None), None)


def delivered_files(
    store: ObjectStore, positions: Mapping[str, Any], attached: Mapping[str, str], source: Source
) -> list[FileRead]:
    """The files that the committed epochs have read."""
    return files_read(store, positions, attached[source.name])


def _problem(source: Source, file: FileRead) -> str | None:
    """What happened to a file since it was read; None if nothing did. Raises `MissingInput` if nobody can tell now."""
    try:
        signature = _signature(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return f"its file `{file.path}` no longer exists"
    except OSError as failure:
        raise MissingInput(
            f"file `{file.path}` of `{source.name}` cannot be looked at, to read it again",
            detail=str(failure) or type(failure).__name__,
            hint="check the storage and the permissions of the file, and run the statement again",
        ) from failure
    return None if signature == file.signature else f"its file `{file.path}` was changed after it was read"


def _signature(path: str) -> str:
    """The signature that a file has now. Costs a request if it is not on a local disk. Raises `OSError`."""
    local = local_path(path)
    if local is not None:
        return local_signature(local)
    filesystem, remote = open_path(path)
    with filesystem.open_input_file(remote) as opened:
        return remote_signature(filesystem, remote, opened)


def refuse_changed(files: Mapping[str, str], read: Mapping[str, str]) -> None:
    """Raise `MissingInput` if a file was changed just before it was read again. Both give signatures by path."""
    for path, signature in read.items():
        if files.get(path, "") not in ("", signature):
            raise MissingInput(
                f"file `{path}` was changed while it was read again",
                detail="its rows are no longer those that the flow has read before",
                hint="run the statement again, which says whether it can do without the file",
            )


def local_path(path: str) -> str | None:
    """The path on a local disk; None if it lies elsewhere."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else path
