"""TPC-H as a flow: all 22 queries as views, some made before the data and some after, and how answers are compared.

The texts in `tpch/` are those of Spark's own benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from rejoinder.testing import Driver
from tests.oracle.tpch_data import SCHEMA, Database

QUERIES = {
    f"q{number}": Path(__file__).with_name("tpch").joinpath(f"q{number}.sql").read_text(encoding="utf-8")
    for number in range(1, 23)
}


def epochs(database: Database, parallelism: int, *, count: int, changes: int) -> Iterator[Driver]:
    """Load the database and change it so many times; the driver after each epoch, restarted in between."""
    driver = Driver(parallelism=parallelism)
    for table, columns in SCHEMA.items():
        driver.sql(f"CREATE TABLE {table} ({columns})")
    names = list(QUERIES)
    _create(driver, names[::2])
    for table, row in database.load():
        driver.insert(table, row)
    driver.step()
    _create(driver, names[1::2])
    yield driver
    for epoch in range(count):
        for table, old, new in database.change(changes):
            if new is not None:
                driver.insert(table, new)
            elif old is not None:
                driver.delete(table, old)
        driver.step()
        yield driver
        if epoch == 1:
            driver.restart(parallelism=8 - parallelism)


def compare(driver: Driver, answer: Callable[[str], Iterable[Iterable[Any]]]) -> None:
    """Each view has the rows that `answer` gives for its query."""
    for name, query in QUERIES.items():
        expected = sorted((_comparable(row) for row in answer(query)), key=repr)
        actual = sorted((_comparable(row.values()) for row in driver.table(name)), key=repr)
        assert len(actual) == len(expected), name
        for ours, theirs in zip(actual, expected, strict=True):
            assert _are_equal(ours, theirs), name


def arrow(database: Database, table: str) -> pa.Table | None:
    """The rows of a table; None if there are none."""
    return pa.Table.from_pylist(database.rows(table)) if database.tables[table] else None


def _create(driver: Driver, names: Iterable[str]) -> None:
    driver.sql(";\n".join(f"CREATE VIEW {name} AS {QUERIES[name]}" for name in names))


def _comparable(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row that sorts like its equal from the other side: text first, and numbers of all types as one."""
    values = list(row)
    numbers = [round(float(value), 2) for value in values if isinstance(value, int | float | Decimal)]
    texts = [str(value) for value in values if not isinstance(value, int | float | Decimal)]
    return (*texts, *numbers)


def _are_equal(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    """Spark divides decimals to a scale of its own where DuckDB has a DOUBLE, so that the last digits differ."""
    return len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=0.011) if isinstance(a, float) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )
