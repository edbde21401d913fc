"""Match status: which rows gain a first match or lose their last, with copies, retractions and conditions on pairs."""

from __future__ import annotations

import pytest

from rejoinder.testing import Driver
from tests.kit import changed, flow

SOURCES = "CREATE CHANGELOG a (k INT, x INT); CREATE CHANGELOG b (k INT, y INT)"


def view(join: str) -> str:
    shown = "a.k, a.x, b.y" if join == "LEFT" else "a.k, a.x"
    return f"SELECT {shown} FROM a {join} JOIN b ON a.k = b.k AND a.x < b.y"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_padding_is_retracted_with_the_first_match_and_returns_with_the_last(parallelism: int) -> None:
    driver = flow(SOURCES, view("LEFT"), parallelism=parallelism)
    driver.insert("a", {"k": 1, "x": 1}, {"k": 1, "x": 5}, {"k": 1, "x": 5})
    assert sorted(changed(driver), key=repr) == [(1, 1, None, 1), (1, 5, None, 2)]
    driver.insert("b", {"k": 1, "y": 3})
    assert sorted(changed(driver), key=repr) == [(1, 1, 3, 1), (1, 1, None, -1)]
    driver.insert("b", {"k": 1, "y": 9}, {"k": 1, "y": 9})
    assert sorted(changed(driver), key=repr) == [(1, 1, 9, 2), (1, 5, 9, 4), (1, 5, None, -2)]
    driver.delete("b", {"k": 1, "y": 9})
    assert sorted(changed(driver), key=repr) == [(1, 1, 9, -1), (1, 5, 9, -2)]
    driver.delete("b", {"k": 1, "y": 9}, {"k": 1, "y": 3})
    assert sorted(changed(driver), key=repr) == [
        (1, 1, 3, -1),
        (1, 1, 9, -1),
        (1, 1, None, 1),
        (1, 5, 9, -2),
        (1, 5, None, 2),
    ]


@pytest.mark.parametrize(("join", "sign"), [("SEMI", 1), ("ANTI", -1)])
def test_tests_see_the_flip_alone(join: str, sign: int) -> None:
    driver = flow(SOURCES, view(join))
    driver.insert("a", {"k": 1, "x": 1}, {"k": None, "x": 1})
    assert sorted(changed(driver), key=repr) == ([] if join == "SEMI" else [(1, 1, 1), (None, 1, 1)])
    driver.insert("b", {"k": 1, "y": 1}, {"k": None, "y": 9})
    assert changed(driver) == [], "a.x < b.y holds for neither"
    driver.insert("b", {"k": 1, "y": 2}, {"k": 1, "y": 3})
    assert sorted(changed(driver), key=repr) == [(1, 1, sign)]
    driver.delete("b", {"k": 1, "y": 2})
    assert changed(driver) == [], "one match is left"
    driver.delete("b", {"k": 1, "y": 3})
    assert sorted(changed(driver), key=repr) == [(1, 1, -sign)]


def test_both_sides_change_in_one_epoch() -> None:
    driver = flow(SOURCES, view("LEFT"))
    driver.insert("b", {"k": 1, "y": 9})
    driver.insert("a", {"k": 1, "x": 1})
    assert sorted(changed(driver), key=repr) == [(1, 1, 9, 1)]
    driver.delete("a", {"k": 1, "x": 1})
    driver.delete("b", {"k": 1, "y": 9})
    driver.insert("a", {"k": 1, "x": 2})
    assert sorted(changed(driver), key=repr) == [(1, 1, 9, -1), (1, 2, None, 1)]


def test_keys_of_several_columns_and_null_safe_ones_lie_in_the_same_bucket() -> None:
    driver = Driver(parallelism=7)
    driver.sql("CREATE CHANGELOG a (z INT, b INT, x INT); CREATE CHANGELOG r (c INT, d INT, y INT)")
    driver.sql("CREATE VIEW v AS SELECT a.x, r.y FROM a LEFT JOIN r ON a.z = r.c AND a.b <=> r.d AND a.x < r.y")
    driver.insert("a", *[{"z": n, "b": n % 3 or None, "x": n} for n in range(20)])
    driver.step()
    driver.insert("r", *[{"c": n, "d": n % 3 or None, "y": n + n % 2} for n in range(20)])
    driver.step()
    wanted = [{"x": n, "y": n + 1 if n % 2 else None} for n in range(20)]
    assert sorted(driver.table("v"), key=lambda row: row["x"]) == wanted


def test_nothing_is_kept_beyond_the_two_sides() -> None:
    driver = flow(SOURCES, view("LEFT"))
    assert sorted(each["name"] for each in driver.arrangements()) == ["a[k]", "b[k]"]
