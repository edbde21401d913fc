"""A scalar subquery with several rows: it fails the epoch of an outer row that asks for it, and only then."""

from __future__ import annotations

import pytest

from rejoinder.errors import SeveralRows
from tests.kit import flow, rows

SOURCES = ("CREATE CHANGELOG a (k INT, x INT)", "CREATE CHANGELOG b (k INT, y INT)")
QUERIES = {
    "linked": "SELECT k, (SELECT y FROM b WHERE b.k = a.k) AS y FROM a",
    "by an order": "SELECT k, (SELECT y FROM b WHERE b.k >= a.k AND b.k <= a.k) AS y FROM a",
    "in a condition": "SELECT k, x AS y FROM a WHERE x = (SELECT y FROM b WHERE b.k = a.k)",
    "not linked": "SELECT k, (SELECT y FROM b) AS y FROM a",
}


@pytest.mark.parametrize("form", QUERIES)
@pytest.mark.parametrize("parallelism", [1, 7])
def test_the_epoch_fails_nothing_is_committed_and_the_flow_continues(form: str, parallelism: int) -> None:
    driver = flow(*SOURCES, QUERIES[form], parallelism=parallelism)
    driver.insert("b", {"k": 1, "y": 5}, {"k": 1, "y": 5})
    driver.step()  # no outer row asks for it
    before = driver.epoch
    driver.insert("a", {"k": 1, "x": 5})
    with pytest.raises(SeveralRows) as raised:
        driver.step()
    assert raised.value.code == "RJ302"
    assert raised.value.fact == "a scalar subquery has more than one row"
    assert "SELECT y FROM b" in str(raised.value.detail) and raised.value.hint
    is_linked = form != "not linked"
    assert str(raised.value.detail).endswith(", for a value of a.k") == is_linked
    assert raised.value.values == ("a.k = 1" if is_linked else None)
    assert driver.epoch == before
    driver.delete("b", {"k": 1, "y": 5})
    driver.insert("a", {"k": 1, "x": 5})
    driver.step()
    assert rows(driver) == [(1, 5)]


def test_the_key_has_each_outer_column_and_its_value_is_shown_on_request() -> None:
    query = "SELECT k, 1 + (SELECT y FROM b WHERE b.k = o.k AND o.x < b.y + o.x) AS y FROM a AS o"
    for shown in (False, True):
        driver = flow(*SOURCES, query, show_values=shown)
        driver.insert("b", {"k": 1, "y": 5}, {"k": 1, "y": 6}, {"k": 2, "y": 7})
        driver.insert("a", {"k": 2, "x": 770}, {"k": 1, "x": 880})
        with pytest.raises(SeveralRows) as raised:
            driver.step()
        assert "for a value of o.k, o.x\n" in str(raised.value)
        assert ("Values: o.k = 1, o.x = 880" in str(raised.value)) == shown
        assert ("880" in str(raised.value)) == shown


def test_a_subquery_in_a_subquery_names_the_key_of_its_own_outer_row() -> None:
    query = "SELECT k FROM a WHERE x = (SELECT sum((SELECT c.y FROM b AS c WHERE c.k = b.y)) FROM b WHERE b.k = a.k)"
    driver = flow(*SOURCES, query)
    driver.insert("b", {"k": 1, "y": 5}, {"k": 5, "y": 6}, {"k": 5, "y": 7})
    driver.insert("a", {"k": 1, "x": 0})
    with pytest.raises(SeveralRows) as raised:
        driver.step()
    assert raised.value.values == "b.y = 5"


def test_rows_that_cancel_each_other_in_one_epoch_are_no_error() -> None:
    driver = flow(*SOURCES, QUERIES["linked"])
    driver.insert("b", {"k": 1, "y": 5})
    driver.insert("a", {"k": 1, "x": 0})
    driver.step()
    driver.delete("b", {"k": 1, "y": 5})
    driver.insert("b", {"k": 1, "y": 6})
    driver.step()
    assert rows(driver) == [(1, 6)]


def test_a_value_that_case_does_not_evaluate_does_not_fail() -> None:
    query = "SELECT k, CASE WHEN x > 0 THEN (SELECT y FROM b WHERE b.k = a.k) END AS y FROM a"
    driver = flow(*SOURCES, query)
    driver.insert("b", {"k": 1, "y": 5}, {"k": 1, "y": 6})
    driver.insert("a", {"k": 1, "x": 0}, {"k": 2, "x": 1})
    driver.step()
    assert rows(driver) == [(1, None), (2, None)]


def test_an_expression_of_a_subquery_fails_only_for_values_that_an_outer_row_has() -> None:
    driver = flow(*SOURCES, "SELECT k, (SELECT sum(10 DIV y) FROM b WHERE b.k = a.k) AS s FROM a")
    driver.insert("b", {"k": 1, "y": 5}, {"k": 2, "y": 0})
    driver.insert("a", {"k": 1, "x": 0})
    driver.step()
    assert rows(driver) == [(1, 2)]
