"""The state of queries for the first rows: all rows of a table, only the first ones of a stream."""

from __future__ import annotations

import pytest

from rejoinder.testing import Driver

COLUMNS = "(k BIGINT, v BIGINT, PRIMARY KEY (v))"
TOP = "CREATE VIEW top AS SELECT k, v FROM s QUALIFY {}() OVER (PARTITION BY k ORDER BY v DESC) <= 2"


def _rows_in_order(driver: Driver) -> int:
    (rows,) = [each["rows"] for each in driver.sql("SHOW ARRANGEMENTS") if "/input[" in each["name"]]
    return int(rows)


@pytest.mark.parametrize("function", ["ROW_NUMBER", "RANK"])
def test_a_stream_keeps_only_the_first_rows(function: str) -> None:
    driver = Driver(parallelism=1)
    driver.sql("CREATE STREAM s (k BIGINT, v BIGINT)")
    driver.sql(TOP.format(function))
    driver.insert("s", *({"k": number % 3, "v": number} for number in range(300)))
    driver.step()
    assert _rows_in_order(driver) == 6
    driver.insert("s", *({"k": number % 3, "v": -number} for number in range(1, 300)))
    driver.step()
    assert _rows_in_order(driver) == 6
    driver.insert("s", {"k": 0, "v": 1000})
    driver.step()
    assert [row["v"] for row in driver.table("top") if row["k"] == 0] == [297, 1000]


def test_a_table_keeps_all_rows() -> None:
    driver = Driver(parallelism=1)
    driver.sql(f"CREATE TABLE s {COLUMNS}")
    driver.sql(TOP.format("ROW_NUMBER"))
    driver.insert("s", *({"k": 0, "v": number} for number in range(100)))
    driver.step()
    driver.delete("s", {"v": 99})
    driver.step()
    assert [row["v"] for row in driver.table("top")] == [97, 98]


def test_a_view_that_is_created_later_starts_with_the_first_rows() -> None:
    driver = Driver(parallelism=1)
    driver.sql("CREATE STREAM s (k BIGINT, v BIGINT)")
    driver.sql("CREATE VIEW copy AS SELECT k, v FROM s")
    driver.sql(TOP.format("ROW_NUMBER"))
    driver.insert("s", *({"k": 0, "v": number} for number in range(100)))
    driver.step()
    driver.sql(
        "CREATE VIEW again AS SELECT v FROM (SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER "
        "(PARTITION BY k ORDER BY v DESC) <= 2) WHERE v > 98"
    )
    driver.step()
    assert [row["v"] for row in driver.table("again")] == [99]
