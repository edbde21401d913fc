"""Joins with time bounds: rows that cannot match any more expire, and late rows go to the side output."""

from __future__ import annotations

import pytest

from rejoinder.errors import InvalidSql, LateRow
from rejoinder.testing import Driver
from tests.kit import changed, flow, kept

SOURCES = """
CREATE STREAM o (id INT, t BIGINT, WATERMARK t);
CREATE STREAM d (id INT, t BIGINT, WATERMARK t);
CREATE STREAM r (id INT, t BIGINT, WATERMARK t);
"""
WITHIN = "ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 10"
INNER = f"SELECT o.id, o.t AS ot, d.t AS dt FROM o JOIN d {WITHIN}"
LEFT = f"SELECT o.id, o.t AS ot, d.t AS dt FROM o LEFT JOIN d {WITHIN}"


@pytest.mark.parametrize("query", [INNER, LEFT, f"SELECT o.id FROM o LEFT ANTI JOIN d {WITHIN}"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_state_is_empty_once_the_watermarks_have_passed(query: str, parallelism: int) -> None:
    driver = flow(SOURCES, query, parallelism=parallelism)
    driver.insert("o", *({"id": n, "t": n} for n in range(100)))
    driver.insert("d", *({"id": n, "t": n + 5} for n in range(0, 100, 2)))
    driver.step()
    assert sum(kept(driver).values()) >= 150
    driver.watermark("o", 1000)
    driver.watermark("d", 1000)
    driver.step()
    assert sum(kept(driver).values()) == 0
    assert sum(size for _, size in _files(driver)) < 50_000, "and the files are gone once no reader can need them"


def _files(driver: Driver) -> list[tuple[str, int]]:
    for _ in range(20):
        driver.step()
    state = driver._engine.version.state
    return [(ref.name, ref.size) for parts in state.arrangements.values() for part in parts for ref in part.refs]


def test_what_can_still_match_is_kept() -> None:
    driver = flow(SOURCES, INNER)
    driver.insert("o", {"id": 1, "t": 5}, {"id": 2, "t": 6})
    driver.step()
    driver.watermark("d", 16)
    driver.step()
    driver.insert("d", {"id": 2, "t": 16}, {"id": 1, "t": 15})
    assert changed(driver) == [(2, 6, 16, 1)]
    assert [(row["input"], row["watermark"], row["behind"]) for row in driver.late("v")] == [("d", "16", 1)]
    driver.restart(parallelism=2)
    driver.insert("d", {"id": 1, "t": 15})
    assert changed(driver) == [], "no late row revives"
    assert len(driver.late("v")) == 2


def test_late_means_strictly_below() -> None:
    driver = flow(SOURCES, INNER)
    driver.watermark("o", 5)
    driver.step()
    driver.insert("o", {"id": 1, "t": 5}, {"id": 1, "t": 4})
    driver.insert("d", {"id": 1, "t": 7})
    assert changed(driver) == [(1, 5, 7, 1)]
    assert [row["row"] for row in driver.late("v")] == ['{"id":1,"t":4}']


def test_a_view_without_bounds_beside_it_takes_every_row() -> None:
    driver = flow(SOURCES, INNER)
    driver.sql("CREATE VIEW w AS SELECT o.id, o.t AS ot, d.t AS dt FROM o JOIN d ON o.id = d.id")
    driver.watermark("o", 50)
    driver.watermark("d", 50)
    driver.step()
    driver.insert("o", {"id": 1, "t": 3})
    driver.insert("d", {"id": 1, "t": 4})
    changes = driver.step()
    assert changes["v"] == [] and changes["w"] == [({"id": 1, "ot": 3, "dt": 4}, 1)]
    assert driver.late("w") == [] and len(driver.late("v")) == 2


def test_bounds_reach_over_three_inputs() -> None:
    driver = flow(
        SOURCES,
        f"SELECT o.id, r.t AS rt FROM o JOIN d {WITHIN} JOIN r ON d.id = r.id AND r.t BETWEEN d.t - 1 AND d.t + 4",
    )
    limits = {name: str(kept) for name, kept in driver._engine.dataflow.retentions.items()}
    assert limits["o#on-time[id]"] == "t >= least(d.t - 10, r.t - 14)"
    assert limits["r#on-time[id]"] == "t >= least(o.t - 1, d.t - 1)"
    for name in "odr":
        driver.insert(name, *({"id": n, "t": n} for n in range(10)))
    assert len(changed(driver)) == 10
    for name in "odr":
        driver.watermark(name, 100)
    driver.step()
    assert sum(kept(driver).values()) == 0


@pytest.mark.parametrize(
    "condition", ["o.id = d.id", "o.id = d.id AND d.t >= o.t", "o.id = d.id AND (d.t = o.t OR d.t = o.t + 1)"]
)
def test_without_a_bound_for_each_input_everything_is_kept(condition: str) -> None:
    driver = flow(SOURCES, f"SELECT o.id FROM o JOIN d ON {condition}")
    assert driver._engine.dataflow.retentions == {}
    driver.insert("o", {"id": 1, "t": 1})
    driver.watermark("o", 100)
    driver.watermark("d", 100)
    driver.step()
    driver.insert("d", {"id": 1, "t": 1})
    assert len(changed(driver)) == 1, "and no row is late"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("o JOIN d ON o.id = d.id LEFT JOIN r ON r.t = o.t AND r.t = d.t", True),
        ("o JOIN d ON o.id = d.id LEFT ANTI JOIN r ON r.t = o.t AND r.t = d.t", True),
        ("o JOIN d ON o.id = d.id LEFT SEMI JOIN r ON r.t = o.t AND r.t = d.t", False),
        ("o JOIN d ON o.id = d.id JOIN r ON r.t = o.t AND r.t = d.t", False),
        ("o JOIN d ON o.id = d.id LEFT JOIN r ON r.t = o.t AND r.t = d.t WHERE r.id > 0 AND r.t >= o.t", False),
    ],
)
def test_the_condition_of_an_outer_join_bounds_what_it_pairs_and_nothing_else(query: str, wanted: bool) -> None:
    """That r.t would equal both says nothing of pairs of o and d that have no r."""
    driver = flow(SOURCES, f"SELECT o.id, o.t AS ot, d.t AS dt FROM {query}")
    driver.insert("o", {"id": 1, "t": 5})
    driver.step()
    for name in "odr":
        driver.watermark(name, 100)
    driver.step()
    driver.insert("d", {"id": 1, "t": 200})
    assert changed(driver) == ([(1, 5, 200, 1)] if wanted else [])
    assert any(relation.startswith("o") for relation in kept(driver)) == wanted, "nothing else bounds o and d"


