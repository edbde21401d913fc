"""Written queries at the edges of window functions and LIMIT, over rows that come and go, against DuckDB.

Rows may be equal, have NULL, NaN and infinity, and the ends of BIGINT. Where the order of rows that are equal in ORDER
BY matters, a query orders by all columns that it uses.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from rejoinder.testing import Driver

COLUMNS = "id INT, g STRING, x INT, y DOUBLE, m DECIMAL(10,2), ts TIMESTAMP, dt DATE, n BIGINT"
Q = "SELECT id, x FROM t QUALIFY"
SAME = (
    "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY id, x ROWS BETWEEN 2147483647 PRECEDING AND "
    "CURRENT ROW) AS w FROM t",
    "SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 2147483647 PRECEDING AND 2147483647 FOLLOWING) AS w FROM t",
    "SELECT id, lag(x, 2147483647, -1) OVER (PARTITION BY g ORDER BY id) AS w FROM t",
    "SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN 9223372036854775807 PRECEDING AND CURRENT "
    "ROW) AS w FROM t WHERE n > 0",
    "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND INTERVAL 30 "
    "MINUTE FOLLOWING) AS w FROM t",
    "SELECT id, sum(x) OVER (ORDER BY dt DESC NULLS LAST RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND "
    "CURRENT ROW) AS w FROM t",
    "SELECT id, count(*) OVER (PARTITION BY g ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS w FROM t",
    "SELECT id, count(y) OVER (ORDER BY y DESC NULLS LAST RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS w FROM t",
    "SELECT id, rank() OVER (PARTITION BY g ORDER BY y) AS w, dense_rank() OVER (ORDER BY y DESC "
    "NULLS LAST) AS v FROM t",
    "SELECT id, max(y) OVER (PARTITION BY g ORDER BY id) AS w, percent_rank() OVER (PARTITION BY g "
    "ORDER BY y) AS v FROM t",
    "SELECT id, sum(x) FILTER (WHERE x > 2) OVER (PARTITION BY g ORDER BY id) AS w, "
    "count(*) FILTER (WHERE y > 0) OVER (PARTITION BY g) AS v FROM t",
    "SELECT g, rank() OVER (ORDER BY sum(x) DESC NULLS LAST) AS r, sum(sum(x)) OVER (ORDER BY g) AS "
    "c FROM t GROUP BY g",
    f"{Q} row_number() OVER (PARTITION BY g ORDER BY id, x) <= (SELECT count(*) FROM t WHERE x > 5)",
    f"{Q} rank() OVER (ORDER BY x DESC NULLS LAST) <= 3 AND id IN (SELECT x FROM t)",
    f"{Q} sum(x) OVER (PARTITION BY g) > (SELECT avg(o.x) FROM t o WHERE o.g = t.g) + 10",
    "SELECT g, sum(x) AS s FROM t GROUP BY g QUALIFY rank() OVER (ORDER BY sum(x)) <= (SELECT min(x) + 1 FROM t)",
    "SELECT id FROM t ORDER BY id LIMIT 0",
    "SELECT id FROM t ORDER BY id LIMIT 3 OFFSET 1000",
    "SELECT id FROM t ORDER BY id LIMIT 2147483647 OFFSET 3",
    "SELECT id, x FROM t ORDER BY id, x LIMIT 2 + 3 OFFSET (1 + 1) * 2",
    "SELECT id, sum(m) OVER (ORDER BY id, m ROWS BETWEEN 1 + 1 PRECEDING AND 2 - 1 FOLLOWING) AS w FROM t",
    "SELECT id, first_value(x) OVER (PARTITION BY g ORDER BY id, x ROWS BETWEEN 3 FOLLOWING AND 5 "
    "FOLLOWING) AS w FROM t",
    "SELECT id, rank() OVER (PARTITION BY g ORDER BY (SELECT max(x) FROM t) - x) AS r FROM t",
)
DIFFERENT = (
    (
        "SELECT id, sum(x) OVER (ORDER BY dt RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t",
        "SELECT id, sum(x) OVER (ORDER BY dt RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS w FROM t",
    ),
    (
        "SELECT id, x, sum(x) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t",
        "SELECT id, x, sum(x) OVER (ORDER BY id, x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t",
    ),
)
"""Ours, and the same in DuckDB's words."""


@pytest.mark.parametrize("parallelism", [1, 7])
def test_edge_cases_of_windows_and_limits(parallelism: int) -> None:
    queries = [*((query, query) for query in SAME), *DIFFERENT]
    driver = Driver(parallelism=parallelism)
    driver.sql(f"CREATE CHANGELOG t ({COLUMNS})")
    driver.sql(";".join(f"CREATE VIEW v{at} AS {ours}" for at, (ours, _) in enumerate(queries)))
    choice = random.Random(5)
    live: list[dict[str, Any]] = []
    oracle = duckdb.connect()
    oracle.sql("SET default_null_order = 'nulls_first'")
    for epoch in range(5):
        rows = [random_row(choice, epoch * 5 + at) for at in range(5)]
        rows += [dict(rows[0])] * 2  # copies, of which one may be retracted
        driver.insert("t", *rows)
        live += rows
        for _ in range(3 if epoch else 0):
            driver.delete("t", live.pop(choice.randrange(len(live))))
        driver.step()
        oracle.sql(f"CREATE OR REPLACE TABLE t ({COLUMNS})")
        oracle.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [list(row.values()) for row in live])
        for at, (ours, theirs) in enumerate(queries):
            found = counted(tuple(row.values()) for row in driver.table(f"v{at}"))
            assert found == counted(oracle.sql(theirs).fetchall()), (epoch, ours)
        if epoch == 2:
            driver.restart(parallelism=3)


def random_row(choice: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "g": choice.choice(("a", "b", None)),
        "x": choice.choice((None, *range(8))),
        "y": choice.choice((None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, 1.0, 2.5)),
        "m": choice.choice((None, Decimal("1.25"), Decimal("4.00"), Decimal("-3.10"))),
        "ts": choice.choice((None, datetime(2026, 1, 1, choice.randrange(4), choice.choice((0, 30))))),
        "dt": choice.choice((None, date(2026, 1, 1 + choice.randrange(5)))),
        "n": choice.choice((None, 1, 2**63 - 1, -(2**63), 5)),
    }


def counted(rows: Any) -> Counter[tuple[str, ...]]:
    """Rows as text, so that NaN equals itself; a zero has no sign."""
    return Counter(tuple(repr(v + 0.0) if isinstance(v, float) else repr(v) for v in row) for row in rows)
