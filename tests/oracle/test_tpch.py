"""TPC-H: all 22 queries as Spark writes them, under random inserts, updates and deletes, compared after each epoch."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa
import pytest

from rejoinder.testing import Driver
from tests.deep import DEEP, IS_DEEP, one_seed
from tests.oracle.tpch_answers import QUERIES, are_equal
from tests.oracle.tpch_data import SCHEMA, Database


@pytest.mark.parametrize("parallelism", [1, pytest.param(7, marks=DEEP)])
def test_each_view_equals_the_query_after_each_epoch(parallelism: int) -> None:
    _play(Database(one_seed() + 1, 0.0), parallelism, epochs=5 if IS_DEEP else 3, changes=30)


@DEEP
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
        rows = (tuple(row.values()) for row in driver.table(name))
        assert are_equal(rows, batch.execute(query).fetchall()), name


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
