"""Shapes of queries, answered by batch Spark and by us: grouping sets, generators, PIVOT, sessions, subqueries, …"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rejoinder import errors
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.types import spark_types
from rejoinder.testing import Driver
from tests.spark.conformance import compile_less

pytestmark = pytest.mark.slow

COLUMNS = "g INT, s STRING, i INT, a ARRAY<INT>, m MAP<STRING, INT>, n ARRAY<STRUCT<p: INT, q: STRING>>, ts TIMESTAMP"
NAMES = ("g", "s", "i", "a", "m", "n", "ts")
START = datetime(2024, 2, 29, 12)
ROWS: list[tuple[Any, ...]] = [
    (1, "a", 5, [1, None, 3], {"x": 1}, [{"p": 1, "q": "u"}, None], START),
    (1, "b", 7, [], {}, [], START + timedelta(minutes=5)),
    (1, "a", None, None, None, None, START + timedelta(minutes=10, microseconds=1)),
    (2, None, 1, [4], {"y": None}, [{"p": None, "q": None}], START + timedelta(minutes=1)),
    (None, "a", 2, [5, 5], {"x": 2, "y": 3}, [{"p": 2, "q": "v"}], None),
]
QUERIES = (
    "SELECT g, s, sum(i), grouping(g), grouping_id() FROM r GROUP BY ROLLUP(g, s)",
    "SELECT g, s, count(*), grouping_id(g, s) FROM r GROUP BY CUBE(g, s) HAVING grouping(s) = 0",
    "SELECT g, s, max(i) AS m FROM r GROUP BY GROUPING SETS ((g, s), (g), (g), ())",
    "SELECT g, s, count(*) FROM r GROUP BY g, ROLLUP(s)",
    "SELECT g, count(*) FROM r GROUP BY g WITH CUBE",
    "SELECT g, s, count(DISTINCT i) FROM r GROUP BY g, s GROUPING SETS ((g), (s))",
    "SELECT count(*) FROM r WHERE 1 = 0 GROUP BY ROLLUP(g)",
    "SELECT count(*), sum(i) FROM r WHERE 1 = 0 GROUP BY GROUPING SETS (())",
    "SELECT g, explode(a) FROM r",
    "SELECT explode_outer(a) AS x, g FROM r",
    "SELECT g, posexplode(a) FROM r",
    "SELECT g, explode(m) FROM r",
    "SELECT g, explode(a) AS x, explode_outer(m) AS (k, v) FROM r",
    "SELECT g, explode(a) AS x, explode(array(x, x + 1)) AS y, x + y FROM r",
    "SELECT g, explode(array(count(*), g)) AS x FROM r GROUP BY g",
    "SELECT g, posexplode_outer(m) AS (p, k, v) FROM r",
    "SELECT g, inline(n) FROM r",
    "SELECT g, inline_outer(n) FROM r",
    "SELECT stack(2, g, 'one', 7) FROM r",
    "SELECT g, x, k FROM r LATERAL VIEW OUTER explode(a) AS x LATERAL VIEW explode(m) t AS k, v",
    "SELECT r.g, e.x FROM r, LATERAL explode(r.a) AS e(x)",
    "SELECT * FROM VALUES (1, 'a', NULL), (2L, NULL, 1.5) AS v(x, y, z)",
    "SELECT * FROM (VALUES (1), (2))",
    "SELECT 1 AS one, 'x' AS x",
    "SELECT * FROM (SELECT g, s, i FROM r) PIVOT (sum(i) FOR s IN ('a', 'b' AS bees))",
    "SELECT * FROM (SELECT g, s, i FROM r) PIVOT (sum(i) AS t, count(*) FOR s IN ('a', 'c'))",
    "SELECT * FROM (SELECT g, s, i FROM r) PIVOT (max(i) FOR (g, s) IN ((1, 'a') AS x, (2, 'b') AS y))",
    "SELECT * FROM (SELECT s, g, i FROM r) UNPIVOT (v FOR name IN (g, i AS number))",
    "SELECT * FROM (SELECT s, g, i FROM r) UNPIVOT INCLUDE NULLS (v FOR name IN (g, i))",
    "SELECT g FROM r UNION SELECT i FROM r INTERSECT SELECT g FROM r",
    "SELECT g FROM r EXCEPT SELECT i FROM r UNION ALL SELECT 1L AS one",
    "(SELECT g FROM r MINUS ALL SELECT 1 AS one) EXCEPT SELECT 2 AS two",
    "SELECT g, session_window(ts, '5 minutes') AS w, count(*) FROM r GROUP BY g, session_window(ts, '5 minutes')",
    "SELECT session_window.start, session_window.end, sum(i) FROM r GROUP BY session_window(ts, '4 minutes')",
    "SELECT (SELECT max(i) FROM r) FROM r",
    "SELECT g, 1 + (SELECT max(x.i) FROM r x WHERE x.g = r.g AND x.i <= r.i AND r.g > 0) FROM r",
    "SELECT EXISTS (SELECT 1 FROM r x WHERE x.s = r.s AND x.i BETWEEN r.i AND r.i + 4) FROM r",
    "SELECT CASE WHEN i IN (SELECT g FROM r) THEN 1 ELSE (SELECT min(i) FROM r) END FROM r",
    "SELECT sum((SELECT max(i) FROM r)) FROM r",
    "FROM r |> WHERE i > 1 |> AGGREGATE sum(i) AS t, count(*) GROUP BY g |> WHERE t > 1 |> SELECT DISTINCT t + 1",
    "FROM r |> ORDER BY i DESC |> LIMIT 3 |> AGGREGATE sum(i) AS t |> EXTEND t + 1 AS u |> SET t = u * 2, u = t",
    "FROM r |> SELECT g, s, i |> ORDER BY i DESC |> LIMIT 3 |> OFFSET 1 |> DROP s |> UNION ALL (SELECT 1, 2)",
    "FROM r |> SELECT g, i |> AS x |> JOIN r ON x.g = r.i |> SELECT x.g, r.s",
    "SELECT g, count(*) AS n FROM r GROUP BY g |> WHERE n > 1",
    "SELECT window_time(window) AS t, n FROM (SELECT window, count(*) AS n FROM r GROUP BY window(ts, '5 minutes'))",
    "SELECT g + 1 AS h, h * 2 AS d, (h + d) DIV 2 AS i, i AS old, sum(i) OVER (PARTITION BY s) AS t FROM r",
    "SELECT * EXCEPT (a, m, n, ts, s), r.* EXCEPT (g, a, m, n, ts, i) FROM r",
    "SELECT BIGINT(g), DECIMAL(i) AS d, STRING(i) AS t, SMALLINT(g) + TINYINT(i), BINARY(s), DATE(ts) FROM r",
    "WITH w (x, y) AS (SELECT g, i + 1 FROM r) SELECT t.q, y + x AS z FROM w, (SELECT max(g) FROM r) AS t (q)",
    "SELECT g, NULL AS x FROM r UNION ALL SELECT NULL, upper(s) FROM r UNION ALL SELECT i + 1, concat(s, 'x') FROM r",
    "SELECT * FROM (SELECT g, i, s FROM r ORDER BY 2 DESC, 1 LIMIT 2)",
    "SELECT * FROM (SELECT i AS g, g AS k, rank() OVER (ORDER BY i) AS n FROM r ORDER BY r.g, -g, s LIMIT 3)",
    "SELECT * FROM (SELECT * FROM (SELECT g, i FROM r) UNION SELECT 7, 1 ORDER BY 2 DESC, 1 DESC LIMIT 2)",
    "SELECT count(*) FROM r x JOIN r y LEFT JOIN (SELECT 1 AS one WHERE FALSE)",
    "SELECT i FROM (SELECT r.g, q.g, r.i FROM r JOIN r q ON r.i = q.i)",
    "SELECT all, count(*) FROM (SELECT g AS all, s FROM r) GROUP BY all, s",
    "SELECT count(*) FROM (SELECT s AS all FROM r) GROUP BY ALL",
    "SELECT g, grouping__id, count(*) FROM r GROUP BY CUBE (g, s) HAVING grouping__id > 0",
    "SELECT v.x FROM VALUES 1, 2L, NULL AS v (x)",
)
NAMED = (  # where Spark's IN as a column is FALSE, ours may be NULL, as in standard SQL
    "SELECT NOT EXISTS (SELECT 1 FROM r x WHERE x.g = 7), g IN (SELECT i FROM r) FROM r",
    "SELECT i NOT IN (SELECT x.g FROM r x WHERE x.s = r.s), (g, i) IN (SELECT g, i FROM r) FROM r",
)
WRONG = (
    "SELECT grouping(i) FROM r GROUP BY ROLLUP(g)",
    "SELECT grouping(g) FROM r GROUP BY g",
    "SELECT grouping_id(s, g) FROM r GROUP BY ROLLUP(g, s)",
    "SELECT explode(i) FROM r",
    "SELECT explode(a) + 1 FROM r",
    "SELECT stack(2, g, 'x') FROM r",
    "VALUES (1), (1, 2)",
    "SELECT * FROM (SELECT g, s, i FROM r) PIVOT (upper(s) FOR s IN ('a'))",
)


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A flow with the rows."""
    flow = Driver(parallelism=2)
    flow.sql(f"CREATE STREAM r ({COLUMNS})")
    flow.insert("r", *(dict(zip(NAMES, row, strict=True)) for row in ROWS))
    flow.step()
    return flow


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> SparkSession:
    """A session of its own on the shared JVM, with the rows."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    compile_less(session)
    zoned = [(*row[:-1], None if row[-1] is None else row[-1].astimezone()) for row in ROWS]
    session.createDataFrame(zoned, schema=COLUMNS.replace(" p:", " p:")).createOrReplaceTempView("r")
    return session


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return repr(sorted(value.items()))
    return repr(sorted(value.asDict().items())) if hasattr(value, "asDict") else repr(value)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_as_spark_does(batch: SparkSession, driver: Driver, query: str) -> None:
    theirs = batch.sql(query)
    ours = bind(query, driver._engine.version.catalog).schema
    assert ours.names == theirs.columns
    assert [spark_types.spark_name(kind) for kind in ours.types] == [f.dataType.simpleString() for f in theirs.schema]
    rows = sorted([_plain(value) for value in row] for row in theirs.collect())
    assert sorted([_plain(value) for value in row.values()] for row in driver.sql(query)) == rows


@pytest.mark.parametrize("query", NAMED)
def test_columns_have_the_names_that_spark_gives(batch: SparkSession, driver: Driver, query: str) -> None:
    assert bind(query, driver._engine.version.catalog).schema.names == batch.sql(query).columns


@pytest.mark.parametrize("query", WRONG)
def test_both_refuse_what_is_wrong(batch: SparkSession, driver: Driver, query: str) -> None:
    with pytest.raises(PySparkException):
        batch.sql(query).collect()
    with pytest.raises(errors.PlanningError):
        bind(query, driver._engine.version.catalog)
