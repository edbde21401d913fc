"""Scan: read a split as deltas, in chunks of bounded size. The chunks of a split are in the order of its rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.connectors.files.reading import read_file
from rejoinder.connectors.kafka.topic_records import read_records
from rejoinder.errors import MalformedInput, SchemaChanged
from rejoinder.formats.conform import conform
from rejoinder.formats.record_checks import DELETES, INSERTS, mark_of, signs_of
from rejoinder.formats.unreadable import Unreadable
from rejoinder.ir.catalog import Source
from rejoinder.ir.evolution.former_definition import former_source
from rejoinder.ir.logical import EMIT_AT, GATE
from rejoinder.ir.splits import FileSplit, RecordsSplit, RowsSplit, Split, StateSplit
from rejoinder.kernels.arrow.columns import (
    DIFF,
    EPOCH,
    HASH,
    PARTITION,
    SEQUENCE,
    diffs,
    drop_unit_diffs,
    replaced,
    take,
    without,
)
from rejoinder.kernels.arrow.scatter import decode
from rejoinder.kernels.zones.zone_labels import schema_in_zone
from rejoinder.kernels.zones.zone_offsets import arrow_zone
from rejoinder.plan.blocks.accumulators import UNIT_SCHEMA
from rejoinder.plan.physical.dataflow import ArrangementScan, ChangelogScan, DueScan, Scan, SourceScan, UnitScan
from rejoinder.runtime.computed_values import with_computed
from rejoinder.runtime.future_rows import split_future_rows
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.changed_columns import changed_columns
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import lies_in, read_run
from rejoinder.store.runs.spine import Spine
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.coalescer import Input

CHUNK_ROWS = 1 << 18


def scan(
    store: ObjectStore,
    scan_: Scan,
    split: Split,
    before: Mapping[str, tuple[Spine, ...]],
    expiry: Mapping[str, Expiry],
    now: int,
    opened: Callable[[str], None] = lambda signature: None,
    needs_record: Callable[[pa.Table], bool] = lambda rows: False,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the chunks of a split as (stream, delta). `now` is the clock of the epoch, in microseconds.

    If the split is a file, `opened` is called with its signature. Of a scan with few columns, the rows of a file have
    all columns from the first chunk on for which `needs_record` is true.
    """
    if isinstance(scan_, SourceScan):
        assert not isinstance(split, StateSplit)
        if isinstance(split, FileSplit) and scan_.columns is not None:
            yield from _scan_columns(scan_, split, now, opened, needs_record)
        else:
            yield from _scan_source(scan_, split, now, opened)
        return
    assert isinstance(split, StateSplit)
    match scan_:
        case ArrangementScan():
            name = scan_.arrangement.id
            yield from _scan_arrangement(store, scan_, before[name][split.bucket], expiry.get(name))
        case ChangelogScan():
            for ref in before[scan_.view][split.bucket].refs:
                for chunk in _chunks(without(read_run(store, ref), [HASH, EPOCH])):
                    yield scan_.stream, replaced(chunk, DIFF, -diffs(chunk)) if scan_.is_retracted else chunk
        case DueScan():
            yield from _scan_due(store, scan_, before[scan_.pending.id][split.bucket])
        case UnitScan():
            yield scan_.stream, pa.Table.from_pylist([{}], schema=UNIT_SCHEMA)


