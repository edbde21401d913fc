"""INTERSECT, EXCEPT and MINUS [ALL] as views: under retractions, filled later, restarted, with expiry and with EMIT."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from rejoinder.api.relations.relation import Relation
from rejoinder.errors import TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

CLAUSES = {
    "INTERSECT": {(2, "b"): 1, (None, None): 1},
    "INTERSECT ALL": {(2, "b"): 2, (None, None): 1},
    "EXCEPT": {(1, "a"): 1},
    "EXCEPT ALL": {(1, "a"): 2, (2, "b"): 1},
    "MINUS": {(1, "a"): 1},
    "MINUS ALL": {(1, "a"): 2, (2, "b"): 1},
}
SOURCES = ("CREATE CHANGELOG a (k INT, s STRING)", "CREATE CHANGELOG b (n BIGINT, t STRING)")
LEFT = [(1, "a"), (1, "a"), (2, "b"), (2, "b"), (2, "b"), (None, None)]
FIRST, FIFTH = datetime(2026, 1, 1), datetime(2026, 1, 5)
RIGHT = [(2, "b"), (2, "b"), (None, None), (3, "c")]


def fill(driver: Driver) -> None:
    driver.insert("a", *({"k": k, "s": s} for k, s in LEFT))
    driver.insert("b", *({"n": n, "t": t} for n, t in RIGHT))
    driver.step()


def content(driver: Driver, view: str = "v") -> dict[tuple[Any, ...], int]:
    return dict(Counter(tuple(row.values()) for row in driver.table(view)))


@pytest.mark.parametrize(
    ("clause", "rows"),
    [("INTERSECT ALL", {FIRST: 2}), ("EXCEPT", {FIFTH: 1}), ("UNION", {FIRST: 1, FIFTH: 1})],
)
def test_timestamps_with_and_without_a_zone_are_compared(clause: str, rows: dict[datetime, int]) -> None:
    """The cast that makes them equal in type copies nothing, and was lost when the query was put into blocks."""
    driver = flow("CREATE STREAM t (z TIMESTAMP, n TIMESTAMP_NTZ)")
    driver.sql(f"CREATE VIEW v AS SELECT z FROM t {clause} SELECT n FROM t")
    for z, n in ((FIRST, FIRST), (FIRST, FIRST), (FIFTH, FIRST)):
        driver.insert("t", {"z": z, "n": n})
        driver.step()
    assert content(driver) == {(time,): copies for time, copies in rows.items()}


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("is_filled_later", [False, True])
def test_copies_count_as_in_spark(clause: str, is_filled_later: bool) -> None:
    driver = flow(*SOURCES)
    if is_filled_later:
        driver.sql("CREATE VIEW every AS SELECT k FROM a JOIN b ON a.k = b.n")  # so that rows are read, and kept
        fill(driver)
    driver.sql(f"CREATE VIEW v AS SELECT k, s FROM a {clause} SELECT n, t FROM b")
    if not is_filled_later:
        fill(driver)
    assert content(driver) == CLAUSES[clause]
    assert (
        Counter(tuple(row.values()) for row in driver.sql(f"SELECT k, s FROM a {clause} SELECT n, t FROM b"))
        == (CLAUSES[clause])
    )
    driver.restart()
    driver.delete("b", *({"n": n, "t": t} for n, t in RIGHT))
    driver.step()
    left = Counter(LEFT)
    is_intersection = clause.startswith("INTERSECT")
    assert content(driver) == ({} if is_intersection else left if "ALL" in clause else dict.fromkeys(left, 1))
    driver.delete("a", *({"k": k, "s": s} for k, s in LEFT))
    driver.step()
    assert content(driver) == {}


def test_intersect_binds_tighter_than_union_and_except() -> None:
    driver = flow(*SOURCES)
    driver.sql("CREATE VIEW v AS SELECT k FROM a EXCEPT SELECT k FROM a INTERSECT SELECT n FROM b")
    fill(driver)
    assert content(driver) == {(1,): 1}


def test_python_has_the_names_of_pyspark() -> None:
    left, right = Relation("a").select("k"), Relation("b").select("n")
    made = [left.intersect(right), left.intersect_all(right), left.subtract(right), left.except_all(right)]
    clauses = ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
    assert [relation.query for relation in made] == [
        f"SELECT * FROM (SELECT k FROM a {clause} SELECT n FROM b)" for clause in clauses
    ]


def timed(query: str) -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT, t BIGINT, WATERMARK t DELAY OF 0)")
    driver.sql("CREATE STREAM b (k INT, t BIGINT, WATERMARK t DELAY OF 0)")
    driver.sql(f"CREATE VIEW v AS {query}")
    return driver


@pytest.mark.parametrize("clause", ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_copies_expire_when_both_sides_have_passed_them(clause: str) -> None:
    driver = timed(f"SELECT k, t FROM a {clause} SELECT k, t FROM b")
    for time in range(10):
        driver.insert("a", {"k": 1, "t": time}, {"k": 1, "t": time})
        driver.insert("b", {"k": time % 2, "t": time})
        driver.step()
    expected = {
        "INTERSECT": {(1, t): 1 for t in (1, 3, 5, 7, 9)},
        "INTERSECT ALL": {(1, t): 1 for t in (1, 3, 5, 7, 9)},
        "EXCEPT": {(1, t): 1 for t in (0, 2, 4, 6, 8)},
        "EXCEPT ALL": {(1, t): 1 + (t % 2 == 0) for t in range(10)},
    }
    assert content(driver) == expected[clause]
    assert sum(row["rows"] for row in driver.arrangements() if row["kind"] == "copies") <= 6, "of 30 rows"
    driver.insert("b", {"k": 1, "t": 0})
    driver.step()
    assert content(driver) == expected[clause] and [row["input"] for row in driver.late("v")] == ["b"]


def test_a_row_is_final_when_both_sides_have_passed_its_time() -> None:
    driver = timed("SELECT k, t FROM a EXCEPT SELECT k, t FROM b EMIT FINAL")
    driver.insert("a", {"k": 1, "t": 1}, {"k": 2, "t": 1}, {"k": 3, "t": 9})
    driver.step()
    assert content(driver) == {}, "a row of b can still come"
    driver.insert("b", {"k": 2, "t": 1}, {"k": 9, "t": 9})
    driver.step()
    assert content(driver) == {(1, 1): 1}


def test_a_frontier_waits_for_an_idle_side() -> None:
    """Else a row of it that comes later would change rows that are final."""
    driver = timed("SELECT k, t FROM a EXCEPT SELECT k, t FROM b EMIT FINAL")
    driver.insert("b", {"k": 0, "t": 0})
    driver.step()
    driver.idle("b")
    driver.insert("a", {"k": 1, "t": 1}, {"k": 2, "t": 9})
    driver.step()
    assert content(driver) == {}
    driver.insert("b", {"k": 1, "t": 1}, {"k": 1, "t": 9})
    driver.step()
    assert content(driver) == {}


def test_only_intersections_of_streams_are_append_only() -> None:
    driver = timed("SELECT k FROM a")
    at_arrival = "SELECT q.k FROM (SELECT k FROM a {} SELECT k FROM b) q JOIN b FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
    driver.sql("CREATE VIEW w AS " + at_arrival.format("INTERSECT") + " AS r ON q.k = r.k")
    with pytest.raises(Unsupported, match="must be append-only, and EXCEPT ALL is not"):
        driver.sql("CREATE VIEW x AS " + at_arrival.format("EXCEPT ALL") + " AS r ON q.k = r.k")


def test_maps_cannot_be_compared() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM m (a MAP<STRING, INT>)")
    with pytest.raises(TypeMismatch, match="INTERSECT ALL on column `a` of type map<string,int>"):
        driver.sql("CREATE VIEW v AS SELECT a FROM m INTERSECT ALL SELECT a FROM m")
