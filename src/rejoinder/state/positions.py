"""Positions: how far each stream of a source is read at the committed epoch, as the manifest holds it.

A source is one stream, or several if it is a DataFrame over several. A stream is identified by `<source identity>/<n>`,
where the identity (`Engine.attached`) lasts as long as something reads the source. Nothing else says how far a source
is read: Spark's checkpoint is written from here at every start, and the test driver has no other.
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
    """How far one stream is read."""

    offset: str = NOTHING
    """Spark's offset, as text; `-` before the first epoch, and where Spark does not read it."""
    start: Mapping[str, str] = field(default_factory=dict)
    """What the stream wrote down about where it began, by name: partition offsets of a topic, the time of a rate."""
    files: FileLog = field(default_factory=FileLog)
    """The files that were read, of a stream of files."""

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        files = {} if self.files == FileLog() else {"files": self.files.to_json()}
        start = {"start": dict(self.start)} if self.start else {}
        return {"offset": self.offset, **start, **files}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Position:
        """Read what `to_json` gave."""
        files = FileLog.from_json(data["files"]) if "files" in data else FileLog()
        return cls(str(data["offset"]), dict(data.get("start", {})), files)


def position_of(positions: Mapping[str, Any], stream: str) -> Position:
    """The position of a stream; that of one that was never read if there is none."""
    known = positions.get(STREAMS, {}).get(stream)
    return Position() if known is None else Position.from_json(known)


def with_position(positions: Mapping[str, Any], stream: str, position: Position) -> dict[str, Any]:
    """The positions with another one for a stream."""
    return {**positions, STREAMS: {**positions.get(STREAMS, {}), stream: position.to_json()}}


def with_files(
    store: ObjectStore, positions: Mapping[str, Any], stream: str, epoch: int, read: Iterable[FileRead]
) -> dict[str, Any]:
    """The positions after an epoch that read files of a stream."""
    position = position_of(positions, stream)
    return with_position(positions, stream, replace(position, files=position.files.append(store, epoch, read)))


class StreamRead(Protocol):
    """What an epoch did to a stream of Spark's (`exchange.streaming.checkpoint_log.StreamRead`)."""

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
    """The positions after an epoch of Spark's. `header` is that of its offsets, if Spark keeps state of its own.

    `signatures` are those of the files that its tasks have read, by path.
    """
    streams = dict(positions.get(STREAMS, {}))
    for each in read:
        files = position_of(positions, each.stream).files
        new = [(path, modified, signatures.get(_as_in_splits(path), "")) for path, modified in each.files]
        files = files.append(store, epoch, (FileRead(*file) for file in new))
        streams[each.stream] = Position(each.offset, each.start, files).to_json()
    generation = {**positions["spark"]} if header is None else {**positions["spark"], "header": list(header)}
    return {**positions, STREAMS: streams, "spark": generation}


def kept(positions: Mapping[str, Any], identities: Collection[str]) -> dict[str, Any]:
    """Only the positions of sources that something reads."""
    streams = positions.get(STREAMS, {})
    wanted = {stream: each for stream, each in streams.items() if stream.partition("/")[0] in identities}
    return {**positions, STREAMS: wanted} if len(wanted) < len(streams) else dict(positions)


def position_files(positions: Mapping[str, Any]) -> set[str]:
    """The objects that positions name."""
    logs = (each["files"] for each in positions.get(STREAMS, {}).values() if "files" in each)
    return {str(chunk[0]) for log in logs for chunk in log["chunks"]}


def files_read(store: ObjectStore, positions: Mapping[str, Any], identity: str) -> list[FileRead]:
    """The files of a source that the committed epochs have read, in the order in which they were read.

    `positions` are those of the manifest, `identity` is that of the source in it (`attached`). Paths are those that
    splits had. Raises `Corrupt` if a part of the log is missing or damaged.
    """
    streams = [name for name in positions.get(STREAMS, {}) if name.partition("/")[0] == identity]
    found = [each for name in streams for each in position_of(positions, name).files.read(store)]
    return [replace(each, path=_as_in_splits(each.path)) for each in found]


def _as_in_splits(path: str) -> str:
    """Spark's log holds escaped URIs, its rows paths: `file:///a%20b` is `file:/a b`."""
    parts = urlsplit(path)
    if not parts.scheme:
        return path
    place = f"//{parts.netloc}" if parts.netloc else ""
    return f"{parts.scheme}:{place}{unquote(parts.path)}"