def _scan_columns(
    scan_: SourceScan,
    split: FileSplit,
    now: int,
    opened: Callable[[str], None],
    needs_record: Callable[[pa.Table], bool],
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the chunks of a file with the columns of the scan, and its rest with all columns if that is needed.

    A scan with few columns rejects no rows, so that a position in the file is the number of rows before it.
    """
    position = 0
    for stream, rows in _scan_source(scan_, split, now, opened):
        if needs_record(rows):
            break
        yield stream, rows
        position += rows.num_rows
    else:
        return
    for stream, rows in _scan_source(replace(scan_, columns=None), split, now, opened):
        skipped = min(position, rows.num_rows)
        position -= skipped
        if skipped < rows.num_rows:
            yield stream, rows.slice(skipped)


def _scan_source(
    scan_: SourceScan, split: FileSplit | RowsSplit | RecordsSplit, now: int, opened: Callable[[str], None]
) -> Iterator[tuple[str, pa.Table]]:
    former = split.former if isinstance(split, FileSplit) else None
    source = scan_.source if former is None else former_source(scan_.source, former)
    changes = () if former is None else [change for was in scan_.source.history[former:] for change in was.changes]
    columns = scan_.columns if former is None else None
    recorded = source.recorded
    readable = replace(recorded, schema=schema_in_zone(recorded.schema, arrow_zone(source.time_zone)))
    tables: Iterator[tuple[bool, pa.Table]]
    path: str | None
    if isinstance(split, FileSplit):
        tables = read_file(split.path, readable, CHUNK_ROWS, opened, columns)
        path, number, place = split.path, split.time, split.path
        recorded = recorded if columns is None else recorded.with_columns(columns)
    elif isinstance(split, RecordsSplit):
        tables = read_records(split.topic, decode(split.records), readable)
        path, number, place = split.topic, split.time, f"topic {split.topic}"
    else:
        tables = ((True, chunk) for chunk in _chunks(decode(split.rows)))
        path, number, place = None, split.number, f"a batch of `{source.name}`"
    sequence = (number << 20) | (zlib.crc32((path or "").encode()) & 0xFFFFF)
    for is_usable, table in tables:
        if not is_usable:
            yield str(source.rejected), table
        elif table.num_rows:
            delta, failed = with_computed(_as_delta(table, recorded, sequence, place), source, path)
            delta, future = split_future_rows(delta, source, now, path)
            for rejected in (failed, future):
                if rejected is not None:
                    yield str(source.rejected), rejected
            if delta.num_rows:
                yield scan_.stream, changed_columns(delta, changes)


def _scan_arrangement(
    store: ObjectStore, scan_: ArrangementScan, spine: Spine, expiry: Expiry | None
) -> Iterator[tuple[str, pa.Table]]:
    names = scan_.arrangement.schema.names
    for ref in spine.refs:
        run = read_run(store, ref) if expiry is None else expiry.drop_expired(read_run(store, ref))
        kept = [*names, DIFF] if DIFF in run.column_names else names
        for chunk in _chunks(run.select(kept)):
            yield scan_.stream, chunk


def _scan_due(store: ObjectStore, scan_: DueScan, spine: Spine) -> Iterator[tuple[str, pa.Table]]:
    """Yield the pending changes that are due, from the runs whose span contains any."""
    for ref in spine.refs:
        if not lies_in(ref, EMIT_AT, scan_.after, scan_.until):
            continue
        run = without(read_run(store, ref), [HASH])
        times = times_of(run, EMIT_AT)
        due = np.flatnonzero((times > scan_.after) & (times <= scan_.until))
        for chunk in _chunks(take(without(run, [EMIT_AT, GATE]), due)):
            yield scan_.stream, chunk


def largest_times(scan_: Scan, stream: str, table: pa.Table) -> Iterator[tuple[Input, dict[str, int]]]:
    """Yield the partitions in a chunk of a source, with the largest time of each column that drives a watermark.

    Rows with NULL as partition advance no watermark.
    """
    if not isinstance(scan_, SourceScan) or stream != scan_.stream or not scan_.source.watermarks:
        return
    source = scan_.source
    names = [name for name, delay in source.watermarks.items() if delay is not None]
    by = PARTITION if PARTITION in table.column_names else source.partition_by
    if by is None:
        scalars = [pc.max(table.column(name)).cast(table.field(name).type) for name in names]
        largest = pa.table([pa.array([scalar.as_py()], scalar.type) for scalar in scalars], names=names)
        yield 0, _times(largest, names, 1)[0]
        return
    keyed = pa.table([table.column(by), *(table.column(name) for name in names)], names=["", *names])
    largest = keyed.group_by("", use_threads=False).aggregate([(name, "max") for name in names])
    largest = largest.rename_columns([name.removesuffix("_max") for name in largest.column_names])
    for partition, times in zip(largest.column("").to_pylist(), _times(largest, names, largest.num_rows), strict=True):
        if partition is not None:
            yield partition, times


def _times(table: pa.Table, names: list[str], rows: int) -> list[dict[str, int]]:
    """Return the times of each row by column, without NULL."""
    columns = {name: times_of(table, name).tolist() for name in names}
    return [{name: column[row] for name, column in columns.items() if column[row] != NO_TIME} for row in range(rows)]


def _chunks(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, CHUNK_ROWS):
        yield table.slice(start, CHUNK_ROWS)


def _as_delta(table: pa.Table, source: Source, sequence: int, place: str) -> pa.Table:
    """Return rows with the declared columns and types, the diff of each row, and, for a table, its order of arrival."""
    delta = conform(table, source.schema, place, source.name)
    if PARTITION in table.column_names:
        delta = delta.append_column(PARTITION, table.column(PARTITION))
    signs = _signs(table, source, place)
    if signs is not None:
        delta = drop_unit_diffs(replaced(delta, DIFF, signs))
    if source.kind == "table":
        if SEQUENCE in table.column_names:
            delta = replaced(delta, SEQUENCE, table.column(SEQUENCE).combine_chunks())
        else:
            delta = replaced(delta, SEQUENCE, np.full(delta.num_rows, sequence, np.int64))
    return delta


def _signs(table: pa.Table, source: Source, place: str) -> pa.Array | None:
    """Return the diffs of rows from the op or diff column; None if the source has neither."""
    if DIFF in table.column_names:
        return table.column(DIFF).combine_chunks().cast(pa.int64())
    declared, name = source.diff or source.op, mark_of(table, source)
    if declared is None:
        return None
    if name is None:
        raise SchemaChanged(
            f"column `{declared}` of `{source.name}` is missing in {place}",
            detail=f"columns found: {', '.join(table.column_names)}",
            hint="the source was declared with this op or diff column",
        )
    try:
        return signs_of(table.column(name), source)
    except Unreadable as failure:
        words = f"an operation; inserts: {', '.join(sorted(INSERTS))}; deletes: {', '.join(sorted(DELETES))}"
        raise MalformedInput(
            failure.plain,
            detail=f"column `{name}` in {place}",
            values=failure.values or None,
            hint=f"every record needs {'a number of copies' if source.diff else words}",
        ) from None
