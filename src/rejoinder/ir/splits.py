"""Splits: the units of reading of round 0, and the rows in which they travel to tasks.

A split names its scan: a source, or the relation that a hydration reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

SPLITS = pa.schema(
    [
        ("kind", pa.string()),
        ("scan", pa.string()),
        ("path", pa.string()),
        ("number", pa.int64()),
        ("payload", pa.binary()),
    ]
)
SPLITS_DDL = "kind string, scan string, path string, number bigint, payload binary"
"""The same columns for Spark."""
FILE, ROWS, RECORDS, STATE = "file", "rows", "records", "state"


@dataclass(frozen=True)
class FileSplit:
    """A file of a source."""

    scan: str
    path: str
    time: int
    """When it was modified, in milliseconds; the number of the file for rows of an inbox."""
    former: int | None = None
    """The number of the former definition by which it is read again; None: the current one."""


@dataclass(frozen=True)
class RowsSplit:
    """Rows of a source, as Arrow bytes."""

    scan: str
    rows: bytes | pa.Buffer
    number: int = 0
    """Orders the splits of a source within an epoch."""


@dataclass(frozen=True)
class RecordsSplit:
    """Records of a topic, as Arrow bytes."""

    scan: str
    topic: str
    records: bytes | pa.Buffer
    time: int
    """That of the newest record, in milliseconds."""


@dataclass(frozen=True)
class StateSplit:
    """One bucket of an arrangement or changelog."""

    scan: str
    bucket: int = 0


Split = FileSplit | RowsSplit | RecordsSplit | StateSplit
SplitRow = tuple[str, str, str | None, int, bytes | pa.Buffer | None]
"""A row of `SPLITS`."""


def to_row(split: Split) -> SplitRow:
    """Return a split as a row."""
    match split:
        case FileSplit():
            return FILE, split.scan, split.path, split.time, None if split.former is None else b"%d" % split.former
        case RowsSplit():
            return ROWS, split.scan, None, split.number, split.rows
        case RecordsSplit():
            return RECORDS, split.scan, split.topic, split.time, split.records
        case StateSplit():
            return STATE, split.scan, None, split.bucket, None


def from_row(kind: str, scan: str, path: str, number: int, payload: bytes | pa.Buffer | None) -> Split:
    """Return the split of a row."""
    if kind == FILE:
        return FileSplit(scan, path, number, int(bytes(payload)) if payload else None)
    if kind == STATE:
        return StateSplit(scan, number)
    assert payload is not None, "rows and records have a payload"
    if kind == ROWS:
        return RowsSplit(scan, payload, number)
    return RecordsSplit(scan, path, payload, number)


def split_batch(splits: Iterable[Split]) -> pa.RecordBatch:
    """Return splits as a batch."""
    columns = list(zip(*map(to_row, splits), strict=True)) or [()] * len(SPLITS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SPLITS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SPLITS)


def splits_in(batch: pa.RecordBatch) -> Iterator[Split]:
    """Yield the splits of a batch. Payloads are not copied."""
    for kind, scan, path, number, payload in zip(*batch.columns, strict=True):
        yield from_row(kind.as_py(), scan.as_py(), path.as_py(), number.as_py() or 0, payload.as_buffer())
