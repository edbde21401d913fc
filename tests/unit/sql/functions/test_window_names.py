"""Spark's names of window functions. `tests/spark/test_window_conformance.py` compares many with Spark itself."""

from __future__ import annotations

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver

TO_ROW = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("rank() OVER (ORDER BY t.x DESC)", f"RANK() OVER (ORDER BY x DESC NULLS LAST ROWS {TO_ROW})"),
        (
            "lag(x) IGNORE NULLS OVER (PARTITION BY k, x + 1 ORDER BY x)",
            "lag(x, 1, NULL) OVER (PARTITION BY k, (x + 1) ORDER BY x ASC NULLS FIRST "
            "ROWS BETWEEN -1 FOLLOWING AND -1 FOLLOWING)",
        ),
        (
            "upper(max(k) OVER ())",
            "upper(max(k) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))",
        ),
        ("count(*) OVER ()", "count(1) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"),
        ("sum(x) OVER (ORDER BY x) + 1", f"(sum(x) OVER (ORDER BY x ASC NULLS FIRST RANGE {TO_ROW}) + 1)"),
        (
            "sum(x) OVER (ORDER BY d RANGE 3 PRECEDING)",
            "sum(x) OVER (ORDER BY d ASC NULLS FIRST RANGE BETWEEN (- 3) FOLLOWING AND CURRENT ROW)",
        ),
    ],
)
def test_a_window_function_without_alias_has_the_name_of_spark(call: str, name: str) -> None:
    driver = Driver()
    driver.sql(f"CREATE CHANGELOG t (k STRING, x INT, d DOUBLE); CREATE VIEW v AS SELECT {call} FROM t")
    driver.insert("t", {"x": 1})
    driver.step()
    assert list(driver.table("v")[0]) == [name]


@pytest.mark.parametrize("call", ["first_value(x) IGNORE NULLS OVER (ORDER BY x)"])
def test_a_name_that_is_not_certain_must_be_written(call: str) -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG t (k STRING, x INT, d DATE)")
    with pytest.raises(Unsupported, match="needs a name"):
        driver.sql(f"CREATE VIEW v AS SELECT {call} FROM t")
