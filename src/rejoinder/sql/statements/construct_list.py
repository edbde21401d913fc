"""The page of the documentation that lists the constructs of a query: those that a view may have, and the others.

python -m rejoinder.sql.statements.construct_list > docs/constructs.md

Each example is bound when the page is written. What is refused stands there with the words of its error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa

from rejoinder.errors import PlanningError
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.types import spark_types

CATALOG = Catalog(
    (
        Source("a", "changelog", pa.schema([("k", pa.int32()), ("x", pa.int32()), ("s", pa.string())])),
        Source("b", "changelog", pa.schema([("k", pa.int32()), ("y", pa.int64())])),
        Source(
            "e", "stream", pa.schema([("k", pa.int32()), ("ts", spark_types.TIMESTAMP), ("xs", pa.list_(pa.int32()))])
        ),
    )
)
"""The relations of the examples."""

SUPPORTED: dict[str, tuple[tuple[str, str], ...]] = {
    "SELECT": (
        ("Expressions without AS, under Spark's names", "SELECT upper(s), k + 1 FROM a"),
        ("`*`, `a.*`, `* EXCEPT`", "SELECT a.* EXCEPT (s), b.y FROM a JOIN b ON a.k = b.k"),
        ("`* REPLACE`", "SELECT * REPLACE (k + 1 AS k) FROM a"),
        ("Lateral column aliases", "SELECT k + 1 AS n, n * 2 AS d FROM a"),
        ("DISTINCT", "SELECT DISTINCT k, x FROM a"),
        ("SELECT without FROM", "SELECT 1 AS one, 'x' AS x"),
        ("VALUES", "SELECT v.id FROM VALUES (1, 'a'), (2, NULL) AS v (id, s)"),
        ("Column lists", "WITH t (p, q) AS (SELECT k, x + 1 FROM a) SELECT r.z, q FROM t, (SELECT 1) AS r (z)"),
        ("Casts as functions", "SELECT BIGINT(k) AS k, DECIMAL(x) AS x, x::STRING AS t FROM a"),
        ("Pipe syntax", "FROM a |> WHERE x > 1 |> AGGREGATE sum(x) AS t GROUP BY k"),
    ),
    "FROM": (
        ("INNER, LEFT, RIGHT, FULL, CROSS JOIN; ON, USING, NATURAL", "SELECT k, s, y FROM a FULL JOIN b USING (k)"),
        ("SEMI and ANTI JOIN", "SELECT k FROM a LEFT ANTI JOIN b ON a.k = b.k"),
        ("JOIN without ON: every row with every row", "SELECT s, y FROM a JOIN b"),
        ("Subqueries, CTEs", "WITH t AS (SELECT k FROM a) SELECT t.k FROM t, (SELECT y FROM b) q"),
        ("LATERAL", "SELECT a.k, q.m FROM a, LATERAL (SELECT max(y) AS m FROM b WHERE b.k = a.k) q"),
        ("LATERAL VIEW and generators", "SELECT k, x FROM e LATERAL VIEW OUTER explode(xs) AS x"),
        ("PIVOT, UNPIVOT", "SELECT * FROM (SELECT k, s, x FROM a) PIVOT (sum(x) FOR s IN ('p', 'q'))"),
        ("Windows as relations", "SELECT k, window_start FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL 1 HOUR)"),
    ),
    "Conditions and subqueries": (
        ("Scalar subqueries", "SELECT k, (SELECT max(y) FROM b WHERE b.k = a.k) AS m FROM a"),
        ("EXISTS, IN, NOT IN", "SELECT k FROM a WHERE x IN (SELECT y FROM b) OR NOT EXISTS (SELECT 1 FROM b)"),
        ("ANY, ALL", "SELECT k FROM a WHERE x > ALL (SELECT y FROM b WHERE b.k = a.k)"),
        ("HAVING, QUALIFY", "SELECT k, sum(x) AS t FROM a GROUP BY k QUALIFY rank() OVER (ORDER BY t) < 3"),
    ),
    "GROUP BY": (
        ("Expressions, aliases, positions, ALL", "SELECT x % 2 AS p, count(*) AS n FROM a GROUP BY p"),
        ("FILTER, DISTINCT, WITHIN GROUP", "SELECT count(DISTINCT x) FILTER (WHERE k > 1) AS n FROM a"),
        ("GROUPING SETS, ROLLUP, CUBE", "SELECT k, s, grouping_id() AS g, sum(x) AS t FROM a GROUP BY ROLLUP (k, s)"),
        ("Windows of time", "SELECT window.start, count(*) AS n FROM e GROUP BY window(ts, '1 hour')"),
        ("Sessions", "SELECT k, count(*) AS n FROM e GROUP BY k, session_window(ts, '5 minutes')"),
    ),
    "Order and sets": (
        ("Window functions, WINDOW", "SELECT sum(x) OVER w AS t FROM a WINDOW w AS (PARTITION BY s ORDER BY x)"),
        ("ORDER BY with LIMIT and OFFSET", "SELECT * FROM a ORDER BY 2 DESC, s LIMIT 10 OFFSET 5"),
        ("ORDER BY without LIMIT: accepted, without effect", "SELECT k FROM a ORDER BY k"),
        ("UNION, INTERSECT, EXCEPT, MINUS [ALL]", "SELECT k, NULL AS y FROM a UNION ALL SELECT k, y FROM b"),
    ),
}  # fmt: skip

REFUSED = (
    ("Recursive CTEs", "WITH RECURSIVE t AS (SELECT k FROM a UNION ALL SELECT k + 1 FROM t) SELECT k FROM t"),
    ("DISTINCT ON", "SELECT DISTINCT ON (k) k, x FROM a"),
    ("A SELECT list of NULL without a type", "SELECT NULL AS n FROM a"),
    ("Values that change without a change of the input", "SELECT k, rand() AS r FROM a"),
    ("TABLESAMPLE", "SELECT k FROM a TABLESAMPLE (10 PERCENT)"),
    ("SORT BY, DISTRIBUTE BY, CLUSTER BY", "SELECT k FROM a SORT BY k"),
    ("LIMIT that is not a constant", "SELECT k FROM a ORDER BY k LIMIT (SELECT max(y) FROM b)"),
    ("GROUP BY a map", "SELECT count(*) AS n FROM a GROUP BY map(k, x)"),
    ("NATURAL SEMI and ANTI JOIN", "SELECT k FROM a NATURAL SEMI JOIN b"),
    ("RIGHT and FULL JOIN LATERAL", "SELECT a.k FROM a RIGHT JOIN LATERAL (SELECT 1 AS one) q ON TRUE"),
    ("Ranks without an order", "SELECT rank() OVER (PARTITION BY k) AS r FROM a"),
    ("RANGE over several columns", "SELECT sum(x) OVER (ORDER BY k, x RANGE 1 PRECEDING) AS t FROM a"),
    ("Table functions that make rows", "SELECT id FROM range(10)"),
)
"""What Spark answers, or reads, and a view does not."""

_HEAD = """# Constructs of SQL

