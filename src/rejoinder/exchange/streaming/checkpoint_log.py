"""The format of Spark's checkpoint: what an epoch has read, and a checkpoint that starts at a committed epoch.

`offsets/<epoch>` has a version, a header and one offset for each stream of the plan; `commits/<epoch>` says that the
epoch is done; `sources/<n>` is a log of the n-th stream: of files the entries `<number>` (every tenth holds all before
it, `<number>.compact`), of other kinds of streams where it began. Spark knows streams by their position in the plan.

Rows of a stream of files come once because Spark knows from the log which files it has read. A new checkpoint numbers
its log anew: entry 0 holds all files, entry 1 those of the newest epoch, which `cleanSource` still has to remove.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rejoinder.errors import Corrupt
from rejoinder.exchange.streaming.checkpoint_files import CheckpointFiles

NOTHING = "-"  # Spark's word for a stream of which nothing was read
FIRST_HEADER = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0})]
REBUILT_OFFSET = '{"logOffset":1}'
_MOST_START_BYTES = 1 << 20

FileLines = Callable[[str], tuple[list[bytes], int]]


@dataclass(frozen=True)
class StreamRead:
    """What an epoch did to a stream: the offset after it, the new files (path, milliseconds), and where it began."""

    stream: str
    offset: str
    files: Sequence[tuple[str, int]] = ()
    start: Mapping[str, str] = field(default_factory=dict)


def read_epoch(
    files: CheckpointFiles, folder: str, streams: Sequence[str], epoch: int, known: Mapping[str, Mapping[str, Any]]
) -> tuple[list[str], list[StreamRead]]:
    """The header of an epoch that Spark has planned, and what it reads of each stream.

    `known` are the positions before it. Raises `Corrupt` if Spark's files are not what Spark writes.
    """
    path = f"{folder}/offsets/{epoch}"
    lines = (files.read(path) or "").split("\n")
    if lines[0] != "v1" or len(lines) != len(streams) + 2:
        raise _unreadable(path, f"{len(lines)} lines for {len(streams)} streams")
    offsets = dict(zip(streams, lines[2:], strict=True))
    result = []
    for number, stream in enumerate(dict.fromkeys(streams)):
        position = known.get(stream, {})
        log, before = f"{folder}/sources/{number}", _log_offset(str(position.get("offset", NOTHING)), path)
        after = _log_offset(offsets[stream], path)
        if after is not None:
            entries = range((-1 if before is None else before) + 1, after + 1)
            read = [entry for each in entries for entry in _log_entry(files, log, each)]
            result.append(StreamRead(stream, offsets[stream], read))
        else:
            start = position.get("start") or _start(files, log)
            result.append(StreamRead(stream, offsets[stream], start=start))
    return lines[:2], result


def write_checkpoint(
    files: CheckpointFiles,
    folder: str,
    streams: Sequence[str],
    epoch: int,
    known: Mapping[str, Mapping[str, Any]],
    file_lines: FileLines,
    header: Sequence[str] = FIRST_HEADER,
    commit: str = 'v1\n{"nextBatchWatermarkMs":0}',
) -> dict[str, str]:
    """Write a checkpoint whose next epoch follows `epoch`; give the offset of each stream in it.

    `file_lines` gives the files that a stream has read, oldest first, and how many of them the newest epoch read.
    """
    offsets = dict.fromkeys(streams, NOTHING)
    for number, stream in enumerate(offsets):
        position, log = known.get(stream, {}), f"{folder}/sources/{number}"
        if "files" in position:
            lines, last = file_lines(stream)
            newest = [line.replace(b'"batchId":0}', b'"batchId":1}') for line in lines[len(lines) - last :]]
            files.write(f"{log}/0", b"\n".join([b"v1", *lines[: len(lines) - last]]).decode())
            files.write(f"{log}/1", b"\n".join([b"v1", *newest]).decode())
            offsets[stream] = REBUILT_OFFSET
            continue
        for name, text in position.get("start", {}).items():
            files.write(f"{log}/{name}", text)
        if "logOffset" not in position.get("offset", NOTHING):  # else a stream of files that has read none
            offsets[stream] = position.get("offset", NOTHING)
    if epoch < 0:
        return offsets
    text = "\n".join([*header, *(offsets[stream] for stream in streams)])
    for each in (epoch - 1, epoch) if epoch else (epoch,):  # Spark wants two; nothing lies between them
        files.write(f"{folder}/offsets/{each}", text)
    files.write(f"{folder}/commits/{epoch}", commit)
    # Spark stops a query of the same identity silently. Its driver should learn it from a manifest instead.
    files.write(f"{folder}/metadata", json.dumps({"id": str(uuid.uuid4())}))
    return offsets


def read_start(files: CheckpointFiles, folder: str, number: int) -> dict[str, str]:
    """Where a stream began that no epoch has read yet; empty for a stream of files, which begins with all of them."""
    return _start(files, f"{folder}/sources/{number}")


def _start(files: CheckpointFiles, log: str) -> dict[str, str]:
    texts = {name: files.read(f"{log}/{name}") or "" for name in files.list(log)}
    kept = {name: text for name, text in texts.items() if '{"path":' not in text[:4096]}
    return kept if sum(map(len, kept.values())) <= _MOST_START_BYTES else {}


def _log_offset(offset: str, path: str) -> int | None:
    """The number of the last entry in a log of files; None if the stream is of another kind, or not read yet."""
    try:
        found = json.loads(offset).get("logOffset") if offset.startswith("{") else None
        return None if found is None else int(found)
    except (ValueError, TypeError, AttributeError) as failure:
        raise _unreadable(path, str(failure)) from failure


def _log_entry(files: CheckpointFiles, log: str, number: int) -> list[tuple[str, int]]:
    """The files of one entry; of a compacted one, those that are its own."""
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
    """The last lines of a compacted entry: Spark puts what is new behind all that it had. The others are not parsed."""
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
        hint="run again: the checkpoint is written anew from the last committed epoch",
    )
