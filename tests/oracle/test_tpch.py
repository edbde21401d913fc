"""TPC-H: all 22 queries as Spark writes them, under random inserts, updates and deletes, compared after each epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tests.deep import one_seed
from tests.oracle.tpch_data import SCHEMA, Database
from tests.oracle.tpch_flow import QUERIES, arrow, compare, epochs


@pytest.mark.parametrize("parallelism", [pytest.param(1, marks=pytest.mark.deep), 7])
def test_each_view_equals_the_query_after_each_epoch(parallelism: int) -> None:
    _play(Database(one_seed() + 1, 0.0), parallelism, count=5, changes=30)


@pytest.mark.deep
def test_each_view_equals_the_query_at_scale() -> None:
    """Three minutes of CPU: SF 0.05, with 7 buckets and after a restart with 1."""
    _play(Database(one_seed() + 1, 0.05), 7, count=4, changes=3000)


def test_every_query_has_rows() -> None:
    """The data answers all queries, so that a view that is always empty is noticed."""
    database = Database(2, 0.0)
    list(database.load())
    batch = _batch(database)
    assert {name for name, query in QUERIES.items() if not batch.execute(query).fetchall()} == set()


def _play(database: Database, parallelism: int, *, count: int, changes: int) -> None:
    for driver in epochs(database, parallelism, count=count, changes=changes):
        compare(driver, _answers(_batch(database)))


def _answers(batch: duckdb.DuckDBPyConnection) -> Callable[[str], list[tuple[Any, ...]]]:
    return lambda query: batch.execute(query).fetchall()


def _batch(database: Database) -> duckdb.DuckDBPyConnection:
    """The tables as they are, in DuckDB."""
    connection = duckdb.connect()
    for table, columns in SCHEMA.items():
        connection.execute(f"CREATE TABLE {table} ({columns.replace('STRING', 'VARCHAR')})")
        rows = arrow(database, table)
        if rows is not None:
            connection.register("changed", rows)
            connection.execute(f"INSERT INTO {table} SELECT * FROM changed")
            connection.unregister("changed")
    return connection
