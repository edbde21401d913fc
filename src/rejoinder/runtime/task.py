"""A task: one bucket in one round of one epoch, with its streams, its part of the state, and its outbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import HASH, UInt64, replaced, take, with_payload
from rejoinder.kernels.arrow.consolidate import row_hashes
from rejoinder.kernels.arrow.hashing import Mask, hash_rows
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.row_errors import or_null
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.retention_bound import Retention, RetentionBound
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Below, Expiry
from rejoinder.store.runs.run import RunRef, read_run
from rejoinder.store.runs.spine import Compaction, Spine
from rejoinder.watermarks.coalescer import Input
from rejoinder.watermarks.formula import value_of

MAX_PAIRS = 50_000_000


@dataclass
class Report:
    """What a task reports to the driver: names and counts, never rows."""

    spines: dict[str, Spine] = field(default_factory=dict)
    """New spine by arrangement."""
    emitted: dict[str, list[RunRef]] = field(default_factory=dict)
    """By view, changelog runs that are not in a spine yet."""
    changelogs: dict[str, Spine] = field(default_factory=dict)
    """New spine of the changelog by view."""
    rows_in: dict[str, int] = field(default_factory=dict)
    """Rows read by source."""
    bytes_in: dict[str, int] = field(default_factory=dict)
    """Decoded bytes read by source."""
    rows_out: dict[str, int] = field(default_factory=dict)
    """Changes written by view."""
    newest: dict[str, int] = field(default_factory=dict)
    """When the newest file of each source was written, in milliseconds since 1970."""
    observed: dict[str, dict[Input, dict[str, int]]] = field(default_factory=dict)
    """The largest time of each event-time column, by source and partition."""
    late: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of late rows by view and input."""
    failed: dict[str, int] = field(default_factory=dict)
    """Net number of rows on which an expression failed, by error."""
    null_columns: dict[str, dict[str, str]] = field(default_factory=dict)
    """By source, the columns that are NULL in every record of a file, with that file."""
    signatures: dict[str, str] = field(default_factory=dict)
    """Signature of each source file that was read, by path."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for an exchange row."""
        return {
            "spines": {name: spine.to_json() for name, spine in self.spines.items()},
            "emitted": {name: [ref.to_json() for ref in refs] for name, refs in self.emitted.items()},
            "changelogs": {name: spine.to_json() for name, spine in self.changelogs.items()},
            "rows_in": self.rows_in,
            "bytes_in": self.bytes_in,
            "rows_out": self.rows_out,
            "newest": self.newest,
            "observed": {source: list(partitions.items()) for source, partitions in self.observed.items()},
            "late": self.late,
            "failed": self.failed,
            "null_columns": self.null_columns,
            "signatures": self.signatures,
        }

    def add(self, data: Mapping[str, Any]) -> None:
        """Add the report of an earlier round."""
        self.spines |= {name: Spine.from_json(spine) for name, spine in data["spines"].items()}
        self.changelogs |= {name: Spine.from_json(spine) for name, spine in data["changelogs"].items()}
        for name, refs in data["emitted"].items():
            self.emitted.setdefault(name, []).extend(RunRef.from_json(ref) for ref in refs)
        for counts, more in (
            (self.rows_in, data["rows_in"]),
            (self.bytes_in, data["bytes_in"]),
            (self.rows_out, data["rows_out"]),
            (self.failed, data["failed"]),
        ):
            for name, rows in more.items():
                counts[name] = counts.get(name, 0) + rows
        for view, inputs in data["late"].items():
            for name, rows in inputs.items():
                self.count_late(view, name, rows)
        for source, columns in data["null_columns"].items():
            self.null_columns[source] = {**columns, **self.null_columns.get(source, {})}
        self.signatures |= data["signatures"]
        for source, written in data["newest"].items():
            self.newest[source] = max(written, self.newest.get(source, 0))
        for source, partitions in data["observed"].items():
            for partition, columns in partitions:
                self.observe(source, partition, columns)

    def count_read(self, source: str, rows: pa.Table) -> None:
        """Count rows of a source that were read."""
        self.rows_in[source] = self.rows_in.get(source, 0) + rows.num_rows
        self.bytes_in[source] = self.bytes_in.get(source, 0) + rows.nbytes

    def count_late(self, view: str, name: str, rows: int) -> None:
        """Count late rows of an input, for a view."""
        counts = self.late.setdefault(view, {})
        counts[name] = counts.get(name, 0) + rows

    def observe(self, source: str, partition: Input, times: Mapping[str, int]) -> None:
        """Record that a partition of a source had rows, and their largest event times by column."""
        largest = self.observed.setdefault(source, {}).setdefault(partition, {})
        for column, value in times.items():
            largest[column] = max(value, largest.get(column, value))


