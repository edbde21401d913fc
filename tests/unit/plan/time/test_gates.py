"""Gates: what the changes of a view wait for, by the rules of `rejoinder.plan.time.gates`."""

from __future__ import annotations

import pytest

from rejoinder.errors import InvalidSql
from tests.unit.plan.time.plans import NEAR, UNION, gates, plan_of

PAST = "EMIT WHEN WATERMARK PAST"


def test_a_view_without_emit_has_no_gate() -> None:
    assert gates("SELECT id FROM o") == []


def test_emit_every_waits_for_the_clock() -> None:
    assert gates("SELECT id FROM o EMIT EVERY INTERVAL 10 SECONDS") == [(10_000_000, None)]


@pytest.mark.parametrize("value", ["t", "t + 5"])
def test_a_row_waits_for_the_watermark_of_the_column_of_its_release(value: str) -> None:
    assert gates(f"SELECT id, {value} AS y FROM o {PAST} y") == [(0, "o.t")]


def test_a_group_waits_for_the_watermark_of_the_column_of_its_window() -> None:
    query = "SELECT TUMBLE(t, 10) AS w, count(*) AS n FROM o GROUP BY TUMBLE(t, 10)"
    assert gates(f"{query} {PAST} WINDOW_END(w)") == [(0, "o.t")]


def test_a_row_of_a_join_waits_for_the_other_inputs_too() -> None:
    assert gates(f"SELECT o.id FROM o JOIN d ON {NEAR} {PAST} o.t") == [(0, "least(o.t, d.t)")]


def test_of_another_input_the_columns_count_that_are_compared_with_the_release() -> None:
    near = "o.id = r.id AND r.t BETWEEN o.t AND o.t + 10"
    assert gates(f"SELECT o.id FROM o JOIN r ON {near} {PAST} o.t") == [(0, "least(o.t, r.t)")]


def test_of_another_input_without_a_comparison_all_event_times_count() -> None:
    assert gates(f"SELECT o.id FROM o JOIN r ON o.id = r.id {PAST} o.t") == [(0, "least(o.t, least(r.t, r.u))")]


def test_an_input_without_a_watermark_is_not_waited_for() -> None:
    assert gates(f"SELECT o.id FROM o JOIN p ON o.id = p.id {PAST} o.t") == [(0, "o.t")]


def test_a_union_does_not_wait_for_an_idle_branch() -> None:
    assert gates(f"SELECT t FROM {UNION} {PAST} t") == [(0, "merged(o.t, d.t)")]


def test_a_union_waits_for_idle_branches_if_late_rows_could_not_be_recognized() -> None:
    union = "(SELECT t FROM o UNION ALL SELECT abs(t) AS t FROM d) AS q"
    assert gates(f"SELECT t FROM {union} {PAST} t") == [(0, "least(o.t, d.t)")], "abs(t) is not monotone"


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        (f"SELECT id FROM n {PAST} t", "waits for a watermark of `n`.`t`, and none is declared"),
        (f"SELECT id FROM o {PAST} 5", "names no event-time column"),
        (f"SELECT o.id FROM o LEFT JOIN d ON {NEAR} {PAST} d.t", "that rows without a match do not have"),
    ],
)
def test_a_release_without_a_watermark_is_refused(query: str, fact: str) -> None:
    with pytest.raises(InvalidSql, match=fact) as raised:
        plan_of(query)
    assert raised.value.hint
