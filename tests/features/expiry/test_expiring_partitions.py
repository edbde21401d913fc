"""Window functions and first rows in windows that end: right at every epoch, and no state of what has ended."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver

DELAY, SIZE, EPOCHS, PER_EPOCH = 2, 4, 30, 2
HALF_HOURS = 2  # of an hour: epochs are half an hour apart
SOURCE = f"CREATE STREAM s (id INT, x INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL {DELAY * 30} MINUTES)"
IN_WINDOWS = f"TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL {SIZE * 30} MINUTES))"
WINDOW = f"TUMBLE(ts, INTERVAL {SIZE * 30} MINUTES)"
START = f"time_bucket(INTERVAL {SIZE * 30} MINUTES, ts, TIMESTAMP '1970-01-01')"
ROWS = f"(SELECT id, x, ts, {START} AS ws FROM s)"
HOUR = "date_trunc('HOUR', ts)"
HOURLY = f"SELECT {HOUR} AS ws, id, SUM(x) OVER (PARTITION BY {HOUR} ORDER BY ts, id) AS t FROM s"
QUERIES = {
    "first rows over a relation": (
        f"SELECT window_start AS ws, id FROM {IN_WINDOWS} "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start ORDER BY x, id) <= 3",
        f"SELECT ws, id FROM {ROWS} QUALIFY ROW_NUMBER() OVER (PARTITION BY ws ORDER BY x, id) <= 3",
    ),
    "rank in a subquery, by both ends": (
        "SELECT * FROM (SELECT window_start AS ws, id, RANK() OVER (PARTITION BY window_start, window_end "
        f"ORDER BY x DESC) AS r FROM {IN_WINDOWS}) WHERE r <= 2",
        f"SELECT * FROM (SELECT ws, id, RANK() OVER (PARTITION BY ws ORDER BY x DESC) AS r FROM {ROWS}) WHERE r <= 2",
    ),
    "neighbours in a window": (
        f"SELECT WINDOW_START({WINDOW}) AS ws, id, LAG(x) OVER w AS p, LEAD(x) OVER w AS n FROM s "
        f"WINDOW w AS (PARTITION BY {WINDOW} ORDER BY ts, id)",
        f"SELECT ws, id, LAG(x) OVER w AS p, LEAD(x) OVER w AS n FROM {ROWS} "
        "WINDOW w AS (PARTITION BY ws ORDER BY ts, id)",
    ),
    "running sum in an hour": (HOURLY, HOURLY),
    "whole window, beside ranks": (
        "SELECT window_start AS ws, id, SUM(x) OVER (PARTITION BY window_start) AS t, "
        f"CUME_DIST() OVER (PARTITION BY window_start ORDER BY x) AS q FROM {IN_WINDOWS}",
        "SELECT ws, id, SUM(x) OVER (PARTITION BY ws) AS t, CUME_DIST() OVER (PARTITION BY ws ORDER BY x) AS q "
        f"FROM {ROWS}",
    ),
    "best group of a window": (
        "SELECT WINDOW_START(w) AS ws, m FROM (SELECT w, m, RANK() OVER (PARTITION BY w ORDER BY COUNT(*) DESC, m) "
        f"AS r FROM (SELECT {WINDOW} AS w, x % 3 AS m FROM s) GROUP BY w, m) WHERE r <= 1",
        "SELECT ws, m FROM (SELECT ws, x % 3 AS m, RANK() OVER (PARTITION BY ws ORDER BY COUNT(*) DESC, x % 3) AS r "
        f"FROM {ROWS} GROUP BY ws, x % 3) WHERE r <= 1",
    ),
    "an event time itself": (
        "SELECT ts AS ws, id, DENSE_RANK() OVER (PARTITION BY ts ORDER BY x) AS r FROM s",
        "SELECT ts AS ws, id, DENSE_RANK() OVER (PARTITION BY ts ORDER BY x) AS r FROM s",
    ),
}


class Stream:
    """Rows in epochs of half an hour, up to an hour late, and in every ninth epoch one that is too late."""

    def __init__(self, query: str, parallelism: int) -> None:
        self.driver = Driver(parallelism=parallelism)
        self.driver.sql(SOURCE)
        self.driver.sql(f"CREATE VIEW v AS {query}")
        self.choice, self.number = random.Random(3), 0
        self.batch = duckdb.connect()
        self.batch.execute("CREATE TABLE s (id INT, x INT, ts TIMESTAMP)")

    def step(self, epoch: int) -> dict[str, Any]:
        """One epoch; rows that are not late go to the batch, too."""
        for _ in range(PER_EPOCH):
            self._insert(epoch - self.choice.randrange(DELAY + 1))
        if epoch % 9 == 8:
            self._insert(epoch - SIZE - DELAY, is_late=True)
        return self.driver.step(at=at(epoch))

    def _insert(self, epoch: int, *, is_late: bool = False) -> None:
        self.number += 1
        row = {"id": self.number, "x": self.choice.randrange(6), "ts": at(max(epoch, 0))}
        self.driver.insert("s", row)
        if not is_late:
            self.batch.execute("INSERT INTO s VALUES (?, ?, ?)", list(row.values()))

    def expected(self, query: str) -> Counter[tuple[Any, ...]]:
        """The batch query over the rows that were not late."""
        return Counter(self.batch.execute(query).fetchall())

    def view(self) -> Counter[tuple[Any, ...]]:
        """The rows of the view."""
        return Counter(tuple(row.values()) for row in self.driver.table("v"))


def at(number: int) -> datetime:
    return datetime(2026, 1, 1) + timedelta(minutes=30 * number)


@pytest.mark.parametrize("name", QUERIES)
def test_partitions_that_have_ended_leave_the_state(name: str) -> None:
    query, batch = QUERIES[name]
    stream = Stream(query, 1)
    for epoch in range(EPOCHS):
        stream.step(epoch)
        if epoch == EPOCHS // 2:
            stream.driver.restart(parallelism=7)
        if epoch % 3 == 0:
            assert stream.view() == stream.expected(batch), epoch
    assert stream.view() == stream.expected(batch)
    assert len(stream.driver.late("v")) == EPOCHS // 9
    open_rows = PER_EPOCH * ((HALF_HOURS if "HOUR" in query else SIZE) + 2 * DELAY)
    for state in stream.driver.arrangements():
        assert state["rows"] <= 4 * open_rows, state  # rows, retractions, and what no compaction has dropped yet


@pytest.mark.parametrize("name", QUERIES)
def test_final_rows_are_emitted_once(name: str) -> None:
    query, batch = QUERIES[name]
    stream = Stream(f"{query} EMIT FINAL", 1)
    emitted: Counter[tuple[Any, ...]] = Counter()
    for epoch in range(EPOCHS):
        for row, diff in stream.step(epoch)["v"]:
            assert diff == 1, row
            emitted[tuple(row.values())] += 1
    assert emitted == stream.view() and emitted
    length = HALF_HOURS if "HOUR" in query else 0 if name == "an event time itself" else SIZE
    watermark = at(EPOCHS - 1 - DELAY)
    rows = stream.expected(batch)
    closed = Counter({row: n for row, n in rows.items() if row[0] + timedelta(minutes=30 * length) < watermark})
    assert closed - emitted == Counter()
    assert emitted - rows == Counter()


def test_a_partition_without_a_time_is_refused_with_the_remedy() -> None:
    driver = Driver()
    driver.sql(SOURCE)
    with pytest.raises(Unsupported, match="PARTITION BY a window of an event time"):
        driver.sql("CREATE VIEW v AS SELECT id, ts, LAG(x) OVER (PARTITION BY x ORDER BY ts) AS p FROM s EMIT FINAL")
