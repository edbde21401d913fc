"""Read a source again: every delivered row, exactly up to the committed position.

The connector of a source determines how (`Rereading`). Files can be read again as long as all of them exist unchanged.
Spark reads other sources again, such as topics, as long as they have all records. The rest cannot be read again.
Positions are part of the commit, so no row is lost or duplicated between the replay and the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rejoinder.connectors.connector import Rereading
from rejoinder.connectors.registry import source_side
from rejoinder.errors import MissingInput, Unsupported
from rejoinder.formats.file_signatures import local_signature, remote_signature
from rejoinder.formats.paths import open_path
from rejoinder.ir.catalog import Source
from rejoinder.ir.splits import Split
from rejoinder.ir.streams import StreamId
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Report
from rejoinder.state.positions import NOTHING, Position, Positions
from rejoinder.store.commits.file_log import FileRead
from rejoinder.store.objects.object_store import ObjectStore

REQUESTS = 16  # concurrent requests for the signatures of remote files


class Topics(Protocol):
    """Can read records of topics again: Spark."""

    def unreadable(self, source: Source, position: Position) -> str | None:
        """Return why the records up to a position cannot be read again; None if they can.

        Raises `InputError` if that cannot be determined now.
        """
        ...

    def run(
        self, work: EpochWork, splits: Sequence[Split], again: Sequence[tuple[Source, Position]]
    ) -> dict[int, Report]:
        """Run a hydration on splits and on the records of topics up to their positions."""
        ...

    def collected(self, source: Source, position: Position) -> list[Split]:
        """Read the records of a topic up to a position, in this process."""
        ...


@dataclass(frozen=True)
class SourceReplay:
    """Reads the sources of a flow again, up to their committed positions."""

    store: ObjectStore
    positions: Positions
    attached: Mapping[str, str]
    """The identity of each source."""
    topics: Topics | None = None

    def unreadable(self, source: Source) -> str | None:
        """Return why the delivered rows of a source cannot be read again; None if they can.

        Only a permanent problem is a reason. Raises `MissingInput` for a temporary one, and `Unsupported` where this
        process cannot know: an answer must not depend on whether a storage happens to fail.
        """
        side = source_side(source)
        if side.rereading is Rereading.NEVER:
            return f"{side.noun} is not read again"
        if source.max_ahead is not None:
            return "it is not read again, since rows that `max_ahead` rejected could be accepted now"
        if side.rereading is Rereading.SPARK and any(
            was.changes and was.identity == self.attached.get(source.name) for was in source.history
        ):
            return f"{side.noun} is not read again across an ALTER of its columns"
        if side.rereading is Rereading.SPARK:
            return self._unreadable_records(source, self.position(source), side.noun)
        read = self.files(source)
        remote = [file for file in read if local_path(file.path) is None and file.signature]
        with ThreadPoolExecutor(REQUESTS) as pool:  # starts a thread for each remote file only, up to its limit
            problems = [_problem(source, file) for file in read if local_path(file.path) is not None]
            problems += pool.map(partial(_problem, source), remote)
        return next((problem for problem in problems if problem is not None), None)

    def _unreadable_records(self, source: Source, position: Position, noun: str) -> str | None:
        if self.topics is not None:
            return self.topics.unreadable(source, position)
        if position.offset == NOTHING:  # its rows were inserted into a test driver
            return f"{noun} is read again on Spark only"
        raise Unsupported(
            f"`{source.name}` is {noun}, which is read again on Spark only",
            detail="rows of it are needed that the flow does not keep, and this process has no Spark",
            hint="put the statement into a file and `rejoinder run` it, or run it with rejoinder.Flow",
        )

    def files(self, source: Source) -> list[FileRead]:
        """Return the files that the committed epochs have read."""
        return self.positions.files_read(self.store, self.attached[source.name])

    def former(self, source: Source, number: int) -> int | None:
        """Return the former definition by which the file that was read as `number` is read; None: the current one."""
        identity = self.attached[source.name]
        formers = enumerate(source.history)
        return next((at for at, was in formers if was.identity == identity and number < was.files), None)

    def position(self, source: Source) -> Position:
        """Return the position of the only stream of a source."""
        return self.positions.of(StreamId(self.attached[source.name]))

    def records(self, sources: Iterable[Source]) -> list[Split]:
        """Read the records of topics again, in this process. Returns splits."""
        if self.topics is None:
            return []
        return [split for source in sources for split in self.topics.collected(source, self.position(source))]


def _problem(source: Source, file: FileRead) -> str | None:
    """Return how a file differs from when it was read; None if it does not. Raises `MissingInput` if it is unknown."""
    try:
        signature = _signature(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return f"its file `{file.path}` no longer exists"
    except OSError as failure:
        raise MissingInput(
            f"file `{file.path}` of `{source.name}` cannot be accessed to read it again",
            detail=str(failure) or type(failure).__name__,
            hint="check the storage and the permissions of the file, and run the statement again",
        ) from failure
    return None if signature == file.signature else f"its file `{file.path}` was changed after it was read"


def _signature(path: str) -> str:
    """Return the current signature of a file. Costs a request if the file is remote. Raises `OSError`."""
    local = local_path(path)
    if local is not None:
        return local_signature(local)
    filesystem, remote = open_path(path)
    with filesystem.open_input_file(remote) as file:
        return remote_signature(filesystem, remote, file)


def refuse_changed(files: Mapping[str, str], read: Mapping[str, str]) -> None:
    """Raise `MissingInput` if a file changed before it was read again. Both arguments are signatures by path."""
    for path, signature in read.items():
        if files.get(path, "") not in ("", signature):
            raise MissingInput(
                f"file `{path}` was changed while it was read again",
                detail="its rows are no longer the rows that the flow has read before",
                hint="run the statement again: it reports whether it can do without the file",
            )


def local_path(path: str) -> str | None:
    """Return the path on a local disk; None if the file is remote."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else path