def test_a_time_that_padding_lacks_bounds_nothing() -> None:
    """Deliveries of an order would tell how late it can be; there are none, as no time is both before and after."""
    never = "SELECT o.id, o.t AS ot, d.t AS dt FROM o LEFT JOIN d ON o.id = d.id AND d.t >= o.t AND d.t <= o.t - 1000"
    driver = flow(
        SOURCES, f"SELECT r.id, q.ot FROM r LEFT JOIN ({never}) q ON r.id = q.id AND q.ot BETWEEN r.t - 5 AND r.t + 5"
    )
    driver.insert("r", {"id": 1, "t": 100})
    assert changed(driver) == [(1, None, 1)]
    driver.watermark("o", 50)
    driver.watermark("d", 50)
    driver.step()
    driver.insert("o", {"id": 1, "t": 100})
    assert sorted(changed(driver), key=repr) == [(1, 100, 1), (1, None, -1)]


def test_a_source_says_what_becomes_of_late_rows() -> None:
    for policy in ("drop", "fail"):
        driver = Driver()
        driver.sql(SOURCES.replace("WATERMARK t)", f"WATERMARK t) OPTIONS (late '{policy}')", 1))
        driver.sql(f"CREATE VIEW v AS {INNER}")
        driver.watermark("o", 10)
        driver.step()
        driver.insert("o", {"id": 1, "t": 3})
        if policy == "drop":
            driver.step()
            assert driver.late("v") == []
        else:
            with pytest.raises(LateRow, match="a row of `o` is late"):
                driver.step()
            assert driver.epoch == 0
    with pytest.raises(InvalidSql):
        Driver().sql("CREATE STREAM x (id INT) OPTIONS (late 'maybe')")


