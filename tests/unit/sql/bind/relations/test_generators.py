"""Generators, VALUES and PIVOT: names, values and what is refused. Random data is in `tests/oracle/test_shapes.py`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from rejoinder.errors import (
    AmbiguousName,
    InvalidSql,
    LimitReached,
    RejoinderError,
    TypeMismatch,
    UnknownName,
    Unsupported,
)
from rejoinder.testing import Driver

ROWS: list[dict[str, Any]] = [
    {"id": 1, "a": [5, None], "m": {"x": 1}, "s": [{"p": 1, "q": "u"}, None], "c": 1, "d": None},
    {"id": 2, "a": [], "m": None, "s": None, "c": None, "d": None},
]


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    nested = "a ARRAY<INT>, m MAP<STRING, INT>, s ARRAY<STRUCT<p: INT, q: STRING>>"
    driver.sql(f"CREATE CHANGELOG n (id INT, {nested}, c INT, d INT)")
    driver.insert("n", *ROWS)
    driver.step()
    return driver


SELECTED: dict[str, list[dict[str, Any]]] = {
    "SELECT id, explode(a) FROM n": [{"id": 1, "col": 5}, {"id": 1, "col": None}],
    "SELECT explode_outer(a) AS x, id FROM n": [{"x": 5, "id": 1}, {"x": None, "id": 1}, {"x": None, "id": 2}],
    "SELECT posexplode(a) FROM n": [{"pos": 0, "col": 5}, {"pos": 1, "col": None}],
    "SELECT id, explode(m) FROM n": [{"id": 1, "key": "x", "value": 1}],
    "SELECT id, posexplode_outer(m) AS (p, k, v) FROM n": [
        {"id": 1, "p": 0, "k": "x", "v": 1},
        {"id": 2, "p": None, "k": None, "v": None},
    ],
    "SELECT inline(s) FROM n": [{"p": 1, "q": "u"}, {"p": None, "q": None}],
    "SELECT id, inline_outer(s) AS (x, y) FROM n WHERE id = 2": [{"id": 2, "x": None, "y": None}],
    "SELECT stack(2, id, 'one', 7) AS (n, t) FROM n WHERE id = 1": [{"n": 1, "t": "one"}, {"n": 7, "t": None}],
    "SELECT explode(a) AS x, id, explode(m) AS (k, v) FROM n": [
        {"x": 5, "id": 1, "k": "x", "v": 1},
        {"x": None, "id": 1, "k": "x", "v": 1},
    ],
    "SELECT explode(array(id, 7)) AS x, explode(array(x + 1)) AS y, x + y FROM n WHERE id = 1": [
        {"x": 1, "y": 2, "(x + y)": 3},
        {"x": 7, "y": 8, "(x + y)": 15},
    ],
    "SELECT explode(a) AS c, c + 1 AS e FROM n": [{"c": 5, "e": 2}, {"c": None, "e": 2}],
    "SELECT explode(collect_list(c)) AS x, count(*) FROM n": [{"x": 1, "count(1)": 2}],
    "SELECT id, explode(array(max(c), id)) AS x FROM n GROUP BY id HAVING id = 1": [
        {"id": 1, "x": 1},
        {"id": 1, "x": 1},
    ],
    "SELECT explode(array(id, 9)) AS x FROM n ORDER BY x DESC, id LIMIT 3": [{"x": 9}, {"x": 9}, {"x": 2}],
    "SELECT c, explode(array(id, 9)) FROM n ORDER BY 2, n.id LIMIT 1": [{"c": 1, "col": 1}],
    "SELECT n.id, e.* FROM n LATERAL VIEW explode(a) e AS x": [{"id": 1, "x": 5}, {"id": 1, "x": None}],
    "SELECT x, k FROM n LATERAL VIEW explode(a) AS x LATERAL VIEW OUTER explode(m) e AS k, v WHERE x > 0": [
        {"x": 5, "k": "x"}
    ],
    "SELECT id, y FROM n LATERAL VIEW explode(array(c, id)) AS x LATERAL VIEW explode(array(x)) AS y WHERE id = 1": [
        {"id": 1, "y": 1},
        {"id": 1, "y": 1},
    ],
    "SELECT id, e.x FROM n, LATERAL explode(a) AS e(x)": [{"id": 1, "x": 5}, {"id": 1, "x": None}],
    "SELECT id, e.x FROM n LEFT JOIN LATERAL explode(a) AS e(x) ON TRUE WHERE id = 2": [{"id": 2, "x": None}],
    "SELECT * FROM explode(array(1, 2)) AS e(x)": [{"x": 1}, {"x": 2}],
    "SELECT 1 AS one, upper('x') AS x": [{"one": 1, "x": "X"}],
    "VALUES (1, 'a'), (2, NULL)": [{"col1": 1, "col2": "a"}, {"col1": 2, "col2": None}],
    "SELECT * FROM VALUES (1, 2.5), (2L, 1) AS v(a, b)": [
        {"a": 1, "b": Decimal("2.5")},
        {"a": 2, "b": Decimal("1.0")},
    ],
    "WITH w AS (VALUES (1)) SELECT n.c FROM n JOIN w ON n.id = w.col1": [{"c": 1}],
    "SELECT * FROM (SELECT id, c FROM n) PIVOT (max(c) FOR id IN (1, 2 AS two))": [{"1": 1, "two": None}],
    "SELECT * FROM (SELECT id, c FROM n) PIVOT (count(*) AS n, max(c) FOR id IN (1, 3))": [
        {"1_n": 1, "1_max(c)": 1, "3_n": None, "3_max(c)": None}
    ],
    "SELECT * FROM (SELECT id, c, d FROM n) UNPIVOT (v FOR name IN (c, d))": [{"id": 1, "name": "c", "v": 1}],
    "SELECT * FROM (SELECT id, c, d FROM n) UNPIVOT INCLUDE NULLS ((v, w) FOR name IN ((c, d) AS x)) WHERE id = 2": [
        {"id": 2, "name": "x", "v": None, "w": None}
    ],
}


@pytest.mark.parametrize("query", SELECTED)
def test_rows_and_names(query: str, driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {query}")
    rows = list(driver.table("v"))
    assert sorted(map(str, rows)) == sorted(map(str, SELECTED[query]))
    driver.delete("n", *ROWS)
    driver.step()
    if " n" in query:
        assert [row for row in driver.table("v") if any(value is not None for value in row.values())] == []


REFUSED: list[tuple[str, type[RejoinderError], str, str]] = [
    ("SELECT explode(a) AS x, explode(a) AS x, x + 1 AS y FROM n", AmbiguousName, "a column of 2 generators", "AS"),
    ("SELECT c, explode(array(1)) AS x, x + c AS y FROM n GROUP BY c", UnknownName, "`x`", ""),
    ("SELECT explode(a) + 1 FROM n", Unsupported, "inside an expression is not supported", "SELECT explode"),
    ("SELECT explode(array(c)) FROM n GROUP BY d", InvalidSql, "`c`", ""),
    ("SELECT explode(c) FROM n", TypeMismatch, "`explode` takes an array or a map, not int", ""),
    ("SELECT inline(a) FROM n", TypeMismatch, "`inline` takes an array of structs", ""),
    ("SELECT posexplode(a) AS x FROM n", InvalidSql, "1 names for the 2 columns", "AS (pos, col)"),
    ("SELECT stack(0, c) FROM n", InvalidSql, "the first argument of `stack`", "stack(2"),
    ("SELECT stack(2, c, 'x') FROM n", TypeMismatch, "`stack` puts int and string into one column", "CAST"),
    ("SELECT id FROM n LATERAL VIEW upper(c) AS x", Unsupported, "LATERAL VIEW of", "explode"),
    ("SELECT 1 FROM n RIGHT JOIN LATERAL explode(a) AS e(x)", Unsupported, "takes CROSS, INNER or LEFT JOIN", "WHERE"),
    ("VALUES (1), (1, 2)", InvalidSql, "VALUES has rows of 1 and of 2 columns", "same number"),
    ("VALUES (NULL)", TypeMismatch, "nothing but NULL", "CAST"),
    ("SELECT * FROM n PIVOT (upper(c) FOR d IN (1))", InvalidSql, "PIVOT without an aggregate", "any_value"),
    ("SELECT * FROM n PIVOT (max(c) FOR (d, id) IN (1))", InvalidSql, "FOR 2 columns has a value of 1", "as many"),
    ("SELECT * FROM n UNPIVOT ((v, w) FOR name IN (c))", InvalidSql, "takes 1 columns into 2", "as many"),
    ("SELECT id FROM (SELECT id, c, a FROM n) UNPIVOT (v FOR name IN (c, a))", TypeMismatch, "column 2", "CAST"),
]


@pytest.mark.parametrize(("query", "error", "fact", "hint"), REFUSED, ids=[query for query, *_ in REFUSED])
def test_what_is_refused(query: str, error: type[RejoinderError], fact: str, hint: str, driver: Driver) -> None:
    with pytest.raises(error) as raised:
        driver.sql(f"CREATE VIEW v AS {query}")
    assert fact in raised.value.fact
    assert hint in (raised.value.hint or "")


def test_an_explode_that_makes_too_many_rows_is_refused() -> None:
    driver = Driver(caps={"max_repeated_rows": 5})
    try:
        driver.sql("CREATE CHANGELOG n (id INT, a ARRAY<INT>)")
        driver.sql("CREATE VIEW v AS SELECT explode(a) AS x FROM n")
        driver.insert("n", {"id": 1, "a": [1] * 6})
        with pytest.raises(LimitReached, match="repeated too often") as raised:
            driver.step()
        assert "max_repeated_rows" in str(raised.value)
    finally:
        Driver(caps={"max_repeated_rows": 50_000_000})
