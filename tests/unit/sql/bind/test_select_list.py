"""`* EXCEPT`, and aliases of earlier items in a SELECT list."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import PlanningError
from rejoinder.testing import Driver


def _driver() -> Driver:
    driver = Driver(parallelism=1)
    driver.sql("CREATE STREAM t (g INT, x INT, s STRING)")
    driver.insert("t", {"g": 1, "x": 2, "s": "ab"})
    driver.step()
    return driver


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("SELECT g + 1 AS a, a * 2 AS b, b + a AS c FROM t", {"a": 2, "b": 4, "c": 6}),
        ("SELECT g * 5 AS x, x + 1 AS y FROM t", {"x": 5, "y": 3}),
        ("SELECT g, count(*) AS n, n * 2 AS m FROM t GROUP BY g HAVING m > 1", {"g": 1, "n": 1, "m": 2}),
        ("SELECT * EXCEPT (x), g AS h FROM t", {"g": 1, "s": "ab", "h": 1}),
        ("SELECT t.* EXCEPT (s, X) FROM t", {"g": 1}),
        ("SELECT * EXCEPT (s) REPLACE (g + 1 AS G) FROM t", {"g": 2, "x": 2}),
        ("SELECT s AS a FROM t WHERE g = 2 UNION ALL SELECT upper(s) FROM t", {"a": "AB"}),
    ],
)
def test_the_spelling_means_what_spark_means(query: str, row: dict[str, Any]) -> None:
    assert list(_driver().sql(query)) == [row]


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("SELECT g AS a, x AS a, a + 1 AS b FROM t", "is the alias of 2 items"),
        ("SELECT g AS a, a + 1 FROM t", "needs a name"),
        ("SELECT g + 1 AS a FROM t WHERE a > 1", "no column `a`"),
        ("SELECT * EXCEPT (y) FROM t", "no column `y` to leave out"),
        ("SELECT * EXCEPT (g, x, s) FROM t", "leaves no column"),
        ("SELECT * REPLACE (1 AS y) FROM t", "no column `y` to replace"),
        ("SELECT * REPLACE (1 AS g) FROM t JOIN t AS u ON t.g = u.g", "several columns `g` to replace"),
        ("SELECT g AS a FROM t UNION ALL SELECT count(*) FROM t GROUP BY a", "no column `a`"),
    ],
)
def test_what_is_refused_is_named(query: str, fact: str) -> None:
    with pytest.raises(PlanningError, match=fact):
        _driver().sql(query)
