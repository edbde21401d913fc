"""EMIT FINAL over FULL joins of windows: rows come once, when their window is closed, and are the batch rows."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from rejoinder.testing import Driver
from tests.deep import seeds

_TUMBLE = "TUMBLE(time, INTERVAL 5 MINUTES)"
_HOP = "HOP(time, INTERVAL 2 MINUTES, INTERVAL 4 MINUTES)"
_ON = "ON a.page = b.page AND a.w = b.w"


def _groups(window: str, stream: str) -> str:
    return f"(SELECT page, {window} AS w, COUNT(*) AS {stream} FROM {stream} GROUP BY page, w)"


def _rows(window: str, stream: str) -> str:
    return f"(SELECT page, {window} AS w, id AS {stream} FROM {stream})"


def _full(join: str, side: Any, window: str, on: str = "USING (page, w)") -> str:
    shown = "w, page" if on.startswith("USING") else "COALESCE(a.w, b.w) AS w, COALESCE(a.page, b.page) AS page"
    return f"SELECT {shown}, clicks, sales FROM {side(window, 'clicks')} a {join} {side(window, 'sales')} b {on}"


_QUERIES = [
    _full("FULL JOIN", _groups, _TUMBLE),
    _full("FULL JOIN", _groups, _TUMBLE, _ON),
    _full("FULL JOIN", _groups, _HOP),
    _full("FULL ANTI JOIN", _groups, _HOP),
    _full("FULL ANTI JOIN", _groups, _TUMBLE),
    _full("FULL JOIN", _rows, _HOP),
]


def _driver(query: str) -> Driver:
    driver = Driver(parallelism=2)
    for stream in ("clicks", "sales"):
        driver.sql(
            f"CREATE STREAM {stream} (id INT, page STRING, time TIMESTAMP, WATERMARK time DELAY OF INTERVAL 1 MINUTE)"
        )
    driver.sql(f"CREATE VIEW final AS {query} EMIT FINAL; CREATE VIEW past AS {query} EMIT WHEN WATERMARK PAST w.end")
    driver.sql(f"CREATE VIEW now AS {query}")
    return driver


def _counted(rows: Any) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("query", _QUERIES)
@pytest.mark.parametrize("seed", seeds(1))
def test_rows_of_a_full_join_are_emitted_once_and_when_their_window_is_closed(query: str, seed: int) -> None:
    draw, driver, emitted = random.Random(seed), _driver(query), Counter[str]()
    now = datetime(2024, 1, 1)
    for step in range(16):
        now += timedelta(seconds=draw.choice([0, 20, 90, 400]))
        for stream in draw.sample(["clicks", "sales"], draw.choice([1, 1, 2])):
            for _ in range(draw.randrange(4)):
                time = now - timedelta(seconds=draw.randrange(60))  # on time: the delay is a minute
                driver.insert(stream, {"id": step, "page": draw.choice("ab"), "time": time})
        changes = driver.step()["final"]
        assert all(diff > 0 for _, diff in changes), "a final row is never taken back"
        emitted += Counter({repr(sorted(row.items())): diff for row, diff in changes})
        assert _counted(driver.table("final")) == _counted(driver.table("past")) == emitted
        if step == 8:
            driver.restart()
    assert emitted and not emitted - _counted(driver.table("now"))
    for stream in ("clicks", "sales"):
        driver.insert(stream, {"id": 99, "page": "z", "time": now + timedelta(hours=1)})
    driver.step()
    closed = [row for row in driver.table("now") if row["page"] != "z"]
    assert _counted(driver.table("final")) == _counted(closed)


def test_explain_names_the_times_of_both_sides() -> None:
    driver = _driver(_QUERIES[0])
    assert "least(" in driver.sql("EXPLAIN final")
