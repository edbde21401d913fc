"""QUALIFY with names of the SELECT list, as users write it."""

from __future__ import annotations

import pytest

from tests.kit import flow, rows

TABLE = "CREATE TABLE t (id INT, g STRING, x INT, PRIMARY KEY (id))"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) AS rn FROM t QUALIFY rn = 1", [(1, 1), (2, 1)]),
        ("SELECT id, x, LAG(x) OVER (PARTITION BY g ORDER BY id) AS p FROM t QUALIFY x > p", [(2, 6, 0)]),
        (
            "SELECT g, SUM(x) AS s, RANK() OVER (ORDER BY SUM(x) DESC) AS r FROM t GROUP BY g QUALIFY r <= 1",
            [("a", 11, 1)],
        ),
        ("SELECT id, RANK() OVER (ORDER BY id) AS x FROM t QUALIFY x = 6", [(2, 3)]),
    ],
    ids=["rank", "value", "groups", "a column comes first"],
)
def test_qualify_knows_names_of_the_select_list(query: str, expected: list[tuple[object, ...]]) -> None:
    driver = flow(TABLE, query)
    driver.insert("t", *({"id": i, "g": "ab"[i % 2], "x": i * 3 % 7} for i in range(6)))
    driver.step()
    assert rows(driver) == expected
