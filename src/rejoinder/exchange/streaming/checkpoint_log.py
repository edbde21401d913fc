"""The format of Spark's checkpoint: read what an epoch has read; write a checkpoint that starts at a committed epoch.

`offsets/<epoch>` has a version, a header and an offset for each stream of the plan; `commits/<epoch>` marks the epoch
as done; `sources/<n>` is the log of the n-th stream. For files it has entries `<number>` (every tenth contains all
before it, `<number>.compact`), for other streams the start offset. Spark identifies streams by their position in the
plan.

Each file is read once because Spark's log lists the files that were read. A new checkpoint starts a new log: entry 0
lists all files, entry 1 those of the newest epoch, which `cleanSource` still has to remove.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rejoinder.errors import Corrupt
from rejoinder.exchange.streaming.checkpoint_files import CheckpointFiles
from rejoinder.ir.streams import StreamId

NOTHING = "-"  # Spark's offset of a stream of which nothing was read
FIRST_HEADER = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0})]
REBUILT_OFFSET = '{"logOffset":1}'
_MOST_START_BYTES = 1 << 20

FileLines = Callable[[StreamId], tuple[list[bytes], int]]


class StreamPosition(Protocol):
    """The position of a stream (`state.positions.Position`)."""

    @property
    def offset(self) -> str: ...
    @property
    def start(self) -> Mapping[str, str]: ...
    @property
    def has_files(self) -> bool: ...


@dataclass(frozen=True)
class NewStream:
    """The position of a stream that no epoch has read yet."""

    start: Mapping[str, str] = field(default_factory=dict)
    offset: str = NOTHING
    has_files: bool = False


@dataclass(frozen=True)
class StreamRead:
    """What an epoch has read of a stream."""

    stream: StreamId
    offset: str
    """The offset after the epoch."""
    files: Sequence[tuple[str, int]] = ()
    """New files: path, and modification time in milliseconds."""
    start: Mapping[str, str] = field(default_factory=dict)
    """Spark's files with the start offset of the stream, by name."""


def read_epoch(
    files: CheckpointFiles,
    folder: str,
    streams: Sequence[StreamId],
    epoch: int,
    known: Mapping[StreamId, StreamPosition],
) -> tuple[list[str], list[StreamRead]]:
    """Return the header of an epoch that Spark has planned, and what it reads of each stream.

    `known` are the positions before it. Raises `Corrupt` if a file is not in Spark's format.
    """
    path = f"{folder}/offsets/{epoch}"
    lines = (files.read(path) or "").split("\n")
    if lines[0] != "v1" or len(lines) != len(streams) + 2:
        raise _unreadable(path, f"{len(lines)} lines for {len(streams)} streams")
    offsets = dict(zip(streams, lines[2:], strict=True))
    result = []
    for number, stream in enumerate(dict.fromkeys(streams)):
        position = known.get(stream, NewStream())
        log, before = f"{folder}/sources/{number}", _log_offset(position.offset, path)
        after = _log_offset(offsets[stream], path)
        if after is not None:
            entries = range((-1 if before is None else before) + 1, after + 1)
            read = [file for entry in entries for file in _log_entry(files, log, entry)]
            result.append(StreamRead(stream, offsets[stream], read))
        else:
            start = position.start or _start(files, log)
            result.append(StreamRead(stream, offsets[stream], start=start))
    return lines[:2], result


def write_checkpoint(
    files: CheckpointFiles,
    folder: str,
    streams: Sequence[StreamId],
    epoch: int,
    known: Mapping[StreamId, StreamPosition],
    file_lines: FileLines,
    header: Sequence[str] = FIRST_HEADER,
    commit: str = 'v1\n{"nextBatchWatermarkMs":0}',
) -> dict[StreamId, str]:
    """Write a checkpoint whose next epoch follows `epoch`; return the offset of each stream in it.

    `file_lines` returns the files that a stream has read, oldest first, and how many of them the newest epoch read.
    """
    offsets = dict.fromkeys(streams, NOTHING)
    for number, stream in enumerate(offsets):
        position, log = known.get(stream, NewStream()), f"{folder}/sources/{number}"
        if position.has_files:
            lines, last = file_lines(stream)
            newest = [line.replace(b'"batchId":0}', b'"batchId":1}') for line in lines[len(lines) - last :]]
            files.write(f"{log}/0", b"\n".join([b"v1", *lines[: len(lines) - last]]).decode())
            files.write(f"{log}/1", b"\n".join([b"v1", *newest]).decode())
            offsets[stream] = REBUILT_OFFSET
            continue
        for name, text in position.start.items():
            files.write(f"{log}/{name}", text)
        if "logOffset" not in position.offset:  # else a stream of files that has read no file
            offsets[stream] = position.offset
    if epoch < 0:
        return offsets
    text = "\n".join([*header, *(offsets[stream] for stream in streams)])
    for number in (epoch - 1, epoch) if epoch else (epoch,):  # Spark needs two; equal offsets mean no rows
        files.write(f"{folder}/offsets/{number}", text)
    files.write(f"{folder}/commits/{epoch}", commit)
    # Spark silently stops a query with the same identity. Its driver must be fenced by a manifest instead.
    files.write(f"{folder}/metadata", json.dumps({"id": str(uuid.uuid4())}))
    return offsets


def read_start(files: CheckpointFiles, folder: str, number: int) -> dict[str, str]:
    """Return the start offset of a stream that no epoch has read yet; empty for files, which start with all of them."""
    return _start(files, f"{folder}/sources/{number}")


def _start(files: CheckpointFiles, log: str) -> dict[str, str]:
    texts = {name: files.read(f"{log}/{name}") or "" for name in files.list(log)}
    start = {name: text for name, text in texts.items() if '{"path":' not in text[:4096]}
    return start if sum(map(len, start.values())) <= _MOST_START_BYTES else {}


def _log_offset(offset: str, path: str) -> int | None:
    """Return the number of the last entry in a log of files; None for another kind of stream, or before the first."""
    try:
        number = json.loads(offset).get("logOffset") if offset.startswith("{") else None
        return None if number is None else int(number)
    except (ValueError, TypeError, AttributeError) as failure:
        raise _unreadable(path, str(failure)) from failure


def _log_entry(files: CheckpointFiles, log: str, number: int) -> list[tuple[str, int]]:
    """Return the files of one entry; for a compacted one, only its own."""
    plain = files.read(f"{log}/{number}")
    text = files.read(f"{log}/{number}.compact") if plain is None else plain
    if text is None or not text.startswith("v1\n"):
        raise _unreadable(f"{log}/{number}", "no such entry" if text is None else "not a log of files")
    lines = text.split("\n")[1:] if plain is not None else _own_lines(text, number)
    try:
        entries = [json.loads(line) for line in lines if line]
        return [(str(entry["path"]), int(entry["timestamp"])) for entry in entries]
    except (ValueError, KeyError, TypeError) as failure:
        raise _unreadable(f"{log}/{number}", str(failure)) from failure


def _own_lines(text: str, number: int) -> list[str]:
    """Return the last lines of a compacted entry: Spark appends new files to all earlier ones, which are not parsed."""
    own, end, mark = [], len(text), f'"batchId":{number}}}'
    while end > 0 and text.endswith(mark, 0, end):
        start = text.rfind("\n", 0, end)
        own.append(text[start + 1 : end])
        end = start
    return own[::-1]


def _unreadable(path: str, detail: str) -> Corrupt:
    return Corrupt(
        "a file of Spark's checkpoint is damaged",
        detail=f"`{path}`: {detail}",
        hint="run again: the checkpoint is rebuilt from the last committed epoch",
    )
