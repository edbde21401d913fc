"""The files that a source has read, as a log that the manifest reaches.

Invariants:
- entries are in the order in which epochs read them; an entry is never changed or removed;
- the newest entries are in the manifest itself, all others in immutable chunks that it names with their checksums;
- a manifest holds at most `RECENT` entries and O(log n) references below `CHUNK_ENTRIES`, so it does not grow with the
  number of files. An entry is rewritten O(log `CHUNK_ENTRIES`) times in all, so an epoch costs what it reads.

A chunk is compressed lines of JSON in the format of Spark's own log of files: a checkpoint is rebuilt by copying them.
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
    """A file that was read: its path as the source wrote it down, and its time in milliseconds, which orders files.

    `signature` tells that it was changed since (`formats.file_signatures`); empty if nobody took it.
    """

    path: str
    modified: int
    signature: str = ""

    def to_line(self, batch: int) -> str:
        """The entry as Spark writes it; `batch` is the number of the log entry that it belongs to."""
        signature = f',"signature":{json.dumps(self.signature)}' if self.signature else ""  # which Spark ignores
        return f'{{"path":{json.dumps(self.path)},"timestamp":{self.modified}{signature},"batchId":{batch}}}'

    @classmethod
    def from_line(cls, line: str | bytes) -> FileRead:
        """Read what `to_line` gave. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        entry = json.loads(line)
        return cls(str(entry["path"]), int(entry["timestamp"]), str(entry.get("signature", "")))


@dataclass(frozen=True)
class FileLog:
    """All files that were read. `last` counts the entries that came with the newest epoch that read any."""

    recent: tuple[FileRead, ...] = ()
    chunks: tuple[tuple[CheckedRef, int], ...] = ()
    last: int = 0

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {
            "recent": [[each.path, each.modified, each.signature] for each in self.recent],
            "chunks": [[*ref.to_json(), entries] for ref, entries in self.chunks],
            "last": self.last,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FileLog:
        """Read what `to_json` gave."""
        recent = tuple(FileRead(str(path), int(modified), str(signed)) for path, modified, signed in data["recent"])
        chunks = tuple((CheckedRef.from_json(chunk), int(chunk[3])) for chunk in data["chunks"])
        return cls(recent, chunks, int(data["last"]))

    @property
    def entries(self) -> int:
        """How many files were read."""
        return len(self.recent) + sum(entries for _, entries in self.chunks)

    def files(self) -> set[str]:
        """The objects that hold the log."""
        return {ref.name for ref, _ in self.chunks}

    def appended(self, store: ObjectStore, epoch: int, read: Iterable[FileRead]) -> FileLog:
        """The log after an epoch that read these files. Writes a chunk if the manifest would hold too many entries."""
        new = tuple(read)
        if not new:
            return self
        recent = (*self.recent, *new)
        if len(recent) <= RECENT:
            return FileLog(recent, self.chunks, len(new))
        chunks = list(self.chunks)
        lines = [each.to_line(0).encode() for each in recent]
        for start in range(0, len(lines), CHUNK_ENTRIES):
            piece = lines[start : start + CHUNK_ENTRIES]
            # Merge neighbours of similar size, so that their number is logarithmic.
            while chunks and chunks[-1][1] <= FAN * len(piece) and chunks[-1][1] + len(piece) <= CHUNK_ENTRIES:
                piece = [*_lines(store, chunks.pop()[0]), *piece]
            name = new_name(FOLDER, epoch).replace(".arrow", ".log")
            chunks.append((write_checked(store, name, zlib.compress(b"\n".join(piece), 1)), len(piece)))
        return FileLog((), tuple(chunks), len(new))

    def lines(self, store: ObjectStore) -> list[bytes]:
        """All entries, oldest first, as Spark writes them, in batch 0. Raises `Corrupt` if a chunk is damaged."""
        older = [line for ref, _ in self.chunks for line in _lines(store, ref)]
        return [*older, *(each.to_line(0).encode() for each in self.recent)]

    def read(self, store: ObjectStore) -> list[FileRead]:
        """All entries, oldest first. Raises `Corrupt` if a chunk is damaged."""
        return [FileRead.from_line(line) for line in self.lines(store)]


def _lines(store: ObjectStore, ref: CheckedRef) -> list[bytes]:
    return zlib.decompress(read_checked(store, ref, "the log of files that a source has read")).split(b"\n")
