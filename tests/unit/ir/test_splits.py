"""Splits travel as rows and come back as they were."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.splits import (
    SPLITS,
    SPLITS_DDL,
    FileSplit,
    RecordsSplit,
    RowsSplit,
    StateSplit,
    from_row,
    split_batch,
    splits_in,
    to_row,
)


def test_every_kind_of_split_survives_its_row() -> None:
    splits = [FileSplit("s", "/in/1.csv", 7), RowsSplit("s", b"rows", 2), RecordsSplit("t", "topic", b"r", 9)]
    for split in (*splits, StateSplit("a#on-time", 3)):
        assert from_row(*to_row(split)) == split  # type: ignore[arg-type]


def test_a_batch_of_splits_does_not_copy_payloads() -> None:
    batch = split_batch([RowsSplit("s", b"rows"), StateSplit("v", 1)])
    rows, state = splits_in(batch)
    assert isinstance(rows, RowsSplit) and isinstance(rows.rows, pa.Buffer) and rows.rows.to_pybytes() == b"rows"
    assert state == StateSplit("v", 1)
    assert split_batch([]).num_rows == 0


def test_spark_reads_the_same_columns() -> None:
    assert [part.split()[0] for part in SPLITS_DDL.split(", ")] == SPLITS.names
