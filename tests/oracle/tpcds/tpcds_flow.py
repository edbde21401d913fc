"""One query of TPC-DS as a view over its random database, compared with DuckDB after each epoch."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from rejoinder.testing import Driver
from tests.oracle.tpcds.tpcds_data import Database, Tables, key_of

_LIMIT = re.compile(r"\bLIMIT\s+(\d+)\s*$", re.IGNORECASE)
_TRUNCATED = re.compile(r"cast\(\((segment_revenue|revenue)\s*/\s*50\)\s+AS\s+int\)", re.IGNORECASE)


class Play:
    """A flow with the query as a view. Raises a `PlanningError` if the view is refused."""

    def __init__(self, seed: int, tables: Tables, query: str) -> None:
        self.query, self.database = query, Database(seed, tables, query)
        self.driver = Driver(parallelism=3, show_values=True)
        self.epochs = 0
        for table, columns in self.database.columns.items():
            kinds = ", ".join(f"{name} {kind.replace('VARCHAR', 'STRING')}" for name, kind in columns)
            self.driver.sql(f"CREATE TABLE {table} ({kinds}, PRIMARY KEY ({', '.join(key_of(table, columns))}))")
        self.driver.sql(f"CREATE VIEW answer AS {query}")

    def epoch(self, changes: int = 40) -> int:
        """Load the database, or change it; compare. Returns the number of rows of the view."""
        if self.epochs == 0:
            for table, row in self.database.load():
                self.driver.insert(table, row)
        else:
            for table, row, is_put in self.database.change(changes):
                (self.driver.insert if is_put else self.driver.delete)(table, row)
        self.driver.step()
        self.epochs += 1
        ours = [tuple(row.values()) for row in self.driver.table("answer")]
        limit = _LIMIT.search(self.query)
        # Spark truncates where DuckDB rounds.
        text = _TRUNCATED.sub(r"cast(trunc(\1 / 50) AS int)", _LIMIT.sub("", self.query))
        theirs = self._batch().execute(text).fetchall()
        if "rollup" in text.lower() and len(theirs) == 1 and not any(theirs[0]):
            theirs = []  # no rows have a grand total in DuckDB, and none in Spark
        if limit is None or len(theirs) <= int(limit[1]):
            _assert_equal(ours, theirs)
        else:  # which of the equal last rows are among the first is not defined
            assert len(ours) == int(limit[1])
            assert not Counter(map(_rounded, ours)) - Counter(map(_rounded, theirs))
        return len(ours)

    def _batch(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("SET default_null_order = 'nulls_first'")
        for table, columns in self.database.columns.items():
            kinds = ", ".join(f"{name} {kind}" for name, kind in columns)
            connection.execute(f"CREATE TABLE {table} ({kinds})")
            rows = list(self.database.tables[table].values())
            if rows:
                connection.register("changed", pa.Table.from_pylist(rows))
                connection.execute(f"INSERT INTO {table} SELECT * FROM changed")
                connection.unregister("changed")
        return connection


def _assert_equal(ours: Iterable[tuple[Any, ...]], theirs: Iterable[tuple[Any, ...]]) -> None:
    a, b = sorted(map(_rounded, ours), key=repr), sorted(map(_rounded, theirs), key=repr)
    assert len(a) == len(b), f"{len(a)} rows, DuckDB has {len(b)}: {_difference(a, b)}"
    assert all(_are_equal(x, y) for x, y in zip(a, b, strict=True)), _difference(a, b)


def _difference(ours: list[Any], theirs: list[Any]) -> str:
    more, fewer = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
    return f"only ours {list(more)[:4]}, only DuckDB's {list(fewer)[:4]}"


def _rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose numbers of all types are doubles: Spark divides decimals to a scale where DuckDB has a DOUBLE."""
    return tuple(float(f"{float(v):.5g}") if isinstance(v, int | float | Decimal) else v for v in row)


def _are_equal(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    return len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=0.011) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )
