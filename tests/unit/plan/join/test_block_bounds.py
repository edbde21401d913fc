"""Bounds of conditions: whatever pair satisfies one satisfies its bounds, for all pairs of small times."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import pytest

from rejoinder.ir.catalog import Catalog
from rejoinder.ir.expressions.monotone import apply_steps
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.plan.join.block_bounds import all_bounds
from rejoinder.plan.normalize import normalize
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.statements.statement_parser import CreateSource, parse_statements
from rejoinder.testing import Driver

DAY = 86_400_000_000
STEP = {"DATE": 1, "TIMESTAMP": DAY // 4, "TIMESTAMP_NTZ": DAY // 4}
"""How far the times that are tried are apart, in the unit of their type; of integers, 1."""
FAR = {"DATE": 2, "TIMESTAMP": DAY, "TIMESTAMP_NTZ": DAY}
MADE = {"DATE": "DATE '1970-01-01' + CAST({0} AS INT)", "TIMESTAMP": "make_timestamp({0})"}
NEAR = range(-25, 26)

CASES = [
    ("INT", "BIGINT", "b.t BETWEEN a.t AND a.t + 3"),
    ("TINYINT", "SMALLINT", "b.t > a.t - 2 AND a.t + 3L > b.t"),
    ("INT", "INT", "CAST(b.t AS BIGINT) BETWEEN a.t AND CAST(a.t AS SMALLINT) + 3"),
    ("BIGINT", "INT", "a.t = b.t"),
    ("INT", "INT", "-a.t >= -b.t - 5 AND NOT b.t > a.t"),
    ("INT", "INT", "b.t - a.t BETWEEN -2 AND 5"),
    ("INT", "BIGINT", "a.t DIV 10 = b.t DIV 10"),
    ("INT", "INT", "a.t DIV 7 - 1 < b.t DIV 10 AND b.t DIV 10 <= a.t DIV 7"),
    ("INT", "INT", "(a.t + 3) DIV 4 = (b.t - 1) DIV 4"),
    ("DATE", "DATE", "b.t BETWEEN a.t AND date_add(a.t, 3)"),
    ("DATE", "DATE", "b.t BETWEEN date_sub(a.t, 2) AND a.t + 3"),
    ("DATE", "DATE", "b.t > a.t - 2 AND b.t < a.t + INTERVAL 36 HOURS"),
    ("DATE", "DATE", "datediff(b.t, a.t) BETWEEN 0 AND 3"),
    ("DATE", "TIMESTAMP", "b.t BETWEEN a.t AND a.t + INTERVAL 3 DAYS"),
    ("DATE", "TIMESTAMP", "b.t > a.t + INTERVAL 6 HOURS AND a.t + 3 > b.t"),
    ("DATE", "TIMESTAMP", "b.t = a.t"),
    ("TIMESTAMP", "DATE", "datediff(b.t, a.t) BETWEEN -1 AND 2"),
    ("TIMESTAMP", "TIMESTAMP_NTZ", "b.t BETWEEN a.t - INTERVAL 1 HOUR AND a.t"),
    ("TIMESTAMP", "TIMESTAMP", "CAST(a.t AS DATE) = CAST(b.t AS DATE)"),
    ("TIMESTAMP", "TIMESTAMP", "to_date(b.t) BETWEEN to_date(a.t) - 1 AND to_date(a.t) + 2"),
    ("TIMESTAMP", "TIMESTAMP", "datediff(b.t, a.t) < 2 AND datediff(a.t, b.t) <= 1"),
    ("TIMESTAMP", "TIMESTAMP", "b.t BETWEEN timestampadd(HOUR, -7, a.t) AND dateadd(DAY, 1, a.t)"),
    ("TIMESTAMP", "TIMESTAMP", "timestampdiff(DAY, a.t, b.t) BETWEEN 0 AND 2"),
    ("TIMESTAMP", "TIMESTAMP", "timestampdiff(DAY, a.t, b.t) = -1"),
    ("TIMESTAMP", "DATE", "timestampdiff(HOUR, a.t, b.t) < 30 AND -7 < timestampdiff(HOUR, a.t, b.t)"),
    ("TIMESTAMP", "DATE", "date_trunc('DAY', a.t) = b.t"),
    ("DATE", "TIMESTAMP", "TUMBLE(a.t, INTERVAL 2 DAYS) = TUMBLE(b.t, INTERVAL 2 DAYS)"),
]
SUBQUERIES = [
    ("INT", "BIGINT", "t + 3", "b.t BETWEEN a.t AND a.t + 5"),
    ("BIGINT", "INT", "3 + t", "b.t BETWEEN a.t - 1 AND a.t + 5"),
    ("DATE", "DATE", "t - 3", "b.t BETWEEN a.t AND a.t + 5"),
    ("DATE", "TIMESTAMP", "t + INTERVAL 3 DAYS", "b.t BETWEEN a.t AND a.t + INTERVAL 5 HOURS"),
    ("TIMESTAMP", "TIMESTAMP", "CAST(t AS DATE)", "CAST(b.t AS DATE) = a.t"),
    ("INT", "INT", "t DIV 6", "b.t BETWEEN a.t * 1 AND a.t + 5"),
]


def check(kinds: tuple[str, str], made: str, condition: str) -> None:
    """Try all pairs: bounds hold wherever the condition does, both ways, and are not far from what is needed."""
    catalog = Catalog()
    for name, kind in zip("ab", kinds, strict=True):
        (statement,) = parse_statements(f"CREATE STREAM {name} (t {kind})")
        assert isinstance(statement, CreateSource)
        catalog = catalog.with_relation(statement.source)
    query = bind(f"SELECT 1 AS one FROM (SELECT {made} AS t FROM a) AS a JOIN b ON {condition}", catalog)
    block = normalize(query).block
    found = all_bounds(block.predicates)
    assert set(found) == {("0.t", "1.t"), ("1.t", "0.t")}
    tried = [[value * STEP.get(kind, 1) for value in NEAR] for kind in kinds]
    texts = [MADE.get(kind.removesuffix("_NTZ"), "CAST({0} AS " + kind + ")").format("v") for kind in kinds]
    both = " CROSS JOIN ".join(
        f'(SELECT v AS v{at}, {texts[at]} AS "{at}.t" FROM (SELECT unnest({tried[at]}) AS v))' for at in (0, 1)
    )
    where = " AND ".join(f"({duckdb_text(predicate.expression.node)})" for predicate in block.predicates)
    pairs = duckdb.connect().execute(f"SELECT v0, v1 FROM {both} WHERE {where}").fetchall()
    assert pairs
    for (later, _), steps in found.items():
        at = int(later[0])
        least = {value: apply_steps(value, steps) for value in tried[1 - at]}
        assert 0 <= min(pair[at] - least[pair[1 - at]] for pair in pairs) < FAR.get(kinds[at], 11)


@pytest.mark.parametrize("case", CASES, ids=[f"{one} {two} {text}" for one, two, text in CASES])
def test_every_pair_is_within_the_bounds(case: tuple[str, str, str]) -> None:
    check(case[:2], "t", case[2])


@pytest.mark.parametrize("case", SUBQUERIES, ids=[f"{one} {two} {made}" for one, two, made, _ in SUBQUERIES])
def test_bounds_go_through_what_a_subquery_makes_of_a_time(case: tuple[str, str, str, str]) -> None:
    check(case[:2], case[2], case[3])


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("TIMESTAMP", "b.t BETWEEN a.t AND a.t - INTERVAL 1 HOUR"),
        ("TIMESTAMP", "b.t BETWEEN a.t + INTERVAL 1 HOUR AND a.t"),
        ("DATE", "b.t BETWEEN a.t AND a.t + INTERVAL -1 DAY"),
        ("INT", "b.t BETWEEN a.t + 3 AND a.t + 2"),
    ],
)
@pytest.mark.parametrize("on", ["a.k = b.k AND", ""])
@pytest.mark.parametrize(("join", "rows"), [("JOIN", []), ("LEFT JOIN", [0, 1, 2, 3]), ("ANTI JOIN", [0, 1, 2, 3])])
def test_reversed_ends_are_a_condition_that_is_never_true(
    kind: str, condition: str, on: str, join: str, rows: list[int]
) -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM a (k INT, t {kind}); CREATE STREAM b (k INT, t {kind})")
    driver.sql(f"CREATE VIEW v AS SELECT a.k FROM a {join} b ON {on} {condition}")
    driver.sql(f"CREATE VIEW other AS SELECT a.k FROM a JOIN b ON {on} NOT ({condition})")
    assert "no pair can satisfy" in driver.sql("EXPLAIN v")
    for k in range(4):
        time = {"TIMESTAMP": datetime(2024, 1, 1, k), "DATE": date(2024, 1, 1 + k), "INT": k}[kind]
        driver.insert("a", {"k": k, "t": time})
        driver.insert("b", {"k": k, "t": time})
        driver.step()
    assert sorted(row["k"] for row in driver.table("v")) == rows
    assert len(driver.table("other")) == (4 if on else 16)
