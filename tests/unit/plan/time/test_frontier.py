"""Frontiers: each rule of the docstring of `rejoinder.plan.time.frontier` on a small program."""

from __future__ import annotations

import pytest

from tests.unit.plan.time.plans import NEAR, NONE, UNION, frontier_text, frontier_value

JOIN = f"SELECT o.id, o.t AS ot, d.t AS dt FROM o JOIN d ON {NEAR}"
CHAIN = (
    "SELECT o.t AS ot, d.t AS dt, r.t AS rt FROM o JOIN d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 3"
    " JOIN r ON d.id = r.id AND r.t BETWEEN d.t AND d.t + 4"
)
WINDOWS = "SELECT TUMBLE(t, 10) AS w, count(*) AS n FROM o GROUP BY TUMBLE(t, 10)"


def test_rows_on_time_have_the_watermark_as_frontier() -> None:
    query = "SELECT DISTINCT id, t, x FROM o"
    assert frontier_text(query, "t") == "o.t"
    assert frontier_text(query, "x") is None and frontier_text(query, "id") is None


def test_a_view_that_keeps_nothing_takes_late_rows_and_has_no_frontier() -> None:
    assert frontier_text("SELECT t FROM o", "t") is None


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_a_column_of_a_join_is_bounded_by_its_own_input_and_by_the_rows_that_others_can_meet(kind: str) -> None:
    query = JOIN.replace("JOIN", f"{kind} JOIN")
    assert frontier_text(query, "ot") == "kept(o#on-time.t)"
    assert frontier_value(query, "ot", o=100, d=50) == 40, "a delivery of 50 meets an order of 40"
    assert frontier_value(query, "ot", o=30, d=50) == 30, "its own rows"
    assert frontier_value(query, "dt", o=100, d=50) == 50
    assert frontier_value(query, "dt", o=20, d=50) == 20, "an order of 20 meets a delivery of 20"
    assert frontier_value(query, "ot", o=100) == NONE, "without a watermark of d nothing is known"


def test_bounds_add_up_along_a_chain_of_joins() -> None:
    assert frontier_value(CHAIN, "ot", o=100, d=50, r=30) == 23, "a return of 30 reaches back 4 and 3"
    assert frontier_value(CHAIN, "dt", o=100, d=50, r=30) == 26
    assert frontier_value(CHAIN, "rt", o=100, d=50, r=30) == 30


@pytest.mark.parametrize("condition", ["o.id = d.id", "o.id = d.id AND d.t >= o.t", "o.id = d.id AND d.t = o.t + o.x"])
def test_without_a_bound_in_both_directions_a_join_has_no_frontier(condition: str) -> None:
    assert frontier_text(f"SELECT o.t AS ot FROM o JOIN d ON {condition}", "ot") is None


def test_a_column_of_a_union_is_bounded_by_the_branches_that_are_not_idle() -> None:
    assert frontier_text(f"SELECT t, count(*) AS n FROM {UNION} GROUP BY t", "t") == "merged(o.t, d.t)"


def test_branches_of_the_same_source_are_idle_together() -> None:
    union = "(SELECT t FROM o UNION ALL SELECT t - 1 AS t FROM o) AS q"
    query = f"SELECT t, count(*) AS n FROM {union} GROUP BY t"
    assert frontier_text(query, "t") == "least(o.t, o.t - 1)"
    assert frontier_value(query, "t", o=7) == 6


def test_a_union_with_a_branch_without_a_watermark_has_no_frontier() -> None:
    assert frontier_text("SELECT DISTINCT t FROM (SELECT t FROM o UNION ALL SELECT t FROM n) AS q", "t") is None


@pytest.mark.parametrize(
    ("value", "text", "at_17"),
    [("t + 5", "o.t - -5", 22), ("t - 5", "o.t - 5", 12), ("TUMBLE(t, 10)", "floor(o.t, 10)", 10)],
)
def test_a_monotone_value_has_the_frontier_of_its_column_with_the_same_steps(value: str, text: str, at_17: int) -> None:
    query = f"SELECT {value} AS y, count(*) AS n FROM o GROUP BY {value}"
    assert frontier_text(query, "y") == text
    assert frontier_value(query, "y", o=17) == at_17


@pytest.mark.parametrize("value", ["-t", "t % 10", "t + x"])
def test_a_value_that_is_not_monotone_has_no_frontier(value: str) -> None:
    assert frontier_text(f"SELECT {value} AS y, count(*) AS n FROM o GROUP BY {value}", "y") is None


def test_of_groups_only_keys_have_a_frontier() -> None:
    assert frontier_text("SELECT t, max(t) AS m FROM o GROUP BY t", "t") == "o.t"
    assert frontier_text("SELECT t, max(t) AS m FROM o GROUP BY t", "m") is None


def test_groups_of_a_join_have_the_frontier_of_the_join() -> None:
    query = f"SELECT TUMBLE(o.t, 10) AS w, count(*) AS n FROM o JOIN d ON {NEAR} GROUP BY TUMBLE(o.t, 10)"
    assert frontier_text(query, "w") == "floor(kept(o#on-time.t), 10)"
    assert frontier_value(query, "w", o=100, d=57) == 40
