"""Output watermarks: the least of what was received and of what is kept; at window bounds; of views on views."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from rejoinder.testing import Driver

SOURCES = """
CREATE STREAM o (id INT, t BIGINT, WATERMARK t);
CREATE STREAM d (id INT, t BIGINT, WATERMARK t);
CREATE STREAM r (id INT, t BIGINT, WATERMARK t);
CREATE STREAM c (id INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 2 MINUTES);
"""
JOIN = "SELECT o.id, o.t AS ot, d.t AS dt FROM o {} JOIN d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 10"
START = datetime(2024, 1, 1, 12)


def flow(*queries: str, **options: Any) -> Driver:
    driver = Driver(**options)
    driver.sql(SOURCES)
    for name, query in zip("vw", queries, strict=False):
        driver.sql(f"CREATE VIEW {name} AS {query}")
    return driver


def told(driver: Driver, **watermarks: int) -> dict[str, Any]:
    for name, time in watermarks.items():
        driver.watermark(name, time)
    driver.step()
    return driver.watermarks("v")


@pytest.mark.parametrize("query", [JOIN.format(""), JOIN.format("LEFT"), JOIN.format("LEFT") + " EMIT FINAL"])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_join_is_held_by_the_rows_that_it_keeps(query: str, parallelism: int) -> None:
    driver = flow(query, parallelism=parallelism)
    assert told(driver) == {}
    assert told(driver, o=50) == {"ot": 50}, "nothing is kept"
    driver.insert("o", {"id": 1, "t": 60})
    driver.step()
    driver.insert("o", {"id": 2, "t": 70})
    assert told(driver, o=100) == {"ot": 60}
    driver.restart(parallelism=2)
    assert driver.watermarks("v") == {"ot": 60}
    assert told(driver, d=71) == {"ot": 70, "dt": 71}, "the first order can find nothing any more"
    assert told(driver, d=500) == {"ot": 100, "dt": 500}


def test_a_join_of_joins_is_held_by_both() -> None:
    driver = flow(
        JOIN.format(""),
        "SELECT v.id, v.ot, v.dt, r.t AS rt FROM v JOIN r ON v.id = r.id AND r.t >= v.dt AND r.t <= v.dt + 5",
    )
    driver.insert("o", {"id": 1, "t": 10})
    driver.insert("d", {"id": 1, "t": 12})
    for name in "odr":
        driver.watermark(name, 14)
    driver.step()
    assert driver.watermarks("v") == {"ot": 10, "dt": 14}, "no order is left that the delivery could find"
    assert driver.watermarks("w")["dt"] == 12 and driver.watermarks("w")["rt"] <= 14
    for name in "odr":
        driver.watermark(name, 40)
    driver.step()
    assert driver.watermarks("w") == {"ot": 40, "dt": 40, "rt": 40}, "nothing is kept"


WINDOWS = "SELECT TUMBLE(ts, INTERVAL 5 MINUTES) AS w, count(*) AS n FROM c GROUP BY w"


@pytest.mark.parametrize("query", [WINDOWS, WINDOWS + " EMIT FINAL"])
def test_an_aggregate_has_watermarks_at_window_bounds_alone(query: str) -> None:
    driver = flow(query)
    for minute, bound in ((1, -5), (6, 0), (7, 5), (11, 5), (12.5, 10)):
        driver.insert("c", {"id": 1, "ts": START + timedelta(minutes=minute)})
        driver.step()
        assert driver.watermarks("v") == {"w": START + timedelta(minutes=bound)}


def test_columns_that_can_change_at_any_time_have_none() -> None:
    driver = flow("SELECT o.id, o.t FROM o JOIN d ON o.id = d.id")
    assert told(driver, o=5, d=5) == {}
    driver = flow("SELECT id, t FROM o EMIT EVERY INTERVAL 1 MINUTE")
    assert told(driver, o=5) == {}
    driver = flow("SELECT id, t FROM o EMIT WHEN WATERMARK PAST t")
    assert told(driver, o=5) == {"t": 5}


def test_views_show_their_watermarks() -> None:
    driver = flow(JOIN.format(""))
    told(driver, o=5, d=7)
    assert [row["watermarks"] for row in driver.sql("SHOW VIEWS")] == [{"ot": 5, "dt": 7}]
