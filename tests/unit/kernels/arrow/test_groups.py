"""Grouping: rows are together exactly if their values are equal, hashes colliding or not."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings

from rejoinder.kernels.arrow.groups import group_rows
from tests.oracle.values import normal
from tests.unit.kernels.arrow.tables import deltas


def check(table: pa.Table, names: list[str]) -> None:
    groups = group_rows(table, names)
    rows = [[normal(row[name]) for name in names] for row in table.to_pylist()]
    for at, row in enumerate(rows):
        assert rows[groups.starts[groups.group_of[at]]] == row
    assert len(groups.starts) == len({repr(row) for row in rows})
    assert sorted(set(groups.group_of.tolist())) == list(range(len(groups.starts)))


@given(table=deltas())
def test_rows_are_grouped_by_value(table: pa.Table) -> None:
    check(table, ["c0"])
    check(table, ["c2", "c1"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=deltas())
def test_collisions_join_no_groups(weak_hash: None, table: pa.Table) -> None:
    check(table, ["c0", "c1", "c2"])
