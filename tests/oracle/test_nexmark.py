"""Nexmark: all 23 views equal DuckDB's answer over the rows that have arrived, after every epoch."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.nexmark.duckdb_queries import MACROS, NAMES, QUERIES, truth, view
from benchmarks.nexmark.events import events
from rejoinder.testing import Driver
from tests.deep import IS_DEEP, one_seed

EVENTS = 20_000 if IS_DEEP else 2_000
EPOCHS = 5
NOON = datetime(2026, 1, 1, 12)
SIDE_INPUT = [{"key": key, "value": f"value {key}"} for key in range(1000, 1100)]


@pytest.mark.parametrize("names", [(name,) for name in NAMES] if IS_DEEP else [NAMES[::2], NAMES[1::2]])
@pytest.mark.parametrize("parallelism", [1, 7] if IS_DEEP else [2])
def test_views_equal_batch_after_every_epoch(names: tuple[str, ...], parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql((QUERIES / "sources.sql").read_text(encoding="utf-8"))
    for name in names:
        driver.sql(view(name))
    driver.insert("side_input", *SIDE_INPUT)
    tables = events(EVENTS, seed=one_seed(), per_second=EVENTS // 40, disorder_ms=1500, text=10)
    summed: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in names}
    expected: dict[str, Counter[tuple[Any, ...]]] = {}
    arrived: dict[str, list[pa.Table]] = {table: [] for table in tables}
    with duckdb.connect() as connection:
        connection.execute(MACROS)
        connection.register("side_input", pa.Table.from_pylist(SIDE_INPUT))
        for epoch in range(EPOCHS):
            time = NOON + timedelta(seconds=4 * epoch)
            for table, content in tables.items():
                rows = content.filter(pc.equal(pc.divide(content["event"], EVENTS // EPOCHS), epoch)).drop(["event"])
                driver.insert(table, *rows.to_pylist())
                arrived[table].append(rows.append_column("arrived", pa.array([time] * len(rows), pa.timestamp("us"))))
            changes = driver.step(time)
            for name in names:
                for table in tables:
                    connection.register(table, _without_arrival(name, pa.concat_tables(arrived[table])))
                for row, diff in changes[name]:
                    summed[name][_values(row.values())] += diff
                expected[name] = Counter(_values(row) for row in connection.execute(truth(name)).fetchall())
                assert Counter(_values(row.values()) for row in driver.table(name)) == expected[name], name
                assert +summed[name] == expected[name] and not -summed[name], name
    assert all(expected.values()), "a query without rows proves nothing"


def _without_arrival(name: str, table: pa.Table) -> pa.Table:
    """Only q12 reads the time of arrival; `SELECT *` must not see it."""
    return table if name == "q12" else table.drop(["arrived"])


def _values(row: Any) -> tuple[Any, ...]:
    """The values of a row; averages are compared without their last digits, which depend on how DuckDB divides."""
    return tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row)
