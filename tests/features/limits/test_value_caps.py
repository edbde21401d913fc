"""Functions that make long texts are refused, or fail on the row, before the memory is taken."""

from __future__ import annotations

import resource

import pytest

from rejoinder.errors import EvaluationError, LimitReached
from rejoinder.testing import Driver


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM t (a BIGINT, s STRING); CREATE VIEW v AS SELECT a, s FROM t")
    driver.insert("t", {"a": 2_000_000_000, "s": "x" * 100})
    driver.step()
    return driver


@pytest.mark.parametrize("call", ["lpad('x', 2147483647, 'y')", "rpad(s, 2147483647)", "repeat('ab', 2000000000)"])
def test_a_length_that_is_written_down_is_refused_by_the_plan(driver: Driver, call: str) -> None:
    with pytest.raises(LimitReached, match="max_value_length") as refused:
        driver.sql(f"SELECT {call} AS r FROM v")
    assert "--cap max_value_length=" in str(refused.value.hint)


@pytest.mark.parametrize("call", ["lpad('x', a, 'y')", "rpad(s, a)", "repeat('x', a)", "repeat(s, 60000000)"])
def test_a_length_that_a_row_says_fails_on_the_row(driver: Driver, call: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EvaluationError, match="max_value_length"):
        driver.sql(f"SELECT {call} AS r FROM v")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_what_is_within_the_cap_works(driver: Driver) -> None:
    query = "SELECT length(lpad(s, 20000, 'y')) AS l, length(repeat(s, 3)) AS r, length(rpad(s, a - 1999999990)) AS p"
    assert driver.sql(f"{query} FROM v") == [{"l": 20_000, "r": 300, "p": 10}]
    assert driver.sql("SELECT lpad(s, NULL) AS l, repeat(s, -1) AS r FROM v") == [{"l": None, "r": ""}]
