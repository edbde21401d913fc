"""Queries that cannot be kept up to date: each error names the thing, the place and the remedy, before it runs."""

from __future__ import annotations

import pytest

from rejoinder.errors import AmbiguousName, InvalidSql, LimitReached, PlanningError, TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = (
    "CREATE TABLE o (k INT, x INT, s STRING, ts TIMESTAMP, xs ARRAY<INT>, PRIMARY KEY (k))",
    "CREATE TABLE l (k INT, y INT, PRIMARY KEY (k))",
)
FAR = "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW"

Case = tuple[str, type[PlanningError], str, str, str]
"""A query, its error, and parts of the fact, the detail and the hint."""
WINDOWS: list[Case] = [
    (query, InvalidSql, f"{name} needs an ORDER BY in its window", name, "ORDER BY")
    for query, name in (
        ("SELECT rank() OVER (PARTITION BY k) AS r FROM o", "RANK"),
        ("SELECT percent_rank() OVER w AS r FROM o WINDOW w AS (PARTITION BY k)", "PERCENT_RANK"),
        ("SELECT k FROM o QUALIFY row_number() OVER (PARTITION BY x) = 1", "ROW_NUMBER"),
        ("SELECT k, (SELECT max(n) FROM (SELECT ntile(3) OVER () AS n FROM l WHERE l.k = o.k)) AS n FROM o", "NTILE"),
        ("SELECT x, lag(sum(k)) OVER () AS p FROM o GROUP BY x", "LAG"),
    )
]
FRAMES: list[Case] = [
    (query, kind, fact, FAR, "order by")
    for query, kind, fact in (
        (
            f"SELECT sum(x) OVER (ORDER BY k, x {FAR}) AS s FROM o",
            InvalidSql,
            "one column in ORDER BY, and there are 2",
        ),
        (f"SELECT sum(x) OVER ({FAR}) AS s FROM o", InvalidSql, "one column in ORDER BY, and there are 0"),
        (f"SELECT k FROM o QUALIFY sum(x) OVER w > 1 WINDOW w AS (ORDER BY k, x {FAR})", InvalidSql, "there are 2"),
        (f"SELECT sum(x) OVER (ORDER BY s {FAR}) AS s FROM o", TypeMismatch, "over string is not supported"),
    )
]
LIMITS: list[Case] = [
    (query, InvalidSql, f"{place.split()[0]} must be a constant whole number", place, "as in")
    for query, place in (
        ("SELECT k FROM o ORDER BY k LIMIT x", "LIMIT x"),
        ("SELECT k FROM o LIMIT (SELECT max(k) FROM l)", "LIMIT (SELECT MAX(k) FROM l)"),
        ("SELECT k FROM o LIMIT -1", "LIMIT -1"),
        ("SELECT k FROM o LIMIT 1.5", "LIMIT 1.5"),
        ("SELECT k FROM o LIMIT 3000000000", "LIMIT 3000000000"),
        ("SELECT k FROM o LIMIT 1 OFFSET x", "OFFSET x"),
        ("SELECT k, (SELECT y FROM l ORDER BY y LIMIT o.x) AS y FROM o", "LIMIT o.x"),
        ("SELECT o.k FROM o, LATERAL (SELECT y FROM l WHERE l.k = o.k ORDER BY y LIMIT o.x) q", "LIMIT o.x"),
        ("SELECT k FROM o UNION ALL SELECT k FROM l LIMIT rand()", "LIMIT RAND()"),
    )
]
CORRELATIONS: list[Case] = [
    (query, AmbiguousName, "column `x` is ambiguous", "`a.x` and `b.x` in `l.k = x` (line 1)", "write `a.x`")
    for query in (
        "SELECT a.k FROM o a JOIN o b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM l WHERE l.k = x)",
        "SELECT a.k, (SELECT max(y) FROM l WHERE l.k = x) AS v FROM o a JOIN o b ON a.k = b.k",
        "SELECT a.k FROM o a, o b WHERE a.k NOT IN (SELECT y FROM l WHERE l.k = x)",
        "SELECT a.k FROM o a JOIN o b ON a.k = b.k, LATERAL (SELECT max(y) AS v FROM l WHERE l.k = x) q",
    )
]
RECURSIONS: list[Case] = [
    (query, Unsupported, "`r` refers to itself", "UNION ALL", "join the relation once for each level")
    for query in (
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        "WITH r AS (SELECT k FROM o UNION ALL SELECT l.k FROM l JOIN r ON l.y = r.k) SELECT k FROM r",
        "SELECT k FROM o WHERE k IN (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT n FROM r)",
        "WITH RECURSIVE a AS (SELECT k FROM o), r AS (SELECT k FROM a UNION ALL SELECT k FROM r) SELECT k FROM r",
    )
]
CHANGING: list[Case] = [
    (query, Unsupported, fact, place, "column")
    for query, fact, place in (
        ("SELECT k, rand() + 1 AS r FROM o", "`rand` is not supported in a view", "in `RAND() + 1`"),
        ("SELECT k FROM o WHERE x = 1 AND rand() < 0.5", "`rand` is not supported", "RAND() < 0.5"),
        ("SELECT uuid() AS u FROM o", "`uuid` is not supported in a view", "in `UUID()`"),
        ("SELECT o.k FROM o JOIN l ON o.k = l.k AND rand() > 0.5", "`rand` is not supported", "RAND() > 0.5"),
        ("SELECT k FROM o GROUP BY k HAVING rand() > 0.5", "`rand` is not supported", "RAND() > 0.5"),
        ("SELECT k FROM o ORDER BY rand() LIMIT 1", "`rand` is not supported", "in `RAND()"),
        ("SELECT sum(x) OVER (ORDER BY rand()) AS s FROM o", "`rand` is not supported", "in `RAND()"),
        ("SELECT k, (SELECT max(rand()) FROM l) AS r FROM o", "`rand` is not supported", "in `"),
        ("SELECT shuffle(xs) AS xs FROM o", "`shuffle` is not supported", "in `SHUFFLE(xs)`"),
        ("SELECT k, current_timestamp() AS t FROM o", "`current_timestamp` is not supported here", "in `CURRENT_TIME"),
        ("SELECT CASE WHEN ts > now() THEN 1 END AS c FROM o", "is not supported here", "in `CASE WHEN ts >"),
        ("SELECT current_date() AS d FROM o", "`CURRENT_DATE` is not supported in a view", "in `CURRENT_DATE"),
    )
]


