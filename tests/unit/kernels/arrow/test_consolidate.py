"""Consolidation: the same multiset, no two equal rows, no zero; hashes may collide."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, hashes
from rejoinder.kernels.arrow.consolidate import consolidate, consolidate_groups, row_hashes
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.arrow.sorting import is_sorted
from tests.unit.kernels.arrow.tables import deltas, meaning, same

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(table: pa.Table) -> None:
    net = consolidate(table)
    assert meaning(net) == meaning(table)
    assert net.num_rows == len(meaning(table))
    assert not np.any(diffs(net) == 0)
    assert is_sorted(row_hashes(net))
    assert same(consolidate(net), net)


@given(table=deltas())
def test_rows_are_netted(table: pa.Table) -> None:
    check(table)


@given(table=deltas(types=("INT",), epochs=True))
def test_changes_of_different_epochs_are_different(table: pa.Table) -> None:
    check(table)


@given(table=deltas(types=("ARRAY<STRUCT<a: DOUBLE>>", "MAP<STRING, INT>")))
def test_nested_rows_are_netted(table: pa.Table) -> None:
    check(table)


@SHARED
@given(table=deltas())
def test_colliding_rows_are_netted(weak_hash: None, table: pa.Table) -> None:
    check(table)


def check_groups(table: pa.Table) -> None:
    keyed = sorted_by_hash(table.append_column(HASH, pa.array(hash_rows([table.column("c0")], table.num_rows))))
    net = consolidate_groups(keyed, hashes(keyed))
    assert meaning(net) == meaning(table)
    assert is_sorted(hashes(net))
    assert not np.any(diffs(net) == 0)
    touched = set(hashes(keyed)[diffs(keyed) < 0].tolist())
    rows = [
        row for row, hashed in zip(net.drop_columns([HASH]).to_pylist(), hashes(net), strict=True) if hashed in touched
    ]
    assert len({repr({name: row[name] for name in row if name != DIFF}) for row in rows}) == len(rows)


@given(table=deltas(types=("INT", "STRING")))
def test_groups_are_netted_in_place(table: pa.Table) -> None:
    check_groups(table)


@SHARED
@given(table=deltas(types=("INT", "STRING")))
def test_colliding_groups_are_netted_in_place(weak_hash: None, table: pa.Table) -> None:
    check_groups(table)


def test_an_append_only_table_is_handed_back() -> None:
    table = pa.table({"a": [1, 1], HASH: pa.array([5, 5], pa.uint64())})
    assert consolidate_groups(table, hashes(table)) is table
    assert consolidate(table.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("rows", [2, 300])
def test_everything_may_cancel(rows: int) -> None:
    table = pa.table({"a": [1] * rows, DIFF: pa.array([1, -1] * (rows // 2), pa.int64())})
    assert consolidate(table).num_rows == 0
