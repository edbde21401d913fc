"""Positions: up to where each stream of a source is read at the committed epoch, as stored in the manifest.

A source is one stream, or several if it is a DataFrame over several. A stream is identified by `<source identity>/<n>`.
The identity (`Engine.attached`) lasts as long as a view reads the source. Positions are the only record of progress:
Spark's checkpoint is written from them at every start, and the test driver has nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from rejoinder.store.commits.file_log import FileLog, FileRead
from rejoinder.store.objects.object_store import ObjectStore

STREAMS = "streams"
NOTHING = "-"


@dataclass(frozen=True)
class Position:
    """The position of one stream."""

    offset: str = NOTHING
    """Spark's offset as text; `-` before the first epoch, and for streams that Spark does not read."""
    start: Mapping[str, str] = field(default_factory=dict)
    """Where the stream began, by name: partition offsets of a topic, the start time of a rate source."""
    files: FileLog = field(default_factory=FileLog)
    """The files that were read, for a stream of files."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        files = {} if self.files == FileLog() else {"files": self.files.to_json()}
        start = {"start": dict(self.start)} if self.start else {}
        return {"offset": self.offset, **start, **files}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Decode the result of `to_json`."""
        files = FileLog.from_json(data["files"]) if "files" in data else FileLog()
        return cls(str(data["offset"]), dict(data.get("start", {})), files)


def position_of(positions: Mapping[str, Any], stream: str) -> Position:
    """Return the position of a stream; an empty one if it was never read."""
    stored = positions.get(STREAMS, {}).get(stream)
    return Position() if stored is None else Position.from_json(stored)


def with_position(positions: Mapping[str, Any], stream: str, position: Position) -> dict[str, Any]:
    """Return the positions with a new one for a stream."""
    return {**positions, STREAMS: {**positions.get(STREAMS, {}), stream: position.to_json()}}


def with_files(
    store: ObjectStore, positions: Mapping[str, Any], stream: str, epoch: int, read: Iterable[FileRead]
) -> dict[str, Any]:
    """Return the positions after an epoch that read files of a stream."""
    position = position_of(positions, stream)
    return with_position(positions, stream, replace(position, files=position.files.append(store, epoch, read)))


class StreamRead(Protocol):
    """What an epoch read of a Spark stream (`exchange.streaming.checkpoint_log.StreamRead`)."""

    @property
    def stream(self) -> str: ...
    @property
    def offset(self) -> str: ...
    @property
    def files(self) -> Sequence[tuple[str, int]]: ...
    @property
    def start(self) -> Mapping[str, str]: ...


def advanced(
    store: ObjectStore,
    positions: Mapping[str, Any],
    epoch: int,
    header: Sequence[str] | None,
    read: Iterable[StreamRead],
    signatures: Mapping[str, str],
) -> dict[str, Any]:
    """Return the positions after an epoch on Spark.

    `header` is that of Spark's offset log, if Spark has state of its own. `signatures` are those of the files that the
    tasks have read, by path.
    """
    streams = dict(positions.get(STREAMS, {}))
    for stream in read:
        files = position_of(positions, stream.stream).files
        new = [(path, modified, signatures.get(_as_in_splits(path), "")) for path, modified in stream.files]
        files = files.append(store, epoch, (FileRead(*file) for file in new))
        streams[stream.stream] = Position(stream.offset, stream.start, files).to_json()
    generation = {**positions["spark"]} if header is None else {**positions["spark"], "header": list(header)}
    return {**positions, STREAMS: streams, "spark": generation}


def restrict_positions(positions: Mapping[str, Any], identities: Collection[str]) -> dict[str, Any]:
    """Return the positions of these sources only."""
    streams = positions.get(STREAMS, {})
    kept = {stream: position for stream, position in streams.items() if stream.partition("/")[0] in identities}
    return {**positions, STREAMS: kept} if len(kept) < len(streams) else dict(positions)


def position_files(positions: Mapping[str, Any]) -> set[str]:
    """Return the names of the objects that positions reference."""
    logs = (position["files"] for position in positions.get(STREAMS, {}).values() if "files" in position)
    return {str(chunk[0]) for log in logs for chunk in log["chunks"]}


def files_read(store: ObjectStore, positions: Mapping[str, Any], identity: str) -> list[FileRead]:
    """Return the files of a source that the committed epochs have read, in the order in which they were read.

    `positions` and `identity` (`attached`) are those of the manifest. Paths are as in splits. Raises `Corrupt` if a
    part of the log is missing or damaged.
    """
    streams = [name for name in positions.get(STREAMS, {}) if name.partition("/")[0] == identity]
    files = [file for name in streams for file in position_of(positions, name).files.read(store)]
    return [replace(file, path=_as_in_splits(file.path)) for file in files]


def _as_in_splits(path: str) -> str:
    """Convert a path of Spark's log, an escaped URI, to a path of its rows: `file:///a%20b` is `file:/a b`."""
    parts = urlsplit(path)
    if not parts.scheme:
        return path
    place = f"//{parts.netloc}" if parts.netloc else ""
    return f"{parts.scheme}:{place}{unquote(parts.path)}"
