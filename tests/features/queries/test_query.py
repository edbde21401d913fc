"""Queries that are run once: from the arrangements, on the last committed epoch, and nothing is written."""

from __future__ import annotations

import math

import pytest

from rejoinder.errors import InvalidSql, RejoinderError, UnknownName, Unsupported
from rejoinder.testing import Driver


@pytest.fixture
def driver() -> Driver:
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (k INT, d DOUBLE); CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id))")
    driver.sql("CREATE VIEW w AS SELECT a.k, t.v FROM a JOIN t ON a.k = t.id")
    driver.insert("a", *({"k": k, "d": d} for k, d in [(1, 0.5), (2, None), (3, math.nan), (3, -1.0), (None, 2.0)]))
    driver.insert("t", {"id": 1, "v": "one"}, {"id": 3, "v": "three"})
    driver.step()
    return driver


def test_a_query_is_answered_from_what_is_committed(driver: Driver) -> None:
    before = driver._engine.version.manifest, {entry.name for entry in driver._store.entries()}
    driver.insert("t", {"id": 2, "v": "two"})
    assert driver.sql("SELECT v FROM t") == [{"v": "one"}, {"v": "three"}]
    assert driver.sql("SELECT DISTINCT w.v FROM w JOIN a ON a.k = w.k") == [{"v": "one"}, {"v": "three"}]
    assert driver.sql("SELECT k FROM a UNION SELECT id FROM t") == [{"k": None}, {"k": 1}, {"k": 2}, {"k": 3}]
    assert driver.sql("SELECT * FROM w") == driver.table("w")
    assert (driver._engine.version.manifest, {entry.name for entry in driver._store.entries()}) == before


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [
        ("ORDER BY d", [None, -1.0, 0.5, 2.0, "nan"]),
        ("ORDER BY d DESC", ["nan", 2.0, 0.5, -1.0, None]),
        ("ORDER BY d NULLS LAST", [-1.0, 0.5, 2.0, "nan", None]),
        ("ORDER BY d DESC NULLS FIRST", [None, "nan", 2.0, 0.5, -1.0]),
        ("ORDER BY k DESC, d", [-1.0, "nan", None, 0.5, 2.0]),
        ("ORDER BY 2 DESC, 1 DESC LIMIT 2", ["nan", -1.0]),
        ("LIMIT 0", []),
        ("ORDER BY d LIMIT 2 OFFSET 1", [-1.0, 0.5]),
        ("ORDER BY d OFFSET 3", [2.0, "nan"]),
        ("ORDER BY d LIMIT ALL OFFSET 4", ["nan"]),
        ("OFFSET 5", []),
    ],
)
def test_a_query_can_be_ordered_and_limited(driver: Driver, ordering: str, expected: list[float | str | None]) -> None:
    rows = driver.sql(f"SELECT d, k FROM a {ordering}")
    shown = ["nan" if row["d"] is not None and math.isnan(row["d"]) else row["d"] for row in rows]
    assert shown == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT x.k FROM a AS x WHERE k < 3 ORDER BY x.k DESC", [2, 1]),
        ("SELECT k FROM a WHERE k < 3 ORDER BY -k", [2, 1]),
        ("SELECT k, count(*) FROM a GROUP BY k ORDER BY count(*) DESC, k DESC LIMIT 2", [3, 2]),
        ("SELECT -k AS k FROM a WHERE k < 3 ORDER BY k * k", [-1, -2]),
        ("SELECT k FROM a WHERE k < 3 ORDER BY coalesce(d, 9) DESC, a.k", [2, 1]),
        ("SELECT DISTINCT k FROM a WHERE k > 1 ORDER BY k % 3", [3, 2]),
        ("SELECT k FROM a WHERE k > 2 UNION SELECT 7 AS k ORDER BY -k", [7, 3]),
        ("FROM a |> WHERE k < 3 |> SELECT k |> ORDER BY -k", [2, 1]),
        ("SELECT id FROM t ORDER BY (SELECT max(d) FROM a WHERE a.k = t.id) DESC", [3, 1]),
    ],
)
def test_a_query_can_be_ordered_by_an_expression(driver: Driver, query: str, expected: list[int]) -> None:
    assert [next(iter(row.values())) for row in driver.sql(query)] == expected
    assert len(driver.sql(query)[0]) == (2 if "count" in query else 1), "the sort keys are not part of the result"


def test_the_text_before_the_ordering_stays_as_it_is(driver: Driver) -> None:
    assert driver.sql("SELECT 'it''s ORDER BY' AS s FROM t ORDER BY s LIMIT 1") == [{"s": "it's ORDER BY"}]
    assert driver.sql("(SELECT v FROM t) ORDER BY v DESC") == [{"v": "three"}, {"v": "one"}]
    assert driver.sql("SELECT v AS offset FROM t ORDER BY offset OFFSET 1") == [{"offset": "three"}]


@pytest.mark.parametrize(
    ("query", "error", "fact"),
    [
        ("SELECT k FROM a ORDER BY q", UnknownName, "there is no column `q` to order by"),
        ("SELECT k FROM a ORDER BY 2", InvalidSql, "ORDER BY 2 of 1 column(s)"),
        ("SELECT a.k, t.id AS k FROM a JOIN t ON a.k = t.id", InvalidSql, "column `k` appears twice in the result"),
        ("SELECT k AS __Hash FROM a", InvalidSql, "column `__Hash` in the result has a reserved name"),
        ("SELECT k AS __partition FROM a", InvalidSql, "column `__partition` in the result has a reserved name"),
        ("SELECT TVR k AS __diff FROM a", InvalidSql, "column `__diff` in the result has a reserved name"),
        ("SELECT STREAM k AS _UNDO FROM a", InvalidSql, "column `_UNDO` in the result has a reserved name"),
        ("SELECT k FROM a LIMIT k", InvalidSql, "LIMIT must be a constant whole number"),
        ("SELECT k FROM a OFFSET k", InvalidSql, "OFFSET must be a constant whole number"),
        ("SELECT DISTINCT k FROM a ORDER BY d + 1", Unsupported, "ORDER BY takes columns of the result"),
        ("SELECT -k AS k FROM a ORDER BY k + d", Unsupported, "ORDER BY takes columns of the result"),
        ("SELECT k FROM a ORDER BY k + q", UnknownName, "there is no column `q`"),
    ],
)
def test_what_cannot_be_answered_is_refused(driver: Driver, query: str, error: type[RejoinderError], fact: str) -> None:
    with pytest.raises(error) as raised:
        driver.sql(query)
    assert raised.value.fact == fact


def test_stream_and_tvr_of_a_view(driver: Driver) -> None:
    assert driver.sql("SELECT STREAM * FROM w") == driver.stream("w")
    assert driver.sql("SELECT TVR * FROM W") == driver.tvr("w")
    assert driver.sql("SELECT TABLE * FROM w") == driver.table("w")
