"""TPC-H: all 22 queries as Spark writes them, under random inserts, updates and deletes, compared after each epoch.

The texts in `tpch/` are those of Spark's own benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rejoinder.testing import Driver
from tests.deep import one_seed
from tests.oracle.tpch_data import SCHEMA, Database

QUERIES = {
    f"q{number}": Path(__file__).with_name("tpch").joinpath(f"q{number}.sql").read_text(encoding="utf-8")
    for number in range(1, 23)
}


@pytest.mark.parametrize("parallelism", [1, 7])
def test_each_view_equals_the_query_after_each_epoch(parallelism: int) -> None:
    _play(Database(one_seed() + 1, 0.0), parallelism, epochs=5, changes=30)


@pytest.mark.deep
def test_each_view_equals_the_query_at_scale() -> None:
    _play(Database(one_seed() + 1, 0.05), 7, epochs=4, changes=3000)


def test_every_query_has_rows() -> None:
    """The data answers all queries, so that a view that is always empty is noticed."""
    database = Database(2, 0.0)
    list(database.load())
    batch = _batch(database)
    assert {name for name, query in QUERIES.items() if not batch.execute(query).fetchall()} == set()


def _play(database: Database, parallelism: int, *, epochs: int, changes: int) -> None:
    driver = Driver(parallelism=parallelism)
    for table, columns in SCHEMA.items():
        driver.sql(f"CREATE TABLE {table} ({columns})")
    names = list(QUERIES)
    _create(driver, names[::2])
    for table, row in database.load():
        driver.insert(table, row)
    driver.step()
    _create(driver, names[1::2])
    _compare(driver, database)
    for epoch in range(epochs):
        for table, old, new in database.change(changes):
            if new is not None:
                driver.insert(table, new)
            elif old is not None:
                driver.delete(table, old)
        driver.step()
        _compare(driver, database)
        if epoch == 1:
            driver.restart(parallelism=8 - parallelism)


def _create(driver: Driver, names: Iterable[str]) -> None:
    driver.sql(";\n".join(f"CREATE VIEW {name} AS {QUERIES[name]}" for name in names))


def _compare(driver: Driver, database: Database) -> None:
    batch = _batch(database)
    for name, query in QUERIES.items():
        expected = sorted(map(_comparable, batch.execute(query).fetchall()), key=repr)
        actual = sorted((_comparable(tuple(row.values())) for row in driver.table(name)), key=repr)
        assert len(actual) == len(expected), name
        for ours, theirs in zip(actual, expected, strict=True):
            assert _are_equal(ours, theirs), name


def _batch(database: Database) -> duckdb.DuckDBPyConnection:
    """The tables as they are, in DuckDB."""
    connection = duckdb.connect()
    for table, columns in SCHEMA.items():
        connection.execute(f"CREATE TABLE {table} ({columns.replace('STRING', 'VARCHAR')})")
        if database.tables[table]:
            connection.register("changed", pa.Table.from_pylist(database.rows(table)))
            connection.execute(f"INSERT INTO {table} SELECT * FROM changed")
            connection.unregister("changed")
    return connection


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row that sorts like its equal from the other side: text first, and numbers of all types as one."""
    numbers = [round(float(value), 2) for value in row if isinstance(value, int | float | Decimal)]
    texts = [str(value) for value in row if not isinstance(value, int | float | Decimal)]
    return (*texts, *numbers)


def _are_equal(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    """Spark divides decimals to a scale of its own where DuckDB has a DOUBLE, so that the last digits differ."""
    return len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=0.011) if isinstance(a, float) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )
