"""Equality of STRUCT and ARRAY in ON and WHERE: NULL inside equals NULL, as in Spark; NULL itself equals nothing."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import TypeMismatch, Unsupported
from rejoinder.testing import Driver

_LEFT: list[Any] = [{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": None, "y": None}, None, {"x": 2, "y": "b"}]
_RIGHT: list[Any] = [{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": None, "y": None}, None, {"x": 3, "y": "b"}]
_LISTS: list[Any] = [[1, None], [1], [], None, [2, 3]]


def _driver() -> Driver:
    driver = Driver(parallelism=2)
    driver.sql(
        "CREATE STREAM a (s STRUCT<x: INT, y: STRING>, l ARRAY<INT>, i INT);"
        "CREATE STREAM b (s STRUCT<x: BIGINT, y: STRING>, l ARRAY<BIGINT>, n INT)"
    )
    return driver


def _step(driver: Driver) -> None:
    for at in range(5):
        driver.insert("a", {"s": _LEFT[at], "l": _LISTS[at], "i": at})
        driver.step()
        driver.insert("b", {"s": _RIGHT[at], "l": _LISTS[at], "n": at})
        driver.step()


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [
        ("a.s = b.s", [(0, 0), (1, 1), (2, 2)]),
        ("a.s <=> b.s", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("a.l = b.l", [(0, 0), (1, 1), (2, 2), (4, 4)]),
        ("a.l <=> b.l", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]),
        ("a.i = b.n AND a.s <> b.s", [(4, 4)]),
        ("a.i = b.n AND NOT (a.s <=> b.s)", [(4, 4)]),
        ("a.i = b.n AND a.s = named_struct('x', 1, 'y', cast(NULL AS STRING))", [(1, 1)]),
        ("a.i = b.n AND a.l IN (array(1), b.l, array(7))", [(0, 0), (1, 1), (2, 2), (4, 4)]),
    ],
)
def test_nested_values_are_compared_in_on_and_in_where(condition: str, pairs: list[tuple[int, int]]) -> None:
    driver = _driver()
    driver.sql(f"CREATE VIEW joined AS SELECT i, n FROM a JOIN b ON {condition}")
    driver.sql(f"CREATE VIEW filtered AS SELECT i, n FROM a CROSS JOIN b WHERE {condition}")
    driver.sql(f"CREATE VIEW padded AS SELECT i, n FROM a LEFT JOIN b ON {condition}")
    _step(driver)
    for view in ("joined", "filtered"):
        assert sorted((row["i"], row["n"]) for row in driver.table(view)) == pairs
    unmatched = set(range(5)) - {i for i, _ in pairs}
    assert {row["i"] for row in driver.table("padded") if row["n"] is None} == unmatched


def test_an_equality_of_nested_values_is_a_key() -> None:
    driver = _driver()
    driver.sql("CREATE VIEW w AS SELECT x.i FROM a x JOIN a y ON x.l = y.l")
    assert "a[l]" in driver.sql("EXPLAIN w")


def test_an_order_of_nested_values_and_the_equality_of_maps_are_refused() -> None:
    driver = _driver()
    driver.sql("CREATE STREAM c (m MAP<STRING, INT>)")
    with pytest.raises(Unsupported, match="`<` on array<int> is not supported"):
        driver.sql("CREATE VIEW v AS SELECT i FROM a WHERE l < array(1)")
    with pytest.raises(TypeMismatch, match="it has no order or equality"):
        driver.sql("CREATE VIEW v AS SELECT x.m FROM c x JOIN c y ON x.m = y.m")