def test_a_query_on_a_view_with_bounded_state_sees_all_of_its_rows() -> None:
    driver = flow(SOURCES, INNER)
    driver.insert("o", {"id": 1, "t": 5}, {"id": 2, "t": 6})
    driver.insert("d", {"id": 1, "t": 9})
    driver.step()
    for name in "od":
        driver.watermark(name, 100)
    driver.step()
    assert sum(kept(driver).values()) == 0
    assert driver.sql("SELECT count(*) AS n FROM v") == [{"n": 1}]
    assert driver.sql("SELECT id, dt FROM v WHERE dt > 3 ORDER BY id") == [{"id": 1, "dt": 9}]
    assert driver.sql("SELECT x.id FROM V x JOIN v y ON x.id = y.id") == [{"id": 1}]


def test_a_view_on_a_view_with_bounded_state_starts_with_all_of_its_rows() -> None:
    driver = flow(SOURCES, INNER)
    driver.insert("o", {"id": 1, "t": 5}, {"id": 2, "t": 6})
    driver.insert("d", {"id": 1, "t": 9})
    driver.step()
    for name in "odr":
        driver.watermark(name, 100)
    driver.step()
    driver.sql("CREATE VIEW n AS SELECT count(*) AS n, max(dt) AS latest FROM v")
    assert driver.table("n") == [{"n": 1, "latest": 9}]
    within = "v.id = r.id AND r.t BETWEEN v.dt AND v.dt + 50"
    driver.sql(f"CREATE VIEW w AS SELECT v.id, r.t AS rt FROM v JOIN r ON {within}")
    driver.insert("o", {"id": 3, "t": 110})
    driver.insert("d", {"id": 3, "t": 111})
    driver.insert("r", {"id": 3, "t": 120})
    changes = driver.step()
    assert changes["w"] == [({"id": 3, "rt": 120}, 1)]
    assert driver.table("n") == [{"n": 2, "latest": 111}]
    driver.restart(parallelism=2)
    for name in "odr":
        driver.watermark(name, 1000)
    driver.step()
    left = kept(driver)
    assert all(name.startswith("aggregate") for name in left), "the state of a join of a join is bounded too"


def test_rows_that_have_expired_are_in_a_query_and_in_a_new_view() -> None:
    driver = flow(SOURCES, INNER)
    driver.insert("o", {"id": 1, "t": 5}, {"id": 2, "t": 60})
    driver.step()
    assert sorted(row["id"] for row in driver.sql("SELECT id FROM o")) == [1, 2]
    driver.watermark("d", 50)
    driver.step()
    assert sorted(row["id"] for row in driver.sql("SELECT id FROM o")) == [1, 2]
    driver.sql("CREATE VIEW w AS SELECT id FROM o")
    driver.insert("o", {"id": 3, "t": 61})
    assert driver.step()["w"] == [({"id": 3}, 1)]
    assert sorted(row["id"] for row in driver.table("w")) == [1, 2, 3]


def test_a_source_of_a_view_with_pending_changes_and_unbounded_state_is_kept_whole() -> None:
    driver = flow(SOURCES, "SELECT o.id FROM o JOIN d ON o.id = d.id EMIT WHEN WATERMARK PAST o.t")
    driver.watermark("o", 50)
    driver.step()
    driver.insert("o", {"id": 1, "t": 5}, {"id": 2, "t": 60})
    driver.step()
    assert sorted(row["id"] for row in driver.sql("SELECT id FROM o")) == [1, 2], "the late one too"
