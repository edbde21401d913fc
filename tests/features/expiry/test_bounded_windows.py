"""Groups by a window, DISTINCT of times and joins on windows: final rows expire, and results stay right."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver
from tests.kit import at, flow, kept

SOURCES = """
CREATE STREAM a (k INT, ts TIMESTAMP, x INT, WATERMARK ts);
CREATE STREAM b (k INT, ts TIMESTAMP, x INT, WATERMARK ts);
CREATE STREAM n (k INT, t BIGINT, day DATE, WATERMARK t, WATERMARK day);
"""
START = datetime(2024, 1, 1, 12)
TUMBLE = "TUMBLE(ts, INTERVAL 5 MINUTES)"
HOP = "HOP(ts, INTERVAL 5 MINUTES, INTERVAL 15 MINUTES)"
EQUAL = "TUMBLE(a.ts, INTERVAL 5 MINUTES) = TUMBLE(b.ts, INTERVAL 5 MINUTES)"
LONG = "TUMBLE(WINDOW_START(w), INTERVAL 15 MINUTES)"
PER_WINDOW = f"SELECT k, {TUMBLE} AS w, count(*) AS n FROM a GROUP BY k, w"
QUERIES = {
    "tumble": PER_WINDOW,
    "hop": f"SELECT {HOP} AS w, sum(x) AS x FROM a GROUP BY {HOP}",
    "spark's window": "SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(ts, '5 minutes')",
    "largest": f"SELECT k, {TUMBLE} AS w, max(x) AS x, min(x) AS y FROM a GROUP BY k, {TUMBLE}",
    "different values": f"SELECT {TUMBLE} AS w, count(DISTINCT x) AS d, count(*) AS n FROM a GROUP BY {TUMBLE}",
    "date_trunc": "SELECT date_trunc('HOUR', ts) AS h, avg(x) AS x FROM a GROUP BY date_trunc('HOUR', ts)",
    "day of a time": "SELECT CAST(ts AS DATE) AS d, count(*) AS n FROM a GROUP BY CAST(ts AS DATE)",
    "the time itself": "SELECT ts, count(*) AS n FROM a GROUP BY ts",
    "distinct": f"SELECT DISTINCT k, {TUMBLE} AS w FROM a",
    "distinct times": "SELECT DISTINCT ts FROM a",
    "windows of windows": f"SELECT {LONG} AS l, sum(n) AS n FROM ({PER_WINDOW}) GROUP BY {LONG}",
    "join on windows": f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k AND {EQUAL}",
    "left join on windows": f"SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND {EQUAL}",
    "join on windows, final": f"SELECT a.x, b.x AS y FROM a FULL JOIN b ON a.k = b.k AND {EQUAL} EMIT FINAL",
    "groups of a join on windows": f"SELECT TUMBLE(a.ts, INTERVAL 5 MINUTES) AS w, count(*) AS n FROM a JOIN b"
    f" ON a.k = b.k AND {EQUAL} GROUP BY w",
    "join on hops": f"SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k"
    f" AND {HOP.replace('ts', 'a.ts')} = {HOP.replace('ts', 'b.ts')}",
    "join of groups": f"SELECT l.k, l.n, r.n AS m FROM ({PER_WINDOW}) l JOIN ({PER_WINDOW.replace('FROM a', 'FROM b')})"
    " r ON l.k = r.k AND l.w = r.w",
    "full join of groups": f"SELECT k, w, l.n, r.n AS m FROM ({PER_WINDOW}) l FULL JOIN"
    f" ({PER_WINDOW.replace('FROM a', 'FROM b')}) r USING (k, w)",
    "groups of a bounded join": "SELECT TUMBLE(a.ts, INTERVAL 5 MINUTES) AS w, count(*) AS n FROM a JOIN b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 7 MINUTES GROUP BY w",
    "final groups": f"SELECT {TUMBLE} AS w, max(x) AS x FROM a GROUP BY {TUMBLE} EMIT FINAL",
}


def burst(driver: Driver, query: str, first: int, last: int) -> None:
    for minute in range(first, last):
        driver.insert("a", {"k": minute % 3, "ts": at(minute), "x": minute}, {"k": 1, "ts": at(minute), "x": 7})
        if "b." in query or "FROM b" in query:
            driver.insert("b", {"k": minute % 3, "ts": at(minute + 0.5), "x": minute})


def close(driver: Driver, minute: float) -> None:
    for name in "ab":
        driver.watermark(name, at(minute))


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_state_is_empty_once_the_watermarks_have_passed(query: str, parallelism: int) -> None:
    driver = flow(SOURCES, query, parallelism=parallelism)
    burst(driver, query, 0, 20)
    driver.step()
    assert kept(driver)
    close(driver, 60 * 24 * 3)
    driver.step()
    assert kept(driver) == {}
    plain = Driver()
    plain.sql(SOURCES.replace(", WATERMARK ts", ""))
    plain.sql(f"CREATE VIEW v AS {query.replace(' EMIT FINAL', '')}")
    burst(plain, query, 0, 20)
    plain.step()
    assert driver.table("v") == plain.table("v"), "what is in the view stays there"


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
def test_a_steady_stream_keeps_as_much_as_its_windows_hold(query: str) -> None:
    driver = flow(SOURCES, query)
    sizes = []
    for epoch in range(8):
        burst(driver, query, 40 * epoch, 40 * (epoch + 1))
        close(driver, 40 * (epoch + 1) - 5)
        driver.step()
        sizes.append(sum(kept(driver).values()))
    whole_days = "CAST(ts AS DATE)" in query or "HOUR" in query
    assert whole_days or max(sizes[4:]) <= 1.3 * max(sizes[:4]) + 10


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        ("SELECT t DIV 10 AS w, count(*) AS n FROM n GROUP BY t DIV 10", "n.t, divided by 10"),
        ("SELECT TUMBLE(t, 10) AS w, count(*) AS n FROM n GROUP BY w", "the watermark of n.t, rounded down to 10"),
        ("SELECT TUMBLE(day, INTERVAL 7 DAYS) AS w, count(*) AS n FROM n GROUP BY w", "rounded down to 7 days"),
        ("SELECT day, count(*) AS n FROM n GROUP BY day", ">= the watermark of n.day"),
        ("SELECT ts + INTERVAL 1 HOUR AS later, count(*) AS n FROM a GROUP BY later", "a.ts + 1 hour"),
    ],
)
def test_every_kind_of_time_makes_groups_that_end(query: str, limits: str) -> None:
    driver = flow(SOURCES, query)
    assert limits in driver.sql("EXPLAIN v")
    if "FROM n" in query:
        driver.insert("n", {"k": 1, "t": 5, "day": START.date()}, {"k": 1, "t": -15, "day": START.date()})
    else:
        driver.insert("a", {"k": 1, "ts": at(3)})
    driver.step()
    found = driver.table("v")
    driver.watermark("n", 100, "t")
    driver.watermark("n", (START + timedelta(days=40)).date(), "day")
    close(driver, 500)
    driver.step()
    assert kept(driver) == {} and driver.table("v") == found


@pytest.mark.parametrize("policy", ["EMIT FINAL", "EMIT WHEN WATERMARK PAST WINDOW_END(w)"])
@pytest.mark.parametrize(("column", "is_narrow"), [("i INT", True), ("i BIGINT", False)])
def test_windows_of_integers_are_emitted_when_they_end(column: str, is_narrow: bool, policy: str) -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s ({column}, WATERMARK i)")
    driver.sql(f"CREATE VIEW v AS SELECT HOP(i, 5, 10) AS w, count(*) AS n FROM s GROUP BY HOP(i, 5, 10) {policy}")
    driver.insert("s", {"i": -1}, {"i": -6}, {"i": 2**31 - 1 if is_narrow else 2**62})
    out = []
    for watermark in (-1, 0, 4, 5):
        driver.watermark("s", watermark)
        out += [(watermark, row["w"]["start"], row["w"]["end"], row["n"]) for row, _ in driver.step()["v"]]
    assert sorted(out) == [(-1, -15, -5, 1), (0, -10, 0, 2), (5, -5, 5, 1)]
    driver.insert("s", {"i": 4})
    driver.step()
    assert [row["behind"] for row in driver.late("v")] == ([1] if is_narrow else [None, 1])


def test_a_group_that_can_still_change_is_kept() -> None:
    driver = flow(SOURCES, PER_WINDOW, parallelism=2)
    driver.insert("a", {"k": 1, "ts": at(1)}, {"k": 1, "ts": at(6)})
    close(driver, 8)
    driver.step()
    driver.insert("a", {"k": 1, "ts": at(9)}, {"k": 1, "ts": at(7)})
    changes = driver.step()["v"]
    assert [(row["n"], diff) for row, diff in changes] == [(1, -1), (2, 1)], "12:09 counts, 12:07 is late"
    assert [(late["input"], late["behind"]) for late in driver.late("v")] == [("a", 60_000_000)]
    driver.restart(parallelism=1)
    driver.insert("a", {"k": 1, "ts": at(1)})
    assert driver.step()["v"] == [], "an expired group does not start again"
    assert len(driver.late("v")) == 2


def test_final_groups_of_a_bounded_join_wait_for_both_sides() -> None:
    driver = flow(SOURCES, QUERIES["groups of a bounded join"] + " EMIT FINAL")
    driver.insert("a", {"k": 1, "ts": at(4)})
    driver.insert("b", {"k": 1, "ts": at(4)})
    driver.step()
    close(driver, 11)
    assert driver.step()["v"] == [], "one of `b` at 12:11 still finds the row at 12:04"
    driver.insert("b", {"k": 1, "ts": at(11)})
    assert driver.step()["v"] == []
    close(driver, 12)
    ((row, diff),) = driver.step()["v"]
    assert (row["n"], diff) == (2, 1)


def test_a_window_over_padded_times_is_not_bounded() -> None:
    """The rows without a match are one group for each k that never ends."""
    driver = flow(
        SOURCES,
        "SELECT a.k, TUMBLE(b.ts, INTERVAL 5 MINUTES) AS w, count(*) AS n FROM a LEFT JOIN b ON a.k = b.k"
        " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE GROUP BY a.k, w",
    )
    assert driver._engine.dataflow.retentions == {}


def test_a_view_beside_it_takes_every_row() -> None:
    driver = flow(SOURCES, PER_WINDOW)
    driver.sql("CREATE VIEW totals AS SELECT k, count(*) AS n FROM a GROUP BY k")
    close(driver, 30)
    driver.step()
    driver.insert("a", {"k": 1, "ts": at(1)})
    changes = driver.step()
    assert changes["v"] == [] and changes["totals"] == [({"k": 1, "n": 1}, 1)]


@pytest.mark.parametrize("join", ["JOIN b ON a.k = b.k", "JOIN people ON a.k = people.id"])
def test_final_groups_over_a_join_without_bounds_are_refused(join: str) -> None:
    driver = Driver()
    driver.sql(SOURCES + "CREATE TABLE people (id INT, PRIMARY KEY (id))")
    window = "TUMBLE(a.ts, INTERVAL 5 MINUTES)"
    grouped = f"SELECT {window} AS w, count(*) AS n FROM a {join} GROUP BY {window}"
    with pytest.raises(Unsupported, match="none is ever final") as raised:
        driver.sql(f"CREATE VIEW v AS {grouped} EMIT FINAL")
    assert "WINDOW_END" in str(raised.value.hint)
    driver.sql(f"CREATE VIEW v AS {grouped} EMIT WHEN WATERMARK PAST WINDOW_END({window})")
