"""Sessions with watermarks: they end, are final, and leave no state; late rows go to the side output."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from rejoinder.errors import PlanningError
from rejoinder.testing import Driver

SESSIONS = (
    "SELECT u, SESSION(ts, INTERVAL 10 SECONDS) AS w, COUNT(*) AS n, MAX(x) AS most FROM e "
    "GROUP BY u, SESSION(ts, INTERVAL 10 SECONDS)"
)


def at(second: int) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=second)


def flow(query: str, parallelism: int = 1) -> Driver:
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE STREAM e (u STRING, x INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 2 SECONDS)")
    driver.sql(f"CREATE VIEW v AS {query}")
    return driver


def send(driver: Driver, *rows: tuple[str, int]) -> None:
    driver.insert("e", *({"u": u, "x": second, "ts": at(second)} for u, second in rows))
    driver.step()


def sessions(driver: Driver) -> list[Any]:
    rows = ((r["u"], r["w"]["start"], r["w"]["end"], r["n"], r["most"]) for r in driver.table("v"))
    return sorted((u, (s - at(0)).seconds, (e - at(0)).seconds, n, most) for u, s, e, n, most in rows)


@pytest.mark.parametrize("parallelism", [1, 7])
def test_a_session_is_emitted_once_when_no_row_can_extend_it(parallelism: int) -> None:
    driver = flow(f"{SESSIONS} EMIT FINAL", parallelism)
    send(driver, ("a", 1), ("a", 9), ("b", 4))
    send(driver, ("b", 16))  # the watermark is 14: a row at 19 could still extend the session of a
    assert sessions(driver) == []
    send(driver, ("c", 17), ("a", 19))
    driver.restart(parallelism=3)
    send(driver, ("c", 27))  # 25: beyond 14, the end of the first session of b, and not beyond 26 and 29
    assert sessions(driver) == [("b", 4, 14, 1, 4)]
    send(driver, ("d", 60))
    assert sessions(driver) == [("a", 1, 29, 3, 19), ("b", 4, 14, 1, 4), ("b", 16, 26, 1, 16), ("c", 17, 37, 2, 27)]


def test_late_rows_go_to_the_side_output_and_change_nothing() -> None:
    driver = flow(SESSIONS)
    send(driver, ("a", 1), ("a", 30))
    send(driver, ("a", 5), ("a", 29))
    assert sessions(driver) == [("a", 1, 11, 1, 1), ("a", 29, 40, 2, 30)]
    assert len(driver.late("v")) == 1


def test_a_session_that_ended_leaves_no_state() -> None:
    driver = flow(SESSIONS)
    for second in range(0, 2_000, 20):
        send(driver, ("a", second), ("b", second + 1))
    assert len(sessions(driver)) == 200
    rows = {row["name"].split("#")[0]: row["rows"] for row in driver.arrangements() if "#" in row["name"]}
    assert rows["sessions"] <= 10 and rows["aggregate"] <= 20
    assert "kept while" in driver.sql("EXPLAIN v")


def test_a_long_session_keeps_only_its_last_rows() -> None:
    driver = flow(SESSIONS)
    for second in range(0, 240, 3):
        send(driver, ("a", second))
    assert sessions(driver) == [("a", 0, 247, 80, 237)]
    rows = {row["name"].split("#")[0]: row["rows"] for row in driver.arrangements() if "#" in row["name"]}
    assert rows["sessions"] <= 30


OVER_RELATION = "SESSION(TABLE e PARTITION BY u, DESCRIPTOR(ts), INTERVAL 10 SECONDS)"


@pytest.mark.parametrize("parallelism", [1, 7])
def test_sessions_over_a_relation_are_those_of_group_by(parallelism: int) -> None:
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE CHANGELOG e (u STRING, x INT, ts TIMESTAMP)")
    driver.sql(f"CREATE VIEW v AS {SESSIONS}")
    driver.sql(
        "CREATE VIEW w AS SELECT u, struct(window_start AS start, window_end AS end) AS w, COUNT(*) AS n, "
        f"MAX(x) AS most FROM TABLE({OVER_RELATION}) AS s GROUP BY u, window_start, window_end"
    )
    driver.sql(f"CREATE VIEW r AS SELECT u, x, window_start, window_end FROM {OVER_RELATION}")
    choice = random.Random(parallelism)
    live: list[dict[str, Any]] = []
    for epoch in range(8):
        for _ in range(6):
            if live and choice.random() < 0.4:
                driver.delete("e", live.pop(choice.randrange(len(live))))
            else:
                time = at(choice.randrange(120)) if choice.random() < 0.95 else None
                live.append({"u": choice.choice(("a", "b", None)), "x": choice.randrange(9), "ts": time})
                driver.insert("e", live[-1])
        driver.step()
        assert sorted(map(repr, driver.table("v"))) == sorted(map(repr, driver.table("w")))
        assert len(driver.table("r")) == sum(row["ts"] is not None for row in live)
        if epoch == 4:
            driver.restart(parallelism=3)


def test_the_partition_of_a_session_may_be_left_out_or_have_several_columns() -> None:
    driver = flow("SELECT x, window_start, window_end FROM SESSION(TABLE e, DESCRIPTOR(ts), INTERVAL 10 SECONDS)")
    driver.sql(
        "CREATE VIEW w AS SELECT x, window_end FROM "
        "SESSION(TABLE (SELECT * FROM e) PARTITION BY (u, x % 2), DESCRIPTOR(ts), INTERVAL 10 SECONDS)"
    )
    send(driver, ("a", 1), ("b", 4), ("a", 7))
    assert {(r["window_start"], r["window_end"]) for r in driver.table("v")} == {(at(1), at(17))}
    assert {(r["x"], r["window_end"]) for r in driver.table("w")} == {(1, at(17)), (4, at(14)), (7, at(17))}


def test_sessions_over_a_stream_keep_their_rows_and_take_rows_below_the_watermark() -> None:
    driver = flow(f"SELECT u, x, window_end FROM {OVER_RELATION}")
    send(driver, ("a", 1), ("a", 9))
    send(driver, ("a", 60))
    send(driver, ("a", 12))
    ends = {(r["x"], r["window_end"]) for r in driver.table("v")}
    assert ends == {(1, at(22)), (9, at(22)), (12, at(22)), (60, at(70))}


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        (f"SELECT * FROM {OVER_RELATION.replace('SESSION', 'TUMBLE')}", "TUMBLE takes no PARTITION BY"),
        (f"SELECT * FROM {OVER_RELATION.replace('BY u', 'BY nix')}", "there is no column `nix`"),
        ("SELECT * FROM SESSION(TABLE e PARTITION BY u, DESCRIPTOR(ts))", "SESSION takes 3 arguments, not 2"),
        (
            "SELECT count(*) AS n FROM e GROUP BY session_window(ts, concat(x, ' minutes'))",
            "gap that depends on the row",
        ),
    ],
)
def test_sessions_that_are_refused(query: str, fact: str) -> None:
    with pytest.raises(PlanningError, match=fact):
        flow(query)