@pytest.mark.parametrize(
    "case", [*WINDOWS, *FRAMES, *LIMITS, *CORRELATIONS, *RECURSIONS, *CHANGING], ids=lambda case: case[0]
)
def test_a_query_is_refused_with_the_thing_the_place_and_the_remedy(case: Case) -> None:
    query, kind, fact, detail, hint = case
    driver = flow(*SOURCES)
    with pytest.raises(kind) as raised:
        driver.sql(f"CREATE VIEW v AS {query}")
    error = raised.value
    assert fact in error.fact
    assert detail in str(error.detail)
    assert hint in str(error.hint)
    assert not driver.catalog.views


@pytest.mark.parametrize(
    "query", ["SELECT k FROM o LIMIT ALL", "WITH RECURSIVE r AS (SELECT k FROM o) SELECT k FROM r"]
)
def test_what_only_looks_like_it_is_accepted(query: str) -> None:
    driver = flow(*SOURCES, query)
    driver.insert("o", {"k": 1, "x": 1, "s": "", "ts": None, "xs": []})
    driver.step()
    assert driver.table("v") == [{"k": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, explode(sequence(1, x)) AS n FROM o",
        "SELECT k, n FROM o LATERAL VIEW explode(sequence(1, x)) AS n",
        "SELECT o.k, e.n FROM o, LATERAL explode(sequence(1, o.x)) AS e(n)",
        "SELECT k, a, b FROM o LATERAL VIEW explode(xs) AS a LATERAL VIEW explode(xs) AS b",
    ],
)
def test_an_explode_that_makes_too_many_rows_reaches_a_cap(query: str) -> None:
    """Known only when the rows are there: nothing is committed, and the flow continues with smaller ones."""
    driver = Driver(caps={"max_repeated_rows": 1000})
    for statement in (*SOURCES, f"CREATE VIEW v AS {query}"):
        driver.sql(statement)
    large = {"k": 1, "x": 2000, "s": "", "ts": None, "xs": list(range(50))}
    driver.insert("o", large)
    with pytest.raises(LimitReached) as raised:
        driver.step()
    assert raised.value.fact == "rows are repeated too often in one step"
    assert "max_repeated_rows" in str(raised.value.hint) and raised.value.detail
    assert driver.epoch == -1 or not driver.table("v")
    driver.insert("o", {**large, "x": 4, "xs": [1, 2]})
    driver.step()
    assert len(driver.table("v")) == 4
