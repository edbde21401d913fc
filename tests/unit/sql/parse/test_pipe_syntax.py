"""Pipe syntax: each query has the rows of the query beside it, as a question and as a view."""

from __future__ import annotations

import pytest

from rejoinder.errors import UnknownName, Unsupported
from rejoinder.testing import Driver

QUERIES = {
    "FROM s |> WHERE n > 1 |> SELECT k, n + 1 AS m": "SELECT k, n + 1 AS m FROM s WHERE n > 1",
    "FROM s |> SELECT DISTINCT k": "SELECT DISTINCT k FROM s",
    "SELECT DISTINCT k FROM s |> AGGREGATE count(*) AS c": "SELECT count(*) AS c FROM (SELECT DISTINCT k FROM s)",
    "SELECT k, sum(n) AS t FROM s GROUP BY k |> WHERE t > 3": "SELECT k, sum(n) AS t FROM s GROUP BY k HAVING t > 3",
    "FROM s |> AGGREGATE sum(n) AS t GROUP BY k |> WHERE t > 3": "SELECT k, sum(n) AS t FROM s GROUP BY k HAVING t > 3",
    "FROM s |> ORDER BY n |> LIMIT 2 |> WHERE n > 1": "SELECT * FROM (SELECT * FROM s ORDER BY n LIMIT 2) WHERE n > 1",
    "FROM s |> ORDER BY n DESC |> LIMIT 3 |> AGGREGATE sum(n) AS n": "SELECT 9 AS n",
    "FROM s |> ORDER BY n |> LIMIT 3 |> OFFSET 1": "SELECT * FROM s ORDER BY n LIMIT 2 OFFSET 1",
    "FROM s |> ORDER BY n |> OFFSET 1 |> LIMIT 2": "SELECT * FROM s ORDER BY n LIMIT 2 OFFSET 1",
    "SELECT n FROM s ORDER BY n |> LIMIT 1": "SELECT n FROM s ORDER BY n LIMIT 1",
    "FROM s |> ORDER BY n |> LIMIT 1 |> LIMIT 5": "SELECT * FROM s ORDER BY n LIMIT 1",
    "FROM s |> ORDER BY n |> LIMIT 2 |> JOIN p ON s.k = p.k |> SELECT s.n, p.v": "SELECT 1 AS n, 10 AS v",
    "FROM s |> SELECT k AS j |> AS t |> JOIN p ON t.j = p.k |> SELECT t.j": "SELECT k AS j FROM s JOIN p USING (k)",
    "FROM s |> EXTEND n * 2 AS m |> ORDER BY m DESC |> LIMIT 1": "SELECT *, 8 AS m FROM s WHERE n = 4",
    "FROM s |> SET n = n + 1, k = n || k |> DROP n": "SELECT (n + 1) || k AS k FROM s",
    "FROM s |> SELECT k |> UNION ALL (SELECT k FROM p) |> LIMIT 2": "SELECT 'a' AS k FROM p",
}


@pytest.fixture(scope="module")
def shop() -> Driver:
    driver = Driver()
    views = "; ".join(f"CREATE VIEW v{at} AS {query}" for at, query in enumerate(QUERIES))
    driver.sql(f"CREATE STREAM s (k STRING, n INT); CREATE STREAM p (k STRING, v INT); {views}")
    driver.insert("s", *({"k": k, "n": n} for k, n in (("a", 1), ("b", 2), ("a", 3), ("c", 4))))
    driver.insert("p", {"k": "a", "v": 10}, {"k": "c", "v": 30})
    driver.step()
    return driver


@pytest.mark.parametrize("pipe", QUERIES)
def test_an_operator_applies_to_the_rows_before_it(shop: Driver, pipe: str) -> None:
    rows = shop.sql(QUERIES[pipe])
    view = f"SELECT * FROM v{list(QUERIES).index(pipe)}"
    assert sorted(map(str, shop.sql(pipe))) == sorted(map(str, shop.sql(view))) == sorted(map(str, rows)) != []


def test_the_order_of_a_pipe_is_that_of_its_last_operators(shop: Driver) -> None:
    assert [row["n"] for row in shop.sql("FROM s |> ORDER BY n |> LIMIT 3 |> ORDER BY n DESC")] == [3, 2, 1]
    assert [row["n"] for row in shop.sql("FROM s |> ORDER BY n DESC |> LIMIT 2")] == [4, 3]


def test_a_pipe_that_is_wrong_is_refused(shop: Driver) -> None:
    with pytest.raises(Unsupported, match="WHERE within the operator SELECT of a pipe"):
        shop.sql("FROM s |> SELECT k WHERE n > 1")
    with pytest.raises(Unsupported, match="the operator `TABLESAMPLE` of a pipe is not supported"):
        shop.sql("FROM s |> TABLESAMPLE (1 ROWS)")
    with pytest.raises(UnknownName, match="`n`"):
        shop.sql("FROM s |> SELECT k |> ORDER BY n")