What a query of a view may consist of, under the names that Spark gives it. The [functions](functions.md) have a page of
their own; [joins](joins.md), [subqueries](subqueries.md), [window functions](window-functions.md) and
[grouping](grouping.md) say more. The examples read `a (k, x, s)`, `b (k, y)` and the stream `e (k, ts, xs)`.

This page is generated: `python -m rejoinder.sql.statements.construct_list > docs/constructs.md`.
"""
_REFUSED_HEAD = """
## Not supported

A view with one of these is refused when it is created. The last two columns are the words of the error.

| construct | example | reason | instead |
|---|---|---|---|
"""


def markdown() -> str:
    """Return the page. Raises a `PlanningError` if an example is refused that should not be."""
    sections = "".join(_section(name, rows) for name, rows in SUPPORTED.items())
    return f"{_HEAD}{sections}{_REFUSED_HEAD}{''.join(_refused())}"


def _section(name: str, rows: Sequence[tuple[str, str]]) -> str:
    for _, query in rows:
        bind(query, CATALOG)
    lines = (f"| {construct} | `{_cell(query)}` |\n" for construct, query in rows)
    return f"\n## {name}\n\n| construct | example |\n|---|---|\n{''.join(lines)}"


def _refused() -> Iterator[str]:
    for construct, query in REFUSED:
        try:
            bind(query, CATALOG)
        except PlanningError as refusal:
            yield f"| {construct} | `{_cell(query)}` | {_cell(refusal.fact)} | {_cell(refusal.hint or '')} |\n"
        else:
            raise AssertionError(f"{query} is not refused")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.stdout.write(markdown())
