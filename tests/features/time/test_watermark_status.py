"""SHOW WATERMARKS and SHOW VIEWS: how far each partition is, who is idle since when, and who holds which view back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = """
CREATE STREAM a (id INT, t BIGINT, p INT, WATERMARK t DELAY OF 2) OPTIONS (partition_by 'p', partitions '2');
CREATE STREAM b (id INT, ts TIMESTAMP, t BIGINT, WATERMARK ts DELAY OF INTERVAL 5 SECONDS, WATERMARK t);
CREATE STREAM c (id INT, t BIGINT, WATERMARK t);
"""
PAST = "CREATE VIEW past AS SELECT id FROM a EMIT WHEN WATERMARK PAST t"
UNION = """CREATE VIEW merged AS SELECT id FROM (SELECT id, t FROM b UNION ALL SELECT id, t FROM c) AS q
EMIT WHEN WATERMARK PAST t"""
JOIN = "CREATE VIEW joined AS SELECT a.id FROM a JOIN c ON a.id = c.id AND a.t BETWEEN c.t - 5 AND c.t + 5"


def shown(driver: Driver, *columns: str) -> list[tuple[Any, ...]]:
    rows = sorted(driver.sql("SHOW WATERMARKS"), key=lambda row: (row["source"], row["partition"] or 0, row["column"]))
    return [tuple(row[column] for column in columns) for row in rows]


def held(driver: Driver) -> dict[str, Any]:
    return {row["view"]: row["blocked_by"] for row in driver.sql("SHOW VIEWS")}


def test_a_row_for_each_column_of_each_partition() -> None:
    driver = flow(SOURCES, PAST)
    assert shown(driver, "source", "partition", "column", "watermark", "delay") == [
        ("a", 0, "t", None, "2"),
        ("a", 1, "t", None, "2"),
        ("b", None, "t", None, None),
        ("b", None, "ts", None, "5 seconds"),
        ("c", None, "t", None, None),
    ]
    driver.insert("a", {"id": 1, "t": 10, "p": 0}, {"id": 1, "t": 5, "p": 1})
    driver.insert("b", {"id": 1, "ts": datetime(2026, 1, 1, 12), "t": 1})
    driver.idle("c")
    driver.step(datetime(2026, 1, 1, 13))
    driver.restart()
    assert shown(driver, "source", "partition", "watermark", "source_watermark", "idle_since") == [
        ("a", 0, 8, 3, None),
        ("a", 1, 3, 3, None),
        ("b", 0, None, None, None),
        ("b", 0, datetime(2026, 1, 1, 11, 59, 55), datetime(2026, 1, 1, 11, 59, 55), None),
        ("c", 0, None, None, datetime(2026, 1, 1, 13)),
    ]


def holds(driver: Driver) -> dict[tuple[Any, ...], list[str]]:
    rows = driver.sql("SHOW WATERMARKS")
    return {(row["source"], row["partition"], row["column"]): row["blocks"] for row in rows if row["blocks"]}


def test_the_slowest_partition_holds_a_view() -> None:
    driver = flow(SOURCES, PAST)
    assert holds(driver) == {("a", 0, "t"): ["past"]} and held(driver) == {"past": "a.t"}, "nothing has come"
    driver.insert("a", {"id": 1, "t": 10, "p": 0})
    driver.step()
    assert holds(driver) == {("a", 1, "t"): ["past"]}, "it has sent nothing"
    assert held(driver) == {"past": "a.t, partition 1"}
    driver.insert("a", {"id": 1, "t": 20, "p": 1})
    driver.step()
    assert holds(driver) == {("a", 0, "t"): ["past"]}
    driver.idle("a", 0)
    driver.step()
    assert holds(driver) == {("a", 1, "t"): ["past"]}


def test_idle_branches_hold_no_union_and_idle_sides_hold_a_join() -> None:
    driver = flow(SOURCES, UNION, JOIN)
    driver.insert("a", {"id": 1, "t": 50, "p": 0}, {"id": 1, "t": 60, "p": 1})
    driver.watermark("b", 5, "t")
    driver.watermark("c", 9)
    driver.step()
    assert held(driver) == {"merged": "b.t", "joined": "c.t"}
    driver.idle("b")
    driver.idle("c")
    driver.step()
    assert held(driver) == {"merged": None, "joined": "c.t"}, "a union of idle branches is not blocked"
    driver.watermark("c", 10)
    driver.step()
    assert held(driver) == {"merged": "c.t", "joined": "c.t"}


def test_views_that_wait_for_nothing_and_late_rows() -> None:
    driver = flow(SOURCES, PAST, "CREATE VIEW all_of_a AS SELECT id FROM a")
    driver.insert("a", {"id": 1, "t": 10, "p": 0}, {"id": 1, "t": 10, "p": 1})
    driver.step()
    driver.insert("a", {"id": 2, "t": 1, "p": 0}, {"id": 3, "t": None, "p": 0})
    driver.step()
    rows = {row["view"]: (row["blocked_by"], row["late"]) for row in driver.sql("SHOW VIEWS")}
    assert rows == {"past": ("a.t, partition 0", {"a": 2}), "all_of_a": (None, {})}
