"""Retention: how long the rows of an arrangement are kept, for one user and for several that share it."""

from __future__ import annotations

import pytest

from rejoinder.errors import Unsupported
from tests.unit.plan.time.plans import NEAR, UNION, bounds, plan_of

INNER = f"SELECT o.id, o.t AS ot FROM o JOIN d ON {NEAR}"
WIDER = INNER.replace("+ 10", "+ 50")
ANY = "SELECT o.id FROM o JOIN d ON o.id = d.id"


def test_a_row_is_kept_while_a_change_of_the_other_side_can_meet_it() -> None:
    assert bounds(INNER) == {"o#on-time[id]": "t >= d.t - 10", "d#on-time[id]": "t >= o.t"}


@pytest.mark.parametrize("kind", ["LEFT", "LEFT ANTI"])
def test_the_side_without_padding_is_also_kept_for_its_own_changes(kind: str) -> None:
    """A delivery that comes or goes asks which of the order's other deliveries are there."""
    query = f"SELECT o.id FROM o {kind} JOIN d ON {NEAR}"
    assert bounds(query) == {"o#on-time[id]": "t >= d.t - 10", "d#on-time[id]": "t >= least(o.t, d.t - 10)"}


def test_both_sides_of_a_full_join_are_kept_for_their_own_changes() -> None:
    found = bounds(f"SELECT o.id FROM o FULL JOIN d ON {NEAR}")
    assert found == {"o#on-time[id]": "t >= least(d.t - 10, o.t - 10)", "d#on-time[id]": "t >= least(o.t, d.t - 10)"}


def test_of_several_bounds_of_one_user_one_is_enough() -> None:
    near = "r.t BETWEEN o.t AND o.t + 10 AND r.u BETWEEN o.t AND o.t + 5"
    found = bounds(f"SELECT o.id FROM o JOIN r ON o.id = r.id AND {near}")
    assert found["o#on-time[id]"] == "t >= greatest(r.t - 10, r.u - 5)", "the later of both"
    assert found["r#on-time[id]"] == "t >= o.t and u >= o.t", "a row has to satisfy both"


def test_users_that_share_an_arrangement_keep_what_either_needs() -> None:
    found = bounds(INNER, WIDER)
    assert found == {"o#on-time[id]": "t >= least(d.t - 10, d.t - 50)", "d#on-time[id]": "t >= o.t"}


def test_a_user_that_may_ask_for_any_row_reads_an_arrangement_that_keeps_all() -> None:
    assert bounds(ANY) == {}
    assert bounds(INNER, ANY) == bounds(INNER), "it reads late rows too, so it does not share"


@pytest.mark.parametrize(
    "condition",
    ["d.t >= o.t", "d.t <= o.t + 10", "d.t BETWEEN o.t AND o.t + o.x", "(d.t = o.t OR d.id = 1)", "d.t = o.x"],
)
def test_without_a_constant_bound_in_both_directions_all_rows_are_kept(condition: str) -> None:
    assert bounds(f"SELECT o.id FROM o JOIN d ON o.id = d.id AND {condition}") == {}


def test_rows_of_a_table_are_kept_whatever_their_time() -> None:
    assert bounds("SELECT o.id FROM o JOIN p ON o.id = p.id AND p.t BETWEEN o.t AND o.t + 10") == {}


def test_groups_are_kept_while_their_key_can_change() -> None:
    assert bounds("SELECT t, count(*) AS n FROM o GROUP BY t") == {"aggregate[c0 or NULL]": "c0 >= o.t"}
    assert bounds(f"SELECT t, count(*) AS n FROM {UNION} GROUP BY t") == {
        "aggregate[c0 or NULL]": "c0 >= merged(o.t, d.t)"
    }
    assert bounds("SELECT id, max(t) AS m FROM o GROUP BY id") == {}, "the value of a group bounds nothing"


def test_rows_of_distinct_are_kept_while_their_time_can_change() -> None:
    assert list(bounds("SELECT DISTINCT id, t FROM o").values()) == ["c1 >= o.t"]


def test_rows_that_no_user_asks_for_are_not_kept() -> None:
    def condition(*queries: str) -> str | None:
        retention = plan_of(*queries).dataflow.retentions["o#on-time[id]"]
        return None if retention.condition is None else retention.condition.text

    one, two = f"{INNER} AND o.x > 3", f"{INNER} AND o.x < 0"
    assert "3" in str(condition(one)) and "0" not in str(condition(one)).replace("10", "")
    assert " OR " in str(condition(one, two)), "what either asks for"
    assert condition(one, INNER) is None, "one user asks for all"
    assert condition(f"{INNER} AND 1 / o.x > 3") is None, "a condition that can fail is asked of pairs alone"


def test_a_time_that_may_be_null_keeps_rows_with_null() -> None:
    def keeps_nulls(query: str) -> list[bool]:
        found = plan_of(query).dataflow.retentions
        return [limit.keeps_nulls for name, each in found.items() if "distinct" in name for limit in each.bounds]

    assert keeps_nulls("SELECT DISTINCT t FROM o") == [False], "rows on time have an event time"
    assert keeps_nulls(f"SELECT DISTINCT d.t FROM o JOIN d ON {NEAR}") == [False]
    assert keeps_nulls(f"SELECT DISTINCT o.t, d.t AS u FROM o LEFT JOIN d ON {NEAR}") == [False, True], "padding"
    assert bounds(f"SELECT DISTINCT d.t FROM o LEFT JOIN d ON {NEAR}") == {}, "NULL would be kept forever"


def test_a_final_view_that_would_keep_rows_forever_is_refused() -> None:
    with pytest.raises(Unsupported, match="rows of the aggregate would be kept forever"):
        plan_of("SELECT id, count(*) AS n FROM o GROUP BY id EMIT FINAL")
