"""Faults that a random test or a reader found, shrunk: each stays here, named after what went wrong."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest

from tests.oracle.model import Change, SourceSpec
from tests.oracle.scenario import Action, CreateView, DropView, Epoch, Restart, Scenario, Select, Statement, play, rows
from tests.oracle.values import KINDS, Kind

KIND = {kind.sql: kind for kind in KINDS}
INT, TEXT, DOUBLE = KIND["INT"], KIND["STRING"], KIND["DOUBLE"]


def changelog(name: str, **columns: Kind) -> SourceSpec:
    return SourceSpec(name, "CHANGELOG", columns)


def check(sources: tuple[SourceSpec, ...], *actions: Action, parallelism: int = 1, history: int = 10_000) -> None:
    play(Scenario(sources, actions, parallelism, history))


A, B = changelog("a", k=INT, x=INT), changelog("b", k=INT, y=INT)
BOTH = Epoch((Change("a", {"k": 1, "x": 1}), Change("b", {"k": 1, "y": 1})))


@pytest.mark.parametrize("query", ["SELECT DISTINCT k FROM a", "SELECT k FROM a UNION SELECT k FROM a"])
def test_a_view_hydrates_from_a_distinct_that_is_kept_already(query: str) -> None:
    joined = f"SELECT b.k FROM b JOIN ({query}) q ON b.k = q.k"
    check((A, B), CreateView("v", query), BOTH, CreateView("w", joined), CreateView("u", query), BOTH)


def test_an_index_on_a_view_that_has_rows_is_filled() -> None:
    index = Statement("CREATE INDEX i ON v (k)")
    joined = CreateView("w", "SELECT b.k FROM b JOIN v ON b.k = v.k")
    check((A, B), CreateView("v", "SELECT k FROM a"), BOTH, index, joined, BOTH, Statement("DROP INDEX i"), BOTH)


def test_a_distinct_of_an_indexed_view_can_be_planned() -> None:
    index = Statement("CREATE INDEX i ON v (k)")
    check((A,), CreateView("v", "SELECT k FROM a"), index, CreateView("w", "SELECT DISTINCT k FROM v"), rows("a"))


def test_the_last_arrangement_of_a_source_hands_its_rows_on_when_it_is_dropped() -> None:
    join, alone = CreateView("v", "SELECT a.k FROM a JOIN b ON a.k = b.k"), CreateView("w", "SELECT k FROM a")
    gone = Epoch((Change("a", {"k": 1, "x": 1}, -1),))
    check((A, B), alone, join, BOTH, DropView("v"), join, gone)


def test_rows_that_came_before_any_view_count() -> None:
    check((A, B), BOTH, CreateView("v", "SELECT a.k FROM a JOIN b ON a.k = b.k"), Select("SELECT k FROM b"), BOTH)


def test_keys_that_differ_in_a_quote_only_are_different_keys() -> None:
    a, b = changelog("a", s=TEXT), changelog("b", s=TEXT)
    quote = CreateView("v", """SELECT a.s FROM a JOIN b ON COALESCE(a.s, '"') = b.s""")
    empty = CreateView("w", "SELECT a.s FROM a JOIN b ON COALESCE(a.s, '') = b.s")
    check((a, b), quote, empty, rows("a", {"s": None}), rows("b", {"s": '"'}), rows("b", {"s": ""}))


def test_a_restart_keeps_the_plan_whatever_the_statistics_say() -> None:
    a, b, c = changelog("a", x=INT, z=INT), changelog("b", x=INT, y=INT), changelog("c", y=INT, z=INT)
    cycle = CreateView("v", "SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y AND c.z = a.z")
    filled = Epoch(
        tuple(Change("b", {"x": 1, "y": y}) for y in range(9)) + tuple(Change("c", {"y": y, "z": y}) for y in range(9))
    )
    check((a, b, c), cycle, filled, rows("a", {"x": 1, "z": 3}), Restart(1), rows("a", {"x": 1, "z": 4}))


@pytest.mark.parametrize("kind", [kind.sql for kind in KINDS])
def test_the_order_column_of_a_table_may_have_any_type(kind: str) -> None:
    table = SourceSpec("t", "TABLE", {"k": INT, "o": KIND[kind]}, ("k",), "o")
    values = [*KIND[kind].values, None]
    one_each = [rows("t", {"k": 1, "o": value}) for value in (*values, *reversed(values))]
    together = rows("t", *({"k": 2, "o": value} for value in values))
    check((table,), CreateView("v", "SELECT k, o FROM t"), *one_each, together)


def test_a_tombstone_without_order_takes_out_what_is_there() -> None:
    table = SourceSpec("t", "TABLE", {"k": INT, "o": INT}, ("k",), "o")

    def tombstone(order: Any = None) -> Change:
        return Change("t", {"k": 1, "o": order}, -1)

    def row(order: int) -> Change:
        return Change("t", {"k": 1, "o": order})

    epochs = [(row(5),), (tombstone(3),), (tombstone(),), (row(4), tombstone(), row(3)), (row(6), tombstone(), row(6))]
    check((table,), CreateView("v", "SELECT k, o FROM t"), *(Epoch(changes) for changes in epochs))


@pytest.mark.parametrize("history", [0, 1, 2])
def test_the_changes_of_an_epoch_are_its_own_however_short_the_history(history: int) -> None:
    epochs = [rows("a", {"k": k, "x": 0}) for k in range(40)]
    check((A,), CreateView("v", "SELECT k FROM a"), *epochs, history=history)


def test_a_join_in_parentheses_is_a_join() -> None:
    c = changelog("c", k=INT, z=INT)
    view = CreateView("v", "SELECT a.k FROM a JOIN (b JOIN c ON b.y = c.k) ON a.k = b.k")
    check((A, B, c), view, BOTH, rows("c", {"k": 1, "z": 1}))


def test_rows_that_match_nothing_are_not_sent() -> None:
    view = CreateView("v", "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN b r ON b.y = r.k")
    nothing = Epoch((Change("a", {"k": None, "x": 0}), Change("b", {"k": 1, "y": None})))
    for parallelism in (1, 2):
        check((A, B), view, nothing, BOTH, parallelism=parallelism)


def test_a_union_brings_text_and_numbers_together_as_spark_does() -> None:
    a, b = changelog("a", k=INT), changelog("b", k=Kind("STRING", "text", ()))
    view = CreateView("v", "SELECT k FROM a UNION ALL SELECT k FROM b", duckdb="SELECT k FROM a UNION ALL "
                      "SELECT CAST(TRIM(k) AS BIGINT) FROM b")  # fmt: skip
    check((a, b), view, Epoch((Change("a", {"k": 1}), Change("b", {"k": " 2 "}))))


def test_floats_meet_whatever_lies_under_a_null() -> None:
    a, b = changelog("a", k=KIND["FLOAT"], d=KIND["DATE"]), changelog("b", k=DOUBLE)
    view = CreateView("v", "SELECT a.d FROM a JOIN b ON a.k = b.k")
    some = [{"k": k, "d": date(2024, 1, 1)} for k in (None, -0.0, math.nan, math.inf, None)]
    check((a, b), view, rows("a", *some), rows("b", {"k": None}, {"k": 0.0}, {"k": math.nan}), parallelism=2)


@pytest.mark.parametrize("third", ["JOIN c", "LEFT JOIN c"])
def test_a_change_above_an_outer_join_asks_for_its_condition_on_pairs(third: str) -> None:
    c = changelog("c", k=INT, z=INT)
    view = CreateView("v", f"SELECT a.k, b.y, c.z FROM a LEFT JOIN b ON b.k = a.k AND b.y > a.x {third} ON b.k = c.k")
    no_partner = Epoch((Change("a", {"k": 1, "x": 5}), Change("b", {"k": 1, "y": 0})))
    check((A, B, c), view, no_partner, rows("c", {"k": 1, "z": 1}), BOTH, rows("b", {"k": 1, "y": 9}))


@pytest.mark.parametrize("third", ["LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_a_column_that_a_padded_side_computes_is_asked_for_above_it(third: str) -> None:
    """A path from the third input looks the padded one up by key, and has to say that its rows are not padding."""
    c = changelog("c", k=INT, z=INT)
    padded = "a LEFT JOIN (SELECT k, y + 1 AS y FROM b) b ON a.k = b.k"
    view = CreateView("v", f"SELECT a.k FROM {padded} {third} c ON b.k = c.k AND (b.y IS NULL OR b.y = 2)")
    third_rows = rows("c", {"k": 1, "z": 1}, {"k": 2, "z": 1})
    check((A, B, c), view, BOTH, rows("b", {"k": 2, "y": None}), rows("a", {"k": 2, "x": 0}), third_rows)
    check((A, B, c), view, third_rows, rows("b", {"k": 1, "y": 1}), BOTH)


def test_a_query_without_from_follows_its_subquery_and_leaves_other_views_alone() -> None:
    check(
        (A,),
        rows("a", {"k": 1, "x": 1}, {"k": 1, "x": 2}),
        CreateView("v", "SELECT (SELECT max(x) FROM a) AS m"),
        CreateView("w", "SELECT count(*) AS n FROM a"),
        rows("a", {"k": 1, "x": 3}),
        Restart(2),
        Epoch((Change("a", {"k": 1, "x": 3}, -1),)),
    )
