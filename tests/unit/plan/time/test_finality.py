"""EMIT FINAL: from when on a row can no longer change, by the rules of `rejoinder.plan.time.finality`."""

from __future__ import annotations

import pytest

from rejoinder.errors import Unsupported
from tests.kit import changed, flow
from tests.unit.plan.time.plans import NEAR, SOURCES, gates, plan_of

LEFT = f"SELECT o.id, d.t FROM o LEFT JOIN d ON {NEAR} EMIT FINAL"
WINDOWS = "(SELECT TUMBLE(t, 10) AS w, count(*) AS n FROM {} GROUP BY 1)"


@pytest.mark.parametrize("kind", ["JOIN", "LEFT SEMI JOIN"])
def test_rows_of_an_inner_join_of_streams_are_final_at_once(kind: str) -> None:
    assert gates(f"SELECT o.id FROM o {kind} d ON {NEAR} EMIT FINAL") == []


@pytest.mark.parametrize(
    ("kind", "waits_for"),
    [("LEFT", ["d.t"]), ("LEFT ANTI", ["d.t"]), ("RIGHT", ["o.t"]), ("FULL", ["d.t", "o.t"])],
)
def test_a_row_without_a_match_waits_for_the_watermark_of_the_other_side(kind: str, waits_for: list[str]) -> None:
    side = "d" if kind == "RIGHT" else "o"
    query = f"SELECT {side}.id FROM o {kind} JOIN d ON {NEAR} EMIT FINAL"
    assert gates(query) == [(0, formula) for formula in waits_for]
    assert all(gate.awaits_match for gate in plan_of(query).program.gates)


def test_it_is_final_when_that_watermark_is_past_the_last_time_that_the_bounds_allow() -> None:
    driver = flow(SOURCES, LEFT)
    driver.insert("o", {"id": 1, "t": 5})
    driver.watermark("d", 15)
    assert changed(driver) == [], "a delivery of 15 would match"
    driver.watermark("d", 16)
    assert changed(driver) == [(1, None, 1)]


def test_a_row_whose_condition_excludes_matches_is_final_at_once() -> None:
    driver = flow(SOURCES, LEFT.replace("EMIT", "AND o.x > 0 EMIT"))
    driver.insert("o", {"id": 1, "t": 5, "x": 0}, {"id": 2, "t": 5, "x": 1})
    assert changed(driver) == [(1, None, 1)]


def test_of_several_bounds_a_row_waits_for_the_tightest() -> None:
    near = "o.id = r.id AND r.t BETWEEN o.t AND o.t + 10 AND r.u BETWEEN o.t AND o.t + 5"
    assert gates(f"SELECT o.id FROM o LEFT JOIN r ON {near} EMIT FINAL") == [(0, "r.u")]


def test_a_group_is_final_when_the_frontier_of_its_time_is_past() -> None:
    query = "SELECT TUMBLE(t, 10) AS w, count(*) AS n FROM o GROUP BY TUMBLE(t, 10) EMIT FINAL"
    assert gates(query) == [(0, "floor(o.t, 10) + 10 - 1")]
    driver = flow(SOURCES, query)
    driver.insert("o", {"id": 1, "t": 5})
    driver.watermark("o", 9)
    assert changed(driver) == []
    driver.watermark("o", 10)
    assert [row[1:] for row in changed(driver)] == [(1, 1)]


def test_a_row_of_a_full_join_waits_for_the_first_time_that_it_has() -> None:
    left, right = WINDOWS.format("o"), WINDOWS.format("d")
    query = f"SELECT l.n, r.n AS m FROM {left} AS l FULL JOIN {right} AS r USING (w) EMIT FINAL"
    emit_time = dict(plan_of(query).program.views["v"].outputs)["__emit_at"]
    assert emit_time.text.startswith("coalesce(") and len(emit_time.columns) == 2
    driver = flow(SOURCES, query)
    driver.insert("d", {"id": 1, "t": 5})
    driver.watermark("d", 10)
    assert changed(driver) == [], "a row of o could still come"
    driver.watermark("o", 10)
    assert changed(driver) == [(None, 1, 1)]


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("SELECT o.id FROM o LEFT JOIN d ON o.id = d.id", "needs a bound in time for each side of the join"),
        ("SELECT o.id FROM o LEFT JOIN d ON o.id = d.id AND d.t >= o.t", "needs a bound in time for each side"),
        ("SELECT id, count(*) AS n FROM o GROUP BY id", "would be kept forever"),
    ],
)
def test_a_query_whose_rows_are_never_final_is_refused(query: str, fact: str) -> None:
    with pytest.raises(Unsupported, match=fact) as raised:
        plan_of(f"{query} EMIT FINAL")
    assert raised.value.hint
