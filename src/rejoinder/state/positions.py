"""Positions: up to where each stream of a source is read at the committed epoch, as stored in the manifest.

Positions are the only record of progress: Spark's checkpoint is written from them at every start, and the test driver
has nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import abspath
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from rejoinder.ir.streams import Generation, StreamId
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

    @property
    def has_files(self) -> bool:
        """Whether files were read."""
        return self.files != FileLog()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        files = {"files": self.files.to_json()} if self.has_files else {}
        start = {"start": dict(self.start)} if self.start else {}
        return {"offset": self.offset, **start, **files}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Decode the result of `to_json`."""
        files = FileLog.from_json(data["files"]) if "files" in data else FileLog()
        return cls(str(data["offset"]), dict(data.get("start", {})), files)


class StreamRead(Protocol):
    """What an epoch read of a Spark stream (`exchange.streaming.checkpoint_log.StreamRead`)."""

    @property
    def stream(self) -> StreamId: ...
    @property
    def offset(self) -> str: ...
    @property
    def files(self) -> Sequence[tuple[str, int]]: ...
    @property
    def start(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Positions:
    """The positions of all streams, and the generation of Spark's checkpoint; None if Spark reads none of them."""

    streams: Mapping[StreamId, Position] = field(default_factory=dict)
    spark: Generation | None = None

    def of(self, stream: StreamId) -> Position:
        """Return the position of a stream; an empty one if it was never read."""
        return self.streams.get(stream, Position())

    def with_position(self, stream: StreamId, position: Position) -> Positions:
        """Return the positions with a new one for a stream."""
        return replace(self, streams={**self.streams, stream: position})

    def with_files(self, store: ObjectStore, stream: StreamId, epoch: int, read: Iterable[FileRead]) -> Positions:
        """Return the positions after an epoch that read files of a stream."""
        position = self.of(stream)
        return self.with_position(stream, replace(position, files=position.files.append(store, epoch, read)))

    def with_generation(
        self, generation: Generation, starts: Mapping[StreamId, Mapping[str, str]], offsets: Mapping[StreamId, str]
    ) -> Positions:
        """Return the positions with a new generation of Spark's checkpoint, and the offsets of streams in it.

        `starts` are where streams began that no epoch has read yet.
        """
        streams = {**self.streams, **{stream: Position(start=start) for stream, start in starts.items()}}
        updated = {
            stream: replace(position, offset=offsets.get(stream, position.offset))
            for stream, position in streams.items()
        }
        return Positions(updated, generation)

    def advanced(
        self,
        store: ObjectStore,
        epoch: int,
        header: Sequence[str] | None,
        read: Iterable[StreamRead],
        signatures: Mapping[str, str],
    ) -> Positions:
        """Return the positions after an epoch on Spark.

        `header` is that of Spark's offset log, if Spark has state of its own. `signatures` are those of the files that
        the tasks have read, by path.
        """
        streams = dict(self.streams)
        for stream in read:
            new = [(path, modified, signatures.get(_as_in_splits(path), "")) for path, modified in stream.files]
            files = self.of(stream.stream).files.append(store, epoch, (FileRead(*file) for file in new))
            streams[stream.stream] = Position(stream.offset, stream.start, files)
        assert self.spark is not None, "Spark has planned the epoch"
        spark = self.spark if header is None else replace(self.spark, header=tuple(header))
        return Positions(streams, spark)

    def restricted_to(self, sources: Collection[str]) -> Positions:
        """Return the positions of these sources only, by identity."""
        kept = {stream: position for stream, position in self.streams.items() if stream.source in sources}
        return replace(self, streams=kept)

    def files_of(self, source: str) -> int:
        """Return the number of files of a source that the committed epochs have read, by its identity."""
        return sum(position.files.entries for stream, position in self.streams.items() if stream.source == source)

    def files_read(self, store: ObjectStore, source: str) -> list[FileRead]:
        """Return the files of a source that the committed epochs have read, in the order in which they were read.

        Paths are as in splits. Raises `Corrupt` if a part of the log is missing or damaged.
        """
        logs = [position.files for stream, position in self.streams.items() if stream.source == source]
        return [replace(file, path=_as_in_splits(file.path)) for log in logs for file in log.read(store)]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        streams = {str(stream): position.to_json() for stream, position in self.streams.items()}
        return {STREAMS: streams, **({} if self.spark is None else {"spark": self.spark.to_json()})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Positions:
        """Decode the result of `to_json`. Raises `ValueError` for another format, since rows would be read twice."""
        if not {"spark", STREAMS}.issuperset(data) or STREAMS not in data:
            raise ValueError("the positions of sources have another format")
        streams = {StreamId.from_text(text): Position.from_json(position) for text, position in data[STREAMS].items()}
        return cls(streams, Generation.from_json(data["spark"]) if "spark" in data else None)


def position_files(positions: Mapping[str, Any]) -> set[str]:
    """Return the names of the objects that positions reference."""
    logs = (position["files"] for position in positions.get(STREAMS, {}).values() if "files" in position)
    return {str(chunk[0]) for log in logs for chunk in log["chunks"]}


def as_in_log(path: str) -> str:
    """Convert a local path to that of Spark's log, an escaped URI: `/a b` is `file:///a%20b`.

    A state that one process has filled without Spark is continued on Spark, and the other way round: if they named a
    file differently, its rows would be read twice.
    """
    return "file://" + re.sub(r'[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]', lambda found: f"%{ord(found[0]):02X}", abspath(path))


def _as_in_splits(path: str) -> str:
    """Convert a path of Spark's log, an escaped URI, to a path of its rows: `file:///a%20b` is `file:/a b`."""
    parts = urlsplit(path)
    if not parts.scheme:
        return path
    place = f"//{parts.netloc}" if parts.netloc else ""
    return f"{parts.scheme}:{place}{unquote(parts.path)}"
