"""Statements that are too long or too deep are refused by name, at once; deep ones within the caps work."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rejoinder.errors import LimitReached
from rejoinder.host.caps import Caps, caps, use_caps
from rejoinder.sql.parse.text_caps import check_text
from rejoinder.testing import Driver


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    before = caps()
    use_caps(Caps())
    yield
    use_caps(before)


def _driver() -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM t (a BIGINT, s STRING, d DECIMAL(9, 2)); CREATE VIEW v AS SELECT * FROM t")
    driver.insert("t", {"a": 1, "s": "x", "d": 1})
    driver.step()
    return driver


BOMBS = {
    "parentheses": ("SELECT " + "(" * 5_000_000 + "a" + ")" * 5_000_000 + " FROM t", "max_sql_length"),
    "fewer parentheses": ("SELECT " + "(" * 1_000_000 + "a" + ")" * 1_000_000 + " FROM t", "max_sql_depth"),
    "open parentheses": ("SELECT " + "(" * 1_000_000, "max_sql_depth"),
    "subqueries": ("SELECT a FROM " + "(SELECT a FROM " * 2_000 + "t" + ")" * 2_000, "max_sql_depth"),
    "cases": ("SELECT " + "CASE WHEN a = 1 THEN " * 1_000 + "a" + " END" * 1_000 + " FROM t", "max_sql_depth"),
    "signs": ("SELECT " + "- " * 100_000 + "a FROM t", "max_sql_operators"),
    "nots": ("SELECT a FROM t WHERE " + "NOT " * 100_000 + "a = 1", "max_sql_operators"),
    "sums": ("SELECT " + " + ".join(["a"] * 100_000) + " FROM t", "max_sql_operators"),
}


@pytest.mark.parametrize("bomb", list(BOMBS))
@pytest.mark.parametrize("form", ["{}", "CREATE VIEW w AS {}", "EXPLAIN {}"])
def test_a_statement_beyond_a_cap_is_refused_at_once(bomb: str, form: str) -> None:
    text, cap = BOMBS[bomb]
    driver = _driver()
    start = time.process_time()
    with pytest.raises(LimitReached) as refused:
        driver.sql(form.format(text))
    assert time.process_time() - start < 2
    assert f"`{cap}`" in str(refused.value.detail) and f"--cap {cap}=" in str(refused.value.hint)
    assert len(str(refused.value)) < 1000


DEEP = {
    "sums": (" + ".join(["a"] * 1_500), 1_500),
    "texts": ("length(" + " || ".join(["s"] * 800) + ")", 800),
    "choices": ("CASE " + " ".join(f"WHEN a = {n} THEN {n}" for n in range(400)) + " END", 1),
    "alternatives": ("CASE WHEN " + " OR ".join(f"a = {n}" for n in range(600)) + " THEN 1 ELSE 2 END", 1),
    "lists": ("CASE WHEN a IN (" + ", ".join(map(str, range(2_000))) + ") THEN 1 ELSE 2 END", 1),
    "brackets": ("(" * 240 + "a" + ")" * 240, 1),
}


@pytest.mark.parametrize("case", list(DEEP))
def test_deep_but_legal_expressions_work(case: str) -> None:
    text, value = DEEP[case]
    driver = _driver()
    driver.sql(f"CREATE VIEW w AS SELECT {text} AS r FROM t")
    assert driver.table("w") == [{"r": value}]
    driver.insert("t", {"a": 1, "s": "x"})
    assert driver.step()["w"] == [({"r": value}, 1)]


@pytest.mark.deep
@pytest.mark.slow
def test_five_thousand_sums_work() -> None:
    driver = _driver()
    assert driver.sql(f"SELECT {' + '.join(['a'] * 5_000)} AS r FROM v") == [{"r": 5_000}]


def test_two_hundred_subqueries_work() -> None:
    driver = _driver()
    driver.sql("CREATE VIEW w AS SELECT a FROM " + "(SELECT a FROM " * 200 + "t" + ")" * 200)
    assert driver.table("w") == [{"a": 1}]


def test_caps_can_be_set() -> None:
    use_caps(Caps())
    driver = Driver(caps={"max_sql_depth": 3})
    with pytest.raises(LimitReached, match="nested too deeply"):
        driver.sql("CREATE STREAM t (a ARRAY<ARRAY<STRUCT<x: DECIMAL(9, 2)>>>); SELECT ((((1))))")


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    assert check_text("SELECT '" + "(" * 1_000 + "' -- " + "(" * 1_000 + "\n/*" + "(" * 1_000 + "*/ FROM t") == 2
