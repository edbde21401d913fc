"""Unions and joins of sources that may be idle: a union goes on without an idle branch, a join does not."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import LateRow
from rejoinder.testing import Driver
from tests.kit import at, changed, flow, kept

SOURCES = """
CREATE STREAM a (id INT, t BIGINT, WATERMARK t);
CREATE STREAM b (id INT, t BIGINT, WATERMARK t);
CREATE STREAM c (id INT, t BIGINT, WATERMARK t);
"""
UNION = "SELECT id, t FROM a UNION ALL SELECT id, t FROM b"
PAST = f"SELECT id, t FROM ({UNION}) AS q EMIT WHEN WATERMARK PAST t"
COUNTED = f"SELECT t, count(*) AS n FROM ({UNION}) AS q GROUP BY t EMIT WHEN WATERMARK PAST t"
JOINED = "SELECT b.id, b.t FROM b JOIN c ON b.id = c.id AND c.t BETWEEN b.t AND b.t + 10"
OVER_JOIN = (
    f"SELECT t, count(*) AS n FROM (SELECT id, t FROM a UNION ALL {JOINED}) AS q GROUP BY t EMIT WHEN WATERMARK PAST t"
)


def stepped(driver: Driver) -> list[tuple[Any, ...]]:
    """The rows emitted in a step; a crash after it has no effect."""
    changes = changed(driver)
    driver.restart(parallelism=1 + driver.epoch % 3)
    return changes


def late(driver: Driver) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:5] for row in driver.late("v")]


@pytest.mark.parametrize("query", [PAST, COUNTED])
def test_a_union_goes_on_without_an_idle_branch(query: str) -> None:
    driver = flow(SOURCES, query)
    driver.insert("a", {"id": 1, "t": 1})
    driver.watermark("a", 5)
    assert stepped(driver) == [], "b has said nothing"
    driver.idle("b")
    assert len(stepped(driver)) == 1
    driver.insert("a", {"id": 2, "t": 6})
    driver.watermark("a", 9)
    assert len(stepped(driver)) == 1, "directly from a"


@pytest.mark.parametrize("query", [PAST, COUNTED])
def test_rows_of_a_returning_branch_below_the_watermark_are_late_for_the_union(query: str) -> None:
    driver = flow(SOURCES, query)
    driver.insert("a", {"id": 1, "t": 4})
    driver.insert("b", {"id": 2, "t": 3})
    driver.watermark("a", 8)
    driver.idle("b")
    assert len(stepped(driver)) == 2
    driver.insert("b", {"id": 3, "t": 4}, {"id": 4, "t": 8})
    assert stepped(driver) == [], "no result is changed that was final"
    assert late(driver) == [("b", '{"id":3,"t":4}', "t", "8", 4)] and driver._engine.version.watermarks.late == {
        "v": {"b": 1}
    }
    driver.watermark("a", 20)
    assert stepped(driver) == [], "b is back, and holds"
    driver.watermark("b", 5)
    assert stepped(driver) == [], "nothing goes back"
    driver.watermark("b", 9)
    assert len(stepped(driver)) == 1, "b's row at 8"
    assert driver.table("v") == sorted(driver.table("v"), key=str)


def test_a_union_of_idle_branches_stays_where_it_is() -> None:
    driver = flow(SOURCES, PAST)
    driver.watermark("a", 5)
    driver.watermark("b", 7)
    driver.insert("b", {"id": 1, "t": 5})
    assert stepped(driver) == []
    driver.idle("a")
    driver.idle("b")
    assert stepped(driver) == [], "no branch is active"
    driver.watermark("b", 8)
    assert stepped(driver) == [(1, 5, 1)]


def test_a_join_whose_sources_are_all_idle_is_an_idle_branch() -> None:
    """The merge of the document: aggr over merge over (join of scans, scan)."""
    driver = flow(SOURCES, OVER_JOIN)
    driver.insert("a", {"id": 1, "t": 3})
    driver.watermark("a", 10)
    assert stepped(driver) == []
    driver.idle("b")
    assert stepped(driver) == [], "the join has another source"
    driver.idle("c")
    assert stepped(driver) == [(3, 1, 1)]
    driver.insert("a", {"id": 2, "t": 15})
    driver.watermark("a", 20)
    assert stepped(driver) == [(15, 1, 1)], "directly from a"
    driver.insert("b", {"id": 7, "t": 12})
    driver.insert("c", {"id": 7, "t": 14}, {"id": 8, "t": 25})
    driver.insert("b", {"id": 8, "t": 24})
    assert stepped(driver) == []
    assert [(row[0], row[1], row[4]) for row in late(driver)] == [("b, c", '{"id":7,"t":12}', 8)]
    for name in "abc":
        driver.watermark(name, 50)
    assert stepped(driver) == [(24, 1, 1)]


def test_an_idle_side_blocks_a_join_and_rows_of_the_other_are_kept() -> None:
    """The join of the document: its outer join gets nothing from an inner one whose sources are idle."""
    driver = flow(
        SOURCES, f"SELECT j.id, a.t FROM ({JOINED}) AS j JOIN a ON j.id = a.id AND a.t BETWEEN j.t - 5 AND j.t + 5"
    )
    driver.insert("a", {"id": 1, "t": 5})
    driver.idle("b")
    driver.idle("c")
    driver.watermark("a", 50)
    assert stepped(driver) == [] and kept(driver)["a#on-time"] == 1
    driver.insert("a", {"id": 2, "t": 60})
    driver.watermark("a", 100)
    assert stepped(driver) == [] and kept(driver)["a#on-time"] == 2, "for ever, until the others go on"
    driver.insert("b", {"id": 1, "t": 6})
    driver.insert("c", {"id": 1, "t": 7})
    assert stepped(driver) == [(1, 5, 1)], "the side that comes back finds them"
    driver.watermark("b", 200)
    driver.watermark("c", 200)
    assert stepped(driver) == [] and kept(driver)["a#on-time"] == 0


def test_state_above_a_union_expires_without_the_idle_branch() -> None:
    driver = flow(
        SOURCES, f"SELECT q.id, c.t FROM ({UNION}) AS q JOIN c ON q.id = c.id AND c.t BETWEEN q.t - 5 AND q.t + 5"
    )
    limits = {str(retention) for retention in driver._engine.dataflow.retentions.values()}
    assert any("merged(a.t, b.t)" in limit for limit in limits), limits
    driver.insert("c", *({"id": n, "t": n} for n in range(10)))
    driver.watermark("c", 10)
    stepped(driver)
    assert kept(driver)["c#on-time"] == 10
    driver.idle("b")
    driver.watermark("a", 100)
    stepped(driver)
    assert kept(driver)["c#on-time"] == 0
    driver.insert("b", {"id": 3, "t": 3})
    assert stepped(driver) == [] and late(driver) == [("b", '{"id":3,"t":3}', "t", "100", 97)]


def test_unions_of_unions() -> None:
    driver = flow(SOURCES, f"SELECT id, t FROM ({UNION} UNION ALL SELECT id, t FROM c) AS q EMIT WHEN WATERMARK PAST t")
    driver.insert("c", {"id": 1, "t": 1})
    driver.watermark("c", 10)
    driver.watermark("a", 3)
    assert stepped(driver) == []
    driver.idle("b")
    assert stepped(driver) == [(1, 1, 1)]
    driver.idle("a")
    driver.insert("c", {"id": 2, "t": 11})
    driver.watermark("c", 12)
    assert stepped(driver) == [(2, 11, 1)], "both branches below are idle"


def test_where_late_changes_cannot_be_recognized_a_union_waits_for_all() -> None:
    union = "SELECT id, t AS x FROM a UNION ALL SELECT id, abs(t) AS x FROM b"
    driver = flow(SOURCES, f"SELECT id, x FROM ({union}) AS q EMIT WHEN WATERMARK PAST x")
    driver.insert("a", {"id": 1, "t": 1})
    driver.watermark("a", 10)
    driver.idle("b")
    assert stepped(driver) == [], "x of b is not an event time"
    driver.watermark("b", 10)
    assert stepped(driver) == [(1, 1, 1)]


def test_branches_of_the_same_sources_are_idle_together() -> None:
    driver = flow(
        SOURCES, "SELECT b.id, b.t, c.t AS u FROM b LEFT JOIN c ON b.id = c.id AND c.t BETWEEN b.t AND b.t + 10"
    )
    assert "merged" not in "".join(map(str, driver._engine.dataflow.retentions.values()))


def test_the_policy_of_late_rows_holds_for_unions() -> None:
    for policy in ("drop", "fail"):
        late = f"WATERMARK t) OPTIONS (late '{policy}');\nCREATE STREAM c"
        driver = flow(SOURCES.replace("WATERMARK t);\nCREATE STREAM c", late), PAST)
        driver.watermark("a", 8)
        driver.idle("b")
        driver.step()
        driver.insert("b", {"id": 1, "t": 4})
        if policy == "drop":
            driver.step()
            assert driver.late("v") == [] and driver._engine.version.watermarks.late == {"v": {"b": 1}}
        else:
            with pytest.raises(LateRow, match="a row of `b` is late"):
                driver.step()


def test_a_view_that_is_made_later_starts_at_what_is_known() -> None:
    driver = flow(SOURCES, PAST)
    driver.insert("a", {"id": 1, "t": 1}, {"id": 2, "t": 30})
    driver.watermark("a", 20)
    driver.idle("b")
    driver.step()
    driver.sql(f"CREATE VIEW w AS {COUNTED}")
    assert driver.table("w") == [{"t": 1, "n": 1}]
    driver.restart()
    driver.watermark("a", 31)
    assert driver.step()["w"] == [({"t": 30, "n": 1}, 1)], "once"
    driver.sql("DROP VIEW v")
    assert set(driver._engine.version.watermarks.persisted.values()) == {31}


def test_the_watermark_of_a_later_view_is_not_above_what_it_keeps() -> None:
    driver = flow(SOURCES.replace("BIGINT", "TIMESTAMP"), PAST)
    driver.insert("a", {"id": 1, "t": at(20)})
    driver.watermark("a", at(50))
    driver.idle("b")
    driver.step()
    driver.watermark("b", at(10))
    driver.step()
    later = UNION.replace("t FROM", "t + INTERVAL 1 MINUTE AS t FROM")
    driver.sql(f"CREATE VIEW w AS SELECT t, count(*) AS n FROM ({later}) AS q GROUP BY t EMIT WHEN WATERMARK PAST t")
    driver.restart()
    driver.insert("b", {"id": 2, "t": at(20)})
    changes = driver.step()
    assert (changes["v"], changes["w"], driver.table("w")) == ([], [], []), "late for v, which has gone on; not for w"
    assert len(driver.late("v")) == 1 and driver.late("w") == []
    driver.watermark("b", at(30))
    assert driver.step()["w"] == [({"t": at(21), "n": 2}, 1)]
