"""What all arms of an OR have in common, and what they say about one relation alone."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from rejoinder.sql.bind.conjuncts import conjuncts
from tests.unit.sql.trees import tree


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a AND (b AND c)", ["a", "b", "c"]),
        ("a OR b", ["a OR b"]),
        ("(a AND b) OR (a AND c)", ["a", "b OR c"]),
        ("(x = y AND b) OR (c AND y = x)", ["x = y", "b OR c"]),
        ("(a AND b) OR a", ["a"]),
        ("(a AND b AND c) OR (c AND b AND d) OR (b AND c)", ["b", "c"]),
        ("(a AND (b AND c)) OR ((a AND d) OR (a AND e))", ["a", "(b AND c) OR d OR e"]),
        ("NOT (a AND b) OR c", ["NOT (a AND b) OR c"]),
    ],
)
def test_what_all_arms_have_in_common_holds_on_its_own(condition: str, expected: list[str]) -> None:
    node = parse_one(condition, dialect="spark")
    assert isinstance(node, exp.Expr)
    assert [part.sql(dialect="spark") for part in conjuncts(node)] == expected


def test_an_equality_in_every_arm_links_the_join() -> None:
    text = tree("SELECT a.x FROM a, c WHERE (a.k = c.k AND x = 1) OR (c.k = a.k AND z = 2)")
    assert text == ("inner(a, c | )[(a.k = c.K) & (((a.x = CAST(1 AS INTEGER))) OR ((c.z = CAST(2 AS INTEGER))))]")


def test_what_all_arms_say_about_one_relation_is_a_filter_of_it() -> None:
    text = tree("SELECT a.x FROM a, c WHERE a.k = c.k AND ((x = 1 AND z = 2) OR (x = 3 AND z = 4))")
    assert text.endswith(
        "& (((a.x = CAST(1 AS INTEGER))) OR ((a.x = CAST(3 AS INTEGER))))"
        " & (((c.z = CAST(2 AS INTEGER))) OR ((c.z = CAST(4 AS INTEGER))))]"
    )


def test_conditions_that_can_fail_stay_where_they_are() -> None:
    text = tree("SELECT a.x FROM a, c WHERE a.k = c.k AND ((1 / x = 1 AND z = 2) OR (1 / x = 3 AND z = 4))")
    assert text.count("/") == 2
