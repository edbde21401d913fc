"""The log of files that a source has read, referenced by the manifest.

Invariants:
- entries are in the order in which epochs read them; an entry is never changed or removed;
- the newest entries are in the manifest itself, all others in immutable chunks that it references with checksums;
- a manifest holds at most `RECENT` entries and O(log n) references to chunks below `CHUNK_ENTRIES`, so it does not grow
  with the number of files. An entry is rewritten O(log `CHUNK_ENTRIES`) times, so an epoch costs what it reads.

A chunk is compressed lines of JSON in the format of Spark's file source log: a checkpoint is rebuilt by copying them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.store.objects.checked_objects import CheckedRef, read_checked, write_checked
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import new_name

FOLDER = "positions"
RECENT = 64
CHUNK_ENTRIES = 1 << 17
FAN = 4


@dataclass(frozen=True)
class FileRead:
    """A file that was read."""

    path: str
    """The path as Spark's source reported it."""
    modified: int
    """When the file was written, in milliseconds since 1970; files are read in this order."""
    signature: str = ""
    """Detects that the file was changed since (`formats.file_signatures`); empty if none was computed."""

    def to_line(self, batch: int) -> str:
        """Return the entry as Spark writes it; `batch` is the number of the log entry that it belongs to."""
        signature = f',"signature":{json.dumps(self.signature)}' if self.signature else ""  # Spark ignores it
        return f'{{"path":{json.dumps(self.path)},"timestamp":{self.modified}{signature},"batchId":{batch}}}'

    @classmethod
    def from_line(cls, line: str | bytes) -> FileRead:
        """Read what `to_line` returned. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        entry = json.loads(line)
        return cls(str(entry["path"]), int(entry["timestamp"]), str(entry.get("signature", "")))


@dataclass(frozen=True)
class FileLog:
    """All files that a source has read."""

    recent: tuple[FileRead, ...] = ()
    """The newest entries, stored in the manifest."""
    chunks: tuple[tuple[CheckedRef, int], ...] = ()
    """The chunks with older entries, each with its number of entries."""
    last: int = 0
    """Number of entries of the newest epoch that read any file."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "recent": [[file.path, file.modified, file.signature] for file in self.recent],
            "chunks": [[*ref.to_json(), entries] for ref, entries in self.chunks],
            "last": self.last,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileLog:
        """Read what `to_json` returned."""
        recent = tuple(FileRead(str(path), int(modified), str(mark)) for path, modified, mark in data["recent"])
        chunks = tuple((CheckedRef.from_json(chunk), int(chunk[3])) for chunk in data["chunks"])
        return cls(recent, chunks, int(data["last"]))

    @property
    def entries(self) -> int:
        """Number of files in the log."""
        return len(self.recent) + sum(entries for _, entries in self.chunks)

    def files(self) -> set[str]:
        """Return the names of the objects that hold the chunks."""
        return {ref.name for ref, _ in self.chunks}

    def append(self, store: ObjectStore, epoch: int, read: Iterable[FileRead]) -> FileLog:
        """Return the log with the files that an epoch read. Writes a chunk if `recent` would exceed `RECENT`."""
        new = tuple(read)
        if not new:
            return self
        recent = (*self.recent, *new)
        if len(recent) <= RECENT:
            return FileLog(recent, self.chunks, len(new))
        chunks = list(self.chunks)
        lines = [file.to_line(0).encode() for file in recent]
        for start in range(0, len(lines), CHUNK_ENTRIES):
            piece = lines[start : start + CHUNK_ENTRIES]
            # Combine adjacent chunks of similar size, so that their number is logarithmic.
            while chunks and chunks[-1][1] <= FAN * len(piece) and chunks[-1][1] + len(piece) <= CHUNK_ENTRIES:
                piece = [*_lines(store, chunks.pop()[0]), *piece]
            name = new_name(FOLDER, epoch).replace(".arrow", ".log")
            chunks.append((write_checked(store, name, zlib.compress(b"\n".join(piece), 1)), len(piece)))
        return FileLog((), tuple(chunks), len(new))

    def lines(self, store: ObjectStore) -> list[bytes]:
        """Return all entries as Spark writes them, in batch 0, oldest first. Raises `Corrupt` for a damaged chunk."""
        older = [line for ref, _ in self.chunks for line in _lines(store, ref)]
        return [*older, *(file.to_line(0).encode() for file in self.recent)]

    def read(self, store: ObjectStore) -> list[FileRead]:
        """Return all entries, oldest first. Raises `Corrupt` if a chunk is damaged."""
        return [FileRead.from_line(line) for line in self.lines(store)]


def _lines(store: ObjectStore, ref: CheckedRef) -> list[bytes]:
    return zlib.decompress(read_checked(store, ref, "the log of files that a source has read")).split(b"\n")
