"""Subqueries in every place of a query, over random changes of three small relations, against DuckDB."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM
from tests.oracle.scenario import Action, CreateView, Scenario, play
from tests.oracle.test_written_queries import SPECS, flows

VALUES = {
    "total": "SELECT k, (SELECT max(y) FROM b) AS m FROM a",
    "total of nothing": "SELECT k, (SELECT count(*) FROM b WHERE y > 100) AS m FROM a",
    "compared with a total": "SELECT k, x FROM a WHERE x > (SELECT avg(y) FROM b)",
    "equal to a total": "SELECT k, x FROM a WHERE k = (SELECT max(y) FROM b)",
    "total in an expression": "SELECT k + (SELECT count(*) FROM b) * 2 AS m FROM a",
    "totals of totals": "SELECT k, (SELECT max(y) + (SELECT min(z) FROM c) FROM b) AS m FROM a",
    "two totals": "SELECT k, (SELECT max(y) FROM b) - (SELECT min(y) FROM b) AS m FROM a",
    "one total twice": "SELECT k, (SELECT max(y) FROM b) AS m FROM a WHERE x < (SELECT max(y) FROM b)",
    "a total in HAVING": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > (SELECT count(*) FROM c)",
    "a total beside groups": "SELECT k, count(*) - (SELECT count(*) FROM c) AS n FROM a GROUP BY k",
    "a total in an aggregate": "SELECT k, sum(x - (SELECT count(*) FROM c)) AS n FROM a GROUP BY k",
    "a total in CASE": "SELECT k, CASE WHEN x > 1 THEN (SELECT max(y) FROM b) ELSE 0 END AS m FROM a",
    "sum": "SELECT k, x, (SELECT sum(y) FROM b WHERE b.k = a.k) AS m FROM a",
    "count": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k) AS m FROM a",
    "count of a column": "SELECT k, x, (SELECT count(y) FROM b WHERE b.k = a.k) AS m FROM a",
    "count and sum in one": "SELECT k, x, (SELECT count(*) + sum(y) FROM b WHERE b.k = a.k) AS m FROM a",
    "coalesce inside": "SELECT k, x, (SELECT coalesce(sum(y), -1) FROM b WHERE b.k = a.k) AS m FROM a",
    "count, filtered": "SELECT k, x FROM a WHERE 0 = (SELECT count(*) FROM b WHERE b.k = a.k)",
    "count beside": "SELECT k, x FROM a WHERE x >= (SELECT count(*) FROM b WHERE b.k = a.k)",
    "avg, filtered": "SELECT k, x FROM a WHERE x < (SELECT avg(y) FROM b WHERE b.k = a.k)",
    "min equals": "SELECT k, x FROM a WHERE x = (SELECT min(y) FROM b WHERE b.k = a.k)",
    "min of a join": "SELECT k, x FROM a WHERE x = (SELECT min(y) FROM b, c WHERE b.k = a.k AND b.y = c.k)",
    "linked by two columns": "SELECT k, x, (SELECT max(f) FROM b WHERE b.k = a.k AND b.y = a.x) AS m FROM a",
    "linked by an expression": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k + 1 = a.k + a.x) AS m FROM a",
    "linked null-safe": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k IS NOT DISTINCT FROM a.k) AS m FROM a",
    "linked by an order": "SELECT k, x, (SELECT count(*) FROM b WHERE b.y < a.x) AS m FROM a",
    "linked by both": "SELECT k, x, (SELECT sum(y) FROM b WHERE b.k = a.k AND b.y < a.x) AS m FROM a",
    "linked by OR": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k OR b.y = a.x) AS m FROM a",
    "outer columns alone": "SELECT k, x, (SELECT count(*) FROM b WHERE a.x > 1) AS m FROM a",
    "outer column in an aggregate": "SELECT k, x, (SELECT sum(y * a.x) FROM b WHERE b.k = a.k) AS m FROM a",
    "outer column beside": "SELECT k, x, (SELECT max(y) + a.x FROM b WHERE b.k = a.k) AS m FROM a",
    "having": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k HAVING count(*) > 1) AS m FROM a",
    "having of nothing": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k HAVING count(*) < 1) AS m FROM a",
    "distinct aggregate": "SELECT k, x, (SELECT count(DISTINCT y) FROM b WHERE b.k = a.k) AS m FROM a",
    "only row by key": "SELECT k, x, (SELECT z FROM c WHERE c.k = a.k) AS m FROM a",
    "only row and more": "SELECT k, x, (SELECT z + a.x FROM c WHERE c.k = a.k) AS m FROM a",
    "constant by key": "SELECT k, x, (SELECT 7 FROM c WHERE c.k = a.k) AS m FROM a",
    "only row, filtered": "SELECT k, x FROM a WHERE x = (SELECT z FROM c WHERE c.k = a.k)",
    "only distinct row": "SELECT k, x, (SELECT DISTINCT k FROM b WHERE b.k = a.k) AS m FROM a",
    "only group": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k GROUP BY b.k) AS m FROM a",
    "union inside": "SELECT k, x, (SELECT sum(q) FROM (SELECT y AS q FROM b WHERE b.k = a.k UNION ALL "
    "SELECT z FROM c WHERE c.k = a.k) u) AS m FROM a",
    "union of other links": "SELECT k, x, (SELECT count(q) FROM (SELECT y AS q FROM b WHERE b.k < a.k UNION "
    "SELECT z FROM c) u) AS m FROM a",
    "except inside": "SELECT k, x, (SELECT count(*) FROM (SELECT y FROM b WHERE b.k = a.k EXCEPT "
    "SELECT z FROM c WHERE c.k = a.x) u) AS m FROM a",
    "left join inside": "SELECT k, x, (SELECT count(c.z) FROM b LEFT JOIN c ON c.k = b.y AND c.z > a.x "
    "WHERE b.k = a.k) AS m FROM a",
    "full join inside": "SELECT k, x, (SELECT count(*) FROM b FULL JOIN c ON c.k = b.y AND b.k = a.k) AS m FROM a",
    "in ON of an inner join": "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k AND b.y = (SELECT max(z) FROM c WHERE c.k = a.k)",
    "in ON, right side": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.y >= "
    "(SELECT count(*) FROM c WHERE c.k = b.y)",
    "in ON, left side": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.x > "
    "(SELECT count(*) FROM c WHERE c.k = a.k)",
    "in ON, total": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.y < (SELECT max(z) FROM c)",
    "in ON, both sides": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND 0 < "
    "(SELECT count(*) FROM c WHERE c.z BETWEEN a.x AND b.y)",
    "in ON of FULL": "SELECT a.k, b.y FROM a FULL JOIN b ON a.k = b.k AND b.y = (SELECT max(z) FROM c WHERE c.k = b.y)",
    "over a LEFT JOIN": "SELECT a.k, (SELECT count(*) FROM c WHERE c.k = b.y) AS m FROM a LEFT JOIN b ON a.k = b.k",
    "over groups": "SELECT k, (SELECT count(*) FROM b WHERE b.k = a.k) AS m, sum(x) AS s FROM a GROUP BY k",
    "over distinct rows": "SELECT DISTINCT k, (SELECT count(*) FROM b WHERE b.k = a.k) AS m FROM a",
    "over a subquery": "SELECT k, m FROM (SELECT k, (SELECT count(*) FROM b WHERE b.k = a.k) AS m FROM a) q WHERE m > 1",
    "two levels": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k AND b.y = "
    "(SELECT max(z) FROM c WHERE c.k = b.y)) AS m FROM a",
    "two levels, to the outermost": "SELECT k, x, (SELECT count(*) FROM b WHERE b.y > "
    "(SELECT count(*) FROM c WHERE c.k = a.k AND c.z = b.y)) AS m FROM a",
    "two levels, only the outermost": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = "
    "(SELECT max(z) FROM c WHERE c.k = a.k)) AS m FROM a",
    "with a CTE": "SELECT k, x, (WITH w AS (SELECT y FROM b WHERE b.k = a.k) SELECT sum(y) FROM w) AS m FROM a",
    "self": "SELECT k, x FROM a o WHERE x = (SELECT max(x) FROM a i WHERE i.k = o.k)",
    "in a group's row": "SELECT k FROM a GROUP BY k HAVING sum(x) > (SELECT sum(y) FROM b WHERE b.k = a.k)",
}

TRUTHS = {
    "EXISTS": "SELECT k, x, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS q FROM a",
    "NOT EXISTS": "SELECT k, x, NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > a.x) AS q FROM a",
    "EXISTS, not linked": "SELECT k, EXISTS (SELECT 1 FROM b WHERE y = 3) AS q FROM a",
    "EXISTS under OR": "SELECT k, x FROM a WHERE x = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "two EXISTS under OR": "SELECT k, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) "
    "OR EXISTS (SELECT 1 FROM c WHERE c.z = a.x)",
    "EXISTS of an aggregate": "SELECT k, x FROM a WHERE EXISTS (SELECT count(*) FROM b WHERE b.k = a.k)",
    "EXISTS of a group": "SELECT k, x FROM a WHERE EXISTS (SELECT y FROM b WHERE b.k = a.k GROUP BY y HAVING count(*) > 1)",
    "NOT EXISTS of an aggregate": "SELECT k, x FROM a WHERE NOT EXISTS "
    "(SELECT count(*) FROM b WHERE b.k = a.k HAVING count(*) > 1)",
    "IN": "SELECT k, x, x IN (SELECT y FROM b) AS q FROM a",
    "IN, linked": "SELECT k, x, x IN (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    "NOT IN": "SELECT k, x, x NOT IN (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    "IN under OR": "SELECT k, x FROM a WHERE k = 2 OR x IN (SELECT y FROM b WHERE b.k = a.k)",
    "NOT IN under OR": "SELECT k, x FROM a WHERE k = 2 OR x NOT IN (SELECT y FROM b)",
    "IN IS NULL": "SELECT k, x FROM a WHERE (x IN (SELECT y FROM b WHERE b.k = a.k)) IS NULL",
    "IN of an aggregate": "SELECT k, x FROM a WHERE x IN (SELECT count(*) FROM b WHERE b.k = a.k)",
    "NOT IN of an aggregate": "SELECT k, x FROM a WHERE x NOT IN (SELECT max(y) FROM b WHERE b.k = a.k)",
    "IN, linked by an order": "SELECT k, x, x IN (SELECT y FROM b WHERE b.k < a.k) AS q FROM a",
    "IN in CASE": "SELECT k, CASE WHEN x IN (SELECT y FROM b) THEN 'in' WHEN EXISTS (SELECT 1 FROM c WHERE c.k = a.k) "
    "THEN 'c' ELSE 'out' END AS q FROM a",
    "IN with a total": "SELECT k, x FROM a WHERE (SELECT max(y) FROM b) IN (SELECT z FROM c)",
    "IN in a group": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING k IN (SELECT y FROM b) OR count(*) > 2",
    "IN in an aggregate": "SELECT k, count(CASE WHEN x IN (SELECT y FROM b WHERE b.k = a.k) THEN 1 END) AS n FROM a GROUP BY k",
    "= ANY": "SELECT k, x, x = ANY (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    "<> ALL": "SELECT k, x FROM a WHERE x <> ALL (SELECT y FROM b WHERE b.k = a.k)",
    "< ANY": "SELECT k, x, x < ANY (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    ">= ANY": "SELECT k, x, x >= ANY (SELECT y FROM b) AS q FROM a",
    "< ALL": "SELECT k, x, x < ALL (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    ">= ALL": "SELECT k, x FROM a WHERE x >= ALL (SELECT y FROM b WHERE b.k = a.k)",
    "= ALL": "SELECT k, x, x = ALL (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    "<> ANY": "SELECT k, x, x <> ANY (SELECT y FROM b WHERE b.k = a.k) AS q FROM a",
    "levels": "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS "
    "(SELECT 1 FROM c WHERE c.k = a.x AND c.z = b.y))",
    "levels with NOT": "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND NOT EXISTS "
    "(SELECT 1 FROM c WHERE c.k = a.x AND c.z = b.y))",
    "an outer value in a subquery": "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.x IN (SELECT z FROM c))",
    "in ON": "SELECT a.k, c.z FROM a LEFT JOIN c ON a.k = c.k AND EXISTS (SELECT 1 FROM b WHERE b.k = c.z)",
    "in ON under OR": "SELECT a.k, c.z FROM a JOIN c ON a.k = c.k AND (a.x = 1 OR c.z IN (SELECT y FROM b))",
}

LATERALS = {
    "comma": "SELECT a.k, q.y FROM a, LATERAL (SELECT y FROM b WHERE b.k = a.k) q",
    "join": "SELECT a.k, q.y FROM a JOIN LATERAL (SELECT y, k FROM b WHERE b.y < a.x) q ON q.k = a.k",
    "left join": "SELECT a.k, a.x, q.y FROM a LEFT JOIN LATERAL (SELECT y FROM b WHERE b.k = a.k AND b.y < a.x) q ON TRUE",
    "left join with ON": "SELECT a.k, q.s FROM a LEFT JOIN LATERAL (SELECT y + a.x AS s, y FROM b WHERE b.k = a.k) q ON q.y > 1",
    "aggregate": "SELECT a.k, q.n, q.s FROM a, LATERAL (SELECT count(*) AS n, sum(y) AS s FROM b WHERE b.k = a.k) q",
    "left join of an aggregate": "SELECT a.k, q.n FROM a LEFT JOIN LATERAL (SELECT count(*) AS n FROM b WHERE b.k = a.k) q ON TRUE",
    "left join of an aggregate with ON": "SELECT a.k, q.n FROM a LEFT JOIN LATERAL "
    "(SELECT count(*) AS n FROM b WHERE b.k = a.k) q ON q.n > 0",
    "join of an aggregate with ON": "SELECT a.k, q.n FROM a JOIN LATERAL (SELECT count(*) AS n FROM b WHERE b.k = a.k) q ON q.n > 0",
    "groups": "SELECT a.k, q.y, q.n FROM a, LATERAL (SELECT y, count(*) AS n FROM b WHERE b.k = a.k GROUP BY y) q",
    "groups with an outer key": "SELECT a.k, q.m, q.n FROM a, LATERAL (SELECT y + a.x AS m, count(*) AS n FROM b GROUP BY y + a.x) q",
    "distinct": "SELECT a.k, q.y FROM a, LATERAL (SELECT DISTINCT y FROM b WHERE b.k <= a.k) q",
    "union": "SELECT a.k, q.y FROM a, LATERAL (SELECT y FROM b WHERE b.k = a.k UNION SELECT a.x) q",
    "two": "SELECT a.k, q.y, r.z FROM a, LATERAL (SELECT y FROM b WHERE b.k = a.k) q, LATERAL (SELECT z FROM c WHERE c.k = q.y) r",
    "two levels": "SELECT a.k, q.y, q.z FROM a, LATERAL (SELECT y, r.z FROM b, LATERAL "
    "(SELECT z FROM c WHERE c.k = b.y AND c.z <> a.x) r WHERE b.k = a.k) q",
    "in a subquery": "SELECT k, (SELECT sum(q.z) FROM b, LATERAL (SELECT z FROM c WHERE c.k = b.y AND c.z > a.x) q "
    "WHERE b.k = a.k) AS m FROM a",
    "with a scalar inside": "SELECT a.k, q.m FROM a, LATERAL (SELECT y + (SELECT count(*) FROM c WHERE c.k = a.x) AS m "
    "FROM b WHERE b.k = a.k) q",
    "with EXISTS inside": "SELECT a.k, q.y FROM a, LATERAL (SELECT y FROM b WHERE EXISTS "
    "(SELECT 1 FROM c WHERE c.k = b.y AND c.z = a.x)) q",
}
LATERALS.pop("union")  # needs a query without FROM

SEVERAL_COLUMNS = {
    "IN": (
        "SELECT k, x, (k, x) IN (SELECT k, z FROM c) AS q FROM a",
        "SELECT k, x, CASE WHEN EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.z = a.x) THEN TRUE WHEN EXISTS "
        "(SELECT 1 FROM c WHERE ifnull(c.k = a.k, TRUE) AND ifnull(c.z = a.x, TRUE)) THEN NULL ELSE FALSE END AS q FROM a",
    ),
    "NOT IN of three, linked": (
        "SELECT k, x FROM a WHERE (k, x, s) NOT IN (SELECT i.k, i.x, i.s FROM a i WHERE i.d <> a.d)",
        "SELECT k, x FROM a WHERE NOT EXISTS (SELECT 1 FROM a i WHERE i.d <> a.d AND ifnull(i.k = a.k, TRUE) "
        "AND ifnull(i.x = a.x, TRUE) AND ifnull(i.s = a.s, TRUE))",
    ),
}


def _play(view: CreateView, actions: tuple[Action, ...], parallelism: int) -> None:
    play(Scenario(SPECS, tuple(view if isinstance(a, CreateView) else a for a in actions), parallelism))


@pytest.mark.parametrize("form", VALUES)
@budget(2)
@given(actions=flows(), parallelism=PARALLELISM)
def test_a_subquery_as_a_value(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    _play(CreateView("v", VALUES[form]), actions, parallelism)


@pytest.mark.parametrize("form", TRUTHS)
@budget(2)
@given(actions=flows(), parallelism=PARALLELISM)
def test_a_subquery_as_a_truth_value(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    _play(CreateView("v", TRUTHS[form]), actions, parallelism)


@pytest.mark.parametrize("form", LATERALS)
@budget(2)
@given(actions=flows(), parallelism=PARALLELISM)
def test_lateral(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    _play(CreateView("v", LATERALS[form]), actions, parallelism)


@pytest.mark.parametrize("form", SEVERAL_COLUMNS)
@budget(3)
@given(actions=flows(), parallelism=PARALLELISM)
def test_several_columns_at_once(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    _play(CreateView("v", *SEVERAL_COLUMNS[form]), actions, parallelism)
