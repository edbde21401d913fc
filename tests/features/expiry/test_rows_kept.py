"""What a time-bounded join keeps: no row that conditions on it alone rule out, none outside the bounds, none late."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from rejoinder.testing import Driver
from tests.kit import flow, kept

SOURCES = (
    "CREATE STREAM l (k INT, t BIGINT, f INT, WATERMARK t); CREATE STREAM r (k INT, t BIGINT, f INT, WATERMARK t);"
)
BOUNDS = "l.t BETWEEN r.t - 10 AND r.t + 10"


def rows(count: int, time: int = 100) -> list[dict[str, int]]:
    """Rows of which every tenth has f = 0."""
    return [{"k": n, "t": time, "f": n % 10} for n in range(count)]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {BOUNDS} AND l.f = 0",
        f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {BOUNDS} WHERE l.f = 0",
        f"SELECT l.k FROM (SELECT * FROM l WHERE f = 0) l JOIN r ON l.k = r.k AND {BOUNDS}",
        f"SELECT l.k, r.k AS o FROM l LEFT JOIN r ON l.k = r.k AND {BOUNDS} AND l.f = 0",
        f"SELECT l.k, r.k AS o FROM l LEFT JOIN r ON l.k = r.k AND {BOUNDS} AND l.f = 0 EMIT FINAL",
        "SELECT l.k, r.k AS o FROM l LEFT JOIN r ON l.k = r.k AND l.t = r.t AND l.f = 0 EMIT FINAL",
        f"SELECT l.k, r.k AS o FROM r RIGHT JOIN l ON l.k = r.k AND {BOUNDS} AND l.f = 0",
        f"SELECT l.k FROM l SEMI JOIN r ON l.k = r.k AND {BOUNDS} AND l.f = 0",
        f"SELECT l.k FROM l ANTI JOIN r ON l.k = r.k AND {BOUNDS} AND l.f = 0 EMIT FINAL",
    ],
)
def test_rows_that_their_own_condition_rules_out_are_not_kept(query: str, parallelism: int) -> None:
    """HZJ-PRC-12: of a hundred rows ten can match, and ten are kept; the others are padded at once."""
    driver = flow(SOURCES, query, parallelism=parallelism)
    driver.insert("l", *rows(100))
    first = driver.step()["v"]
    assert kept(driver)["l#on-time"] == 10
    if "FINAL" in query:
        assert len(first) == 90, "a row that cannot match is final when it arrives"
    driver.insert("r", *rows(100))
    driver.step()
    driver.watermark("l", 200)
    driver.watermark("r", 200)
    driver.step()
    wanted = {"SEMI": 10, "ANTI": 90, "LEFT": 100, "RIGHT": 100}
    assert len(driver.table("v")) == next((n for word, n in wanted.items() if word in query), 10)
    assert sum(row["rows"] for row in driver.arrangements() if "on-time" in row["relation"]) == 0


def test_what_views_share_holds_what_one_of_them_asks_for() -> None:
    inner = f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {BOUNDS}"
    driver = flow(SOURCES, f"{inner} AND l.f = 0", f"{inner} AND l.f = 1 AND r.f > 4")
    driver.insert("l", *rows(100))
    driver.insert("r", *rows(100))
    driver.step()
    assert kept(driver) == {"l#on-time": 20, "r#on-time": 100}
    assert (len(driver.table("v")), len(driver.table("w"))) == (10, 0)
    driver.sql(f"CREATE VIEW all AS {inner}")
    driver.insert("l", *rows(100, time=101))
    driver.step()
    assert kept(driver)["l#on-time"] == 200, "one that asks for all rows has those from before, too"


def test_a_condition_that_can_fail_is_left_to_who_asks() -> None:
    driver = flow(
        SOURCES, f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {BOUNDS} AND CAST(CAST(l.f AS STRING) AS INT) = 0"
    )
    driver.insert("l", *rows(100))
    driver.step()
    assert kept(driver)["l#on-time"] == 100


def test_a_view_that_keeps_every_row_keeps_those_that_it_does_not_ask_for() -> None:
    """Later views are filled from rows that never expire."""
    driver = flow(SOURCES, "SELECT l.k FROM l JOIN r ON l.k = r.k AND l.f = 0")
    driver.insert("l", *rows(100))
    driver.step()
    assert kept(driver)["l"] == 100


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_rows_outside_the_bounds_are_joined_and_not_kept(join: str, parallelism: int) -> None:
    """HZJ-PRC-11: on time by their own watermark, but below what the other side can still reach."""
    driver = flow(SOURCES, f"SELECT l.k, r.t AS o FROM l {join} r ON l.k = r.k AND {BOUNDS}", parallelism=parallelism)
    driver.insert("r", *rows(50, time=100))
    driver.step()
    driver.watermark("r", 105)
    driver.step()
    before = kept(driver)["r#on-time"]
    driver.insert("l", *rows(50, time=94))  # rows of r from 84 to 104 could match, and from now on those from 105 come
    changed = driver.step()["v"]
    assert len(changed) == 50 and all(row["o"] == 100 for row, _ in changed)
    assert kept(driver)["l#on-time"] == 0 and kept(driver)["r#on-time"] == before
    driver.insert("l", *rows(50, time=95))
    driver.step()
    assert kept(driver)["l#on-time"] == 50
    assert not driver.late("v")


def test_rows_outside_the_bounds_meet_rows_of_their_own_epoch() -> None:
    driver = flow(SOURCES, f"SELECT l.k, r.k AS o FROM l JOIN r ON l.k = r.k AND {BOUNDS}", parallelism=2)
    driver.watermark("l", 95)
    driver.watermark("r", 105)
    driver.step()
    driver.insert("l", {"k": 1, "t": 95, "f": 0})
    driver.insert("r", {"k": 1, "t": 105, "f": 0})
    assert len(driver.step()["v"]) == 1
    driver.watermark("l", 116)
    driver.step()
    driver.insert("r", {"k": 2, "t": 105, "f": 0}, {"k": 3, "t": 106, "f": 0})
    driver.insert("l", {"k": 2, "t": 116, "f": 0}, {"k": 3, "t": 116, "f": 0})
    assert [row["k"] for row, _ in driver.step()["v"]] == [3]
    assert kept(driver)["r#on-time"] == 1, "105 is below 116 - 10"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_late_rows_are_neither_joined_nor_kept(parallelism: int) -> None:
    """HZJ-PRC-09."""
    driver = flow(SOURCES, f"SELECT l.k, r.t AS o FROM l JOIN r ON l.k = r.k AND {BOUNDS}", parallelism=parallelism)
    driver.insert("r", *rows(50, time=100))
    driver.watermark("l", 101)
    driver.step()
    driver.insert("l", *rows(50, time=100))
    assert driver.step()["v"] == [] and kept(driver).get("l#on-time", 0) == 0
    assert len(driver.late("v")) == 50


DUE = """
CREATE STREAM o (k INT, placed BIGINT, due BIGINT, WATERMARK placed);
CREATE STREAM d (k INT, t BIGINT, u BIGINT, WATERMARK t, WATERMARK u);
"""
SOON = "o.k = d.k AND d.t <= o.due AND d.t BETWEEN o.placed AND o.placed + 60"


def due(query: str, **options: Any) -> Driver:
    driver = Driver(**options)
    driver.sql(f"{DUE} CREATE VIEW v AS {query}")
    return driver


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "FULL ANTI"])
def test_a_row_goes_when_the_first_of_its_bounds_has_passed(kind: str, parallelism: int) -> None:
    shown = "o.k AS ok" if kind.startswith("LEFT ") else "o.k AS ok, d.k AS dk"
    driver = due(f"SELECT {shown} FROM o {kind} JOIN d ON {SOON}", parallelism=parallelism)
    driver.insert("o", *({"k": n, "placed": n, "due": 5 + n % 100} for n in range(1000)))
    driver.step()
    driver.watermark("d", 105, "t")
    driver.step()
    if kind in ("RIGHT", "FULL", "FULL ANTI"):  # a further order of a delivery that is here asks whether it had one
        assert kept(driver)["o#on-time"] == 1000
        driver.watermark("o", 105)
        driver.step()
    assert kept(driver)["o#on-time"] == 0, "due by 104 at the latest, whenever they were placed"
    if kind in ("RIGHT", "FULL", "FULL ANTI"):
        return
    driver.insert("o", *({"k": n, "placed": n, "due": 10**6} for n in range(10)))
    driver.step()
    assert kept(driver)["o#on-time"] == 0, "placed long ago, whenever they are due"
    driver.insert("o", *({"k": n, "placed": 45 + n % 2, "due": 104 + n // 2 % 2} for n in range(40)))
    driver.step()
    assert kept(driver)["o#on-time"] == 20, "from 45 on, and due at 105"


def test_compaction_leaves_out_rows_that_expired_by_one_of_two_columns() -> None:
    """By neither column alone has the whole run expired."""
    driver = due(f"SELECT o.k FROM o JOIN d ON {SOON}")
    rows = [{"k": n, "placed": 1000 * (n % 2), "due": 1000 * (n // 2 % 2)} for n in range(100)]
    for number in range(8):
        driver.insert("o", *rows)
        driver.watermark("d", 500 + number, "t")
        driver.step()
    for _ in range(8):
        driver.insert("o", rows[3])
        driver.step()
    assert kept(driver)["o#on-time"] <= 8 * 25 + 8 + 25, "one of four, and what came since the merge"


def test_a_row_that_is_null_in_one_column_goes_by_another() -> None:
    driver = due("SELECT o.k FROM o JOIN d ON o.k = d.k AND d.t BETWEEN o.placed AND o.placed + 60 AND d.u <= o.due")
    driver.insert("o", {"k": 1, "placed": 0, "due": None}, {"k": 2, "placed": 0, "due": 2**63 - 1})
    driver.step()
    assert kept(driver)["o#on-time"] == 1, "a comparison with NULL has no match; a time far away is none that is past"
    driver.watermark("d", 5, "u")
    driver.step()
    driver.insert("d", {"k": 2, "t": 3, "u": 7})
    assert [row for row, _ in driver.step()["v"]] == [{"k": 2}]
    driver.watermark("d", 61, "t")
    driver.step()
    assert kept(driver)["o#on-time"] == 0


def test_views_with_bounds_on_different_columns_share_an_arrangement() -> None:
    driver = due("SELECT o.k FROM o JOIN d ON o.k = d.k AND d.t <= o.due AND d.u >= o.placed")
    driver.sql("CREATE VIEW w AS SELECT o.k FROM o JOIN d ON o.k = d.k AND d.u BETWEEN o.placed AND o.placed + 10")
    text = driver.sql("EXPLAIN v")
    assert "kept while due >= the watermark of d.t, or placed >= the watermark of d.u - 10" in text
    driver.insert("o", *({"k": n, "placed": 10 * (n % 2), "due": 10 * (n // 2)} for n in range(4)))
    driver.step()
    driver.watermark("d", 5, "t")
    driver.step()
    assert kept(driver)["o#on-time"] == 4
    driver.insert("d", {"k": 0, "t": 5, "u": 10}, {"k": 2, "t": 5, "u": 11})
    changes = driver.step()
    assert [row["k"] for row, _ in changes["v"]] == [2] and [row["k"] for row, _ in changes["w"]] == [0]
    driver.watermark("d", 15, "u")
    driver.insert("d", {"k": 9, "t": 15, "u": 15})
    driver.step()
    driver.insert("o", {"k": 5, "placed": 20, "due": 4})
    driver.step()
    assert kept(driver)["o#on-time"] == 5, "by no column alone has the whole run expired"
    driver.watermark("d", 31, "u")
    driver.watermark("d", 11, "t")
    driver.step()
    assert kept(driver)["o#on-time"] == 0


@pytest.mark.parametrize("kind", ["LEFT", "FULL", "LEFT ANTI"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_row_without_a_match_is_final_when_the_first_of_its_bounds_has_passed(kind: str, moved: bool) -> None:
    """Also if the times that are compared are made from event times, or are none and may be NULL."""
    on, deliveries = SOON, "d"
    if moved:
        on, deliveries = f"{SOON} AND d.t = d.w", "(SELECT k, t - 5 + 5 AS t, t AS w FROM d) d"
    driver = due(f"SELECT o.k FROM o {kind} JOIN {deliveries} ON {on} EMIT FINAL")
    times = {1: (0, 5), 2: (0, 90), 3: (10, 20), 4: (10, None), 5: (0, 2**63 - 1), 6: (0, -(2**63))}
    driver.insert("o", *({"k": k, "placed": placed, "due": until} for k, (placed, until) in times.items()))
    out = {0: [row["k"] for row, _ in driver.step()["v"]]}
    driver.watermark("d", 6, "t")
    out[6] = sorted(row["k"] for row, _ in driver.step()["v"])
    driver.watermark("d", 21, "t")
    out[21] = sorted(row["k"] for row, _ in driver.step()["v"])
    driver.watermark("d", 61, "t")
    out[61] = sorted(row["k"] for row, _ in driver.step()["v"])
    assert out == {0: [4], 6: [1, 6], 21: [3], 61: [2, 5]}
    driver.watermark("o", 71)
    driver.watermark("d", 71, "t")
    driver.step()
    assert sum(kept(driver).values()) == 0


def test_the_end_of_a_window_lets_out_what_waits_in_it() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM o (k INT, t TIMESTAMP, WATERMARK t); CREATE STREAM d (k INT, t TIMESTAMP, WATERMARK t)")
    window = "TUMBLE({}.t, INTERVAL 10 MINUTES)"
    on = f"o.k = d.k AND {window.format('o')} = {window.format('d')}"
    driver.sql(f"CREATE VIEW v AS SELECT o.k FROM o LEFT JOIN d ON {on} EMIT FINAL")
    driver.insert("o", {"k": 1, "t": datetime(2026, 1, 1, 12, 1)})
    driver.step()
    driver.watermark("d", datetime(2026, 1, 1, 12, 9))
    assert driver.step()["v"] == []
    driver.watermark("d", datetime(2026, 1, 1, 12, 10))
    assert [row for row, _ in driver.step()["v"]] == [{"k": 1}], "not ten minutes after the row"


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "FULL ANTI"])
def test_how_long_a_row_waits_can_be_said_by_a_column_that_is_no_event_time(kind: str) -> None:
    """The match status is kept until neither an equal order nor a delivery in its time can arrive."""
    shown = "o.k AS ok" if kind.startswith("LEFT ") else "o.k AS ok, d.k AS dk"
    driver = due(f"SELECT {shown} FROM o {kind} JOIN d ON o.k = d.k AND d.t BETWEEN o.placed AND o.due EMIT FINAL")
    rows = [{"k": n, "placed": 10, "due": 20 + 10 * (n % 2)} for n in range(20)]
    driver.insert("o", *rows)
    driver.step()
    driver.insert("d", *({"k": n, "t": 15, "u": 0} for n in range(0, 20, 4)))
    driver.step()
    driver.insert("o", *rows)
    driver.watermark("d", 21, "t")
    driver.step()
    driver.watermark("o", 31)
    driver.watermark("d", 31, "t")
    driver.step()
    wanted = {"LEFT": 40, "RIGHT": 10, "FULL": 40, "LEFT SEMI": 10, "LEFT ANTI": 30, "FULL ANTI": 30}
    assert len(driver.table("v")) == wanted[kind]
    assert sum(kept(driver).values()) == 0


def test_a_padded_row_is_kept_for_who_does_not_ask_for_its_padding() -> None:
    """The ON of a second LEFT JOIN compares a time that padded rows lack, which says nothing to an EXISTS."""
    driver = flow(
        SOURCES,
        "SELECT a.k, a.t FROM l a LEFT JOIN l b ON a.k = b.k AND a.t = b.t"
        " LEFT JOIN l c ON b.f = c.f AND c.t BETWEEN b.t - 2 AND b.t + 1"
        " WHERE EXISTS (SELECT 1 FROM r WHERE r.t BETWEEN a.t - 2 AND a.t + 1) EMIT FINAL",
    )
    driver.insert("l", {"k": None, "t": 5, "f": 0})
    driver.step()
    driver.insert("r", {"k": 1, "t": 4, "f": 0})
    driver.step()
    for source in "lr":
        driver.watermark(source, 100)
    assert driver.step()["v"] == [({"k": None, "t": 5}, 1)]


@pytest.mark.parametrize("kind", ["EXISTS", "NOT EXISTS"])
def test_a_row_is_kept_for_pairs_that_are_tested_when_they_come(kind: str) -> None:
    """The match status of a pair is computed when it arrives, even if one of its rows is old."""
    driver = Driver(parallelism=2)
    driver.sql(SOURCES + "CREATE STREAM o (t BIGINT, WATERMARK t)")
    driver.sql(
        "CREATE VIEW v AS SELECT l.t, r.t AS u FROM (SELECT DISTINCT t FROM l) l JOIN r ON r.t BETWEEN l.t AND l.t + 3"
        f" WHERE {kind} (SELECT 1 FROM o WHERE o.t BETWEEN l.t - 3 AND l.t - 1)"
    )
    driver.insert("o", *([{"t": 4}] if kind == "EXISTS" else []))
    driver.insert("l", {"k": 1, "t": 6, "f": 0})
    driver.watermark("o", 6)
    driver.step()
    driver.step()
    driver.insert("r", {"k": 2, "t": 9, "f": 0})
    assert driver.step()["v"] == [({"t": 6, "u": 9}, 1)]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_view_with_a_longer_bound_has_the_rows_that_expired_for_a_shorter_one(parallelism: int) -> None:
    """The arrangement that both share is filled anew: the new view joins rows that the other one needs no more."""
    driver = flow(
        SOURCES, "SELECT l.k FROM l JOIN r ON l.k = r.k AND r.t BETWEEN l.t AND l.t + 10", parallelism=parallelism
    )
    driver.insert("l", *({"k": n, "t": 200 * (n % 2), "f": 0} for n in range(20)))
    driver.step()
    driver.watermark("r", 50)
    driver.step()
    assert kept(driver)["l#on-time"] == 20, "no run is over as a whole"
    driver.sql("CREATE VIEW w AS SELECT l.k, r.t FROM l LEFT JOIN r ON l.k = r.k AND r.t BETWEEN l.t AND l.t + 100")
    assert kept(driver)["l#on-time"] == 20 and len(driver.table("w")) == 20
    driver.insert("r", *({"k": n, "t": 60, "f": 0} for n in range(20)))
    changed = driver.step()
    assert Counter(diff for _, diff in changed["w"]) == {1: 10, -1: 10} and changed["v"] == []
    driver.insert("r", *({"k": n, "t": 210, "f": 0} for n in range(20)))
    assert Counter(diff for _, diff in driver.step()["w"]) == {1: 10, -1: 10}