@dataclass(frozen=True)
class Clock:
    """The times of an epoch."""

    now: int = 0
    """Processing time of the epoch, in microseconds since 1970."""
    emitted_up_to: Mapping[str, int] = field(default_factory=dict)
    """By arrangement of pending changes, the time up to which they were emitted."""
    watermarks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Watermarks before the epoch, by source and column."""


@dataclass
class Task:
    """The working memory of a task."""

    store: ObjectStore
    epoch: int
    bucket: int
    """Number of the bucket that the task processes."""
    buckets: int
    """Number of buckets."""
    before: Mapping[str, Spine]
    """The committed state: spine by arrangement or changelog. `report.spines` are the new spines."""
    history: int
    """Number of epochs that changelogs keep apart."""
    max_pairs: int = MAX_PAIRS
    """RetentionBound of pairs that one lookup may produce."""
    clock: Clock = field(default_factory=Clock)
    streams: dict[str, pa.Table] = field(default_factory=dict)
    """The deltas of this round by stream."""
    arranged: dict[str, list[RunRef]] = field(default_factory=dict)
    """By arrangement, the runs of this round, which are not in a spine yet."""
    compactions: dict[str, Compaction] = field(default_factory=dict)
    """How the spines of `arranged` are compacted."""
    expiry: Mapping[str, Expiry] = field(default_factory=dict)
    """By arrangement, expired rows that a hydration must leave out. A change of an epoch never matches such rows."""
    report: Report = field(default_factory=Report)
    outbox: list[tuple[int, int, pa.Table]] = field(default_factory=list)
    """Deltas for later rounds: (bucket, channel, rows)."""
    tables: dict[tuple[str, int, int], pa.Table] = field(default_factory=dict)
    """Rows of the runs that were read, by file and range of hashes."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The range of hashes of this bucket."""
        return hash_range(self.bucket, self.buckets)

    def runs(self, arrangement: Arrangement, *, after: bool) -> list[pa.Table]:
        """Return the runs of an arrangement, with this epoch's changes if `after`."""
        runs = [self._read(ref) for ref in self.refs(arrangement.id, after=after)]
        if arrangement.is_lean:
            runs = [with_payload(run, arrangement.schema.names) for run in runs]
        expiry = self.expiry.get(arrangement.id)
        return runs if expiry is None else [expiry.drop_expired(run) for run in runs]

    def _read(self, ref: RunRef) -> pa.Table:
        """Return the rows of a run, which is read once however many steps look it up."""
        part = (ref.name, ref.first, ref.last)
        if part not in self.tables:
            self.tables[part] = read_run(self.store, ref)
        return self.tables[part]

    def refs(self, arrangement: str, *, after: bool) -> Iterable[RunRef]:
        """Return references to the runs of an arrangement, with this epoch's changes if `after`."""
        before = self.before.get(arrangement, Spine())
        if not after:
            return before.refs
        if arrangement in self.arranged:
            return (*before.refs, *self.arranged[arrangement])
        return self.report.spines.get(arrangement, before).refs


def expiry_of(retention: Retention, watermarks: Mapping[str, Mapping[str, int]]) -> Expiry:
    """Return the expiry of an arrangement at these watermarks."""

    def below(limit: RetentionBound) -> Below:
        return Below(limit.column, value_of(limit.below, watermarks, LEAST), limit.keeps_nulls)

    return Expiry(tuple(tuple(map(below, limits)) for limits in retention.users))


def key_columns(table: pa.Table, key: Key) -> list[pa.ChunkedArray]:
    """Evaluate the parts of a key on a table. A part that fails on a row is NULL there; `steps.Check` reports it."""
    if all(part.is_column for part in key.parts):
        return [table.column(part.columns[0]) for part in key.parts]
    keyed = project(table, [(str(i), or_null(part)) for i, part in enumerate(key.parts)])
    return [keyed.column(str(i)) for i in range(len(key.parts))]


def partition_hashes(table: pa.Table, key: Key) -> tuple[UInt64, Mask | None]:
    """Return the hashes of rows for partitioning, and which rows have a key that can match; None for all.

    Rows that cannot match are hashed by their content: otherwise they would all go to one bucket.
    """
    columns = key_columns(table, key)
    keys, valid = hash_rows(columns, table.num_rows), valid_keys(columns, key)
    return (keys, None) if valid is None else (np.where(valid, keys, row_hashes(table)), valid)


def valid_keys(columns: Sequence[pa.ChunkedArray], key: Key) -> Mask | None:
    """Return a mask of the rows whose key can match: without NULL, unless that part is null-safe. None for all rows."""
    valid: Mask | None = None
    for number, column in enumerate(columns):
        if column.null_count and number not in key.null_safe:
            not_null = np.asarray(column.is_valid())
            valid = not_null if valid is None else valid & not_null
    return valid


def needles(table: pa.Table, key: Key, *, hashed: bool) -> pa.Table:
    """Return the rows of a stream that can match, with `__hash` of the key, sorted by it."""
    columns = key_columns(table, key)
    keyed = table
    if not hashed or HASH not in table.column_names:
        keyed = replaced(table, HASH, hash_rows(columns, table.num_rows))
    valid = valid_keys(columns, key)
    return sorted_by_hash(keyed if valid is None else take(keyed, np.flatnonzero(valid)))
