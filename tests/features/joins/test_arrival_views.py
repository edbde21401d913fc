"""Views with joins at arrival among others: they are read as they are, wait like others, and are joined only once."""

from __future__ import annotations

import pytest

from rejoinder.errors import DefinitionConflict
from rejoinder.testing import Driver

NOW = "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"


@pytest.fixture
def driver() -> Driver:
    made = Driver(parallelism=2)
    made.sql("CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 5 SECONDS)")
    made.sql(
        "CREATE TABLE t (k STRING, w BIGINT, PRIMARY KEY (k)); CREATE TABLE u (k STRING, z BIGINT, PRIMARY KEY (k))"
    )
    return made


def put(driver: Driver, v: int, w: int, second: int) -> None:
    driver.insert("t", {"k": "a", "w": w})
    driver.insert("s", {"k": "a", "v": v, "ts": f"2026-01-01 00:00:{second:02}"})


def test_a_later_change_of_a_third_input_does_not_join_again(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW m AS SELECT s.v, t.w, u.z FROM s LEFT JOIN t {NOW} AS t ON s.k = t.k JOIN u ON s.k = u.k")
    put(driver, 1, 10, 0)
    assert driver.step()["m"] == []
    driver.insert("t", {"k": "a", "w": 20})
    driver.step()
    driver.restart(parallelism=3)
    driver.insert("u", {"k": "a", "z": 7})
    assert driver.step()["m"] == [({"v": 1, "w": 10, "z": 7}, 1)]
    driver.insert("u", {"k": "a", "z": 8})
    assert driver.step()["m"] == [({"v": 1, "w": 10, "z": 7}, -1), ({"v": 1, "w": 10, "z": 8}, 1)]


def test_views_on_such_a_view_read_its_rows(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW j AS SELECT s.k, s.v, t.w FROM s LEFT JOIN t {NOW} AS t ON s.k = t.k")
    put(driver, 1, 10, 0)
    driver.step()
    put(driver, 2, 20, 20)
    driver.step()
    driver.sql("CREATE VIEW now AS SELECT j.v, j.w, t.w AS later FROM j JOIN t ON j.k = t.k")
    driver.sql("CREATE INDEX ON j (k)")
    assert [tuple(row.values()) for row in driver.table("now")] == [(1, 10, 20), (2, 20, 20)]
    assert [row["w"] for row in driver.sql("SELECT w FROM j WHERE v < 9 ORDER BY w")] == [10, 20]
    driver.restart(parallelism=1)
    driver.insert("t", {"k": "a", "w": 30})
    assert [row["later"] for row, diff in driver.step()["now"] if diff > 0] == [30, 30]
    with pytest.raises(DefinitionConflict, match="`j` is read by view `now`"):
        driver.sql("DROP VIEW j")
    driver.sql("DROP VIEW now; DROP VIEW j")
    assert driver.step() == {}


def test_such_a_view_waits_like_others(driver: Driver) -> None:
    query = f"SELECT k, w, ts FROM s LEFT JOIN t {NOW} AS t USING (k)"
    driver.sql(f"CREATE VIEW past AS {query} EMIT WHEN WATERMARK PAST ts")
    driver.sql(f"CREATE VIEW every AS {query} EMIT EVERY INTERVAL 10 SECONDS")
    put(driver, 1, 10, 0)
    assert driver.step(at=1000) == {"past": [], "every": []}
    put(driver, 2, 20, 20)
    changes = driver.step(at=12000)
    assert {view: [row["w"] for row, _ in found] for view, found in changes.items()} == {"past": [10], "every": [10]}


def test_a_view_made_later_meets_what_is_there(driver: Driver) -> None:
    for number in (1, 2):
        put(driver, number, 10 * number, number)
        driver.step()
    driver.sql(f"CREATE VIEW j AS SELECT s.v, t.w FROM s LEFT JOIN t {NOW} AS t ON s.k = t.k")
    assert [tuple(row.values()) for row in driver.table("j")] == [(1, 20), (2, 20)]
    put(driver, 3, 30, 9)
    assert driver.step()["j"] == [({"v": 3, "w": 30}, 1)]


def test_another_definition_joins_nothing_again(driver: Driver) -> None:
    """A row without a match at its arrival leaves no state, so a hydration cannot find it."""
    driver.sql(f"CREATE VIEW m AS SELECT s.v, t.w, u.z FROM s JOIN t {NOW} AS t ON s.k = t.k JOIN u ON s.k = u.k")
    driver.insert("s", {"k": "a", "v": 1, "ts": "2026-01-01 00:00:00"})
    driver.step()
    driver.insert("t", {"k": "a", "w": 10})
    driver.step()
    driver.sql("CREATE VIEW other AS SELECT count(*) AS n FROM u")
    driver.insert("u", {"k": "a", "z": 7})
    assert driver.step()["m"] == []
    driver.sql("DROP VIEW other")
    driver.insert("u", {"k": "a", "z": 8})
    assert driver.step()["m"] == []
