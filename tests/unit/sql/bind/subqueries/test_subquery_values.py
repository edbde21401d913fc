"""Subqueries as values: which joins they become, and that equal ones are one."""

from __future__ import annotations

import pytest

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.sql.bind.bind_query import bind
from tests.unit.sql.trees import CATALOG, tree


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # a total is one row: joined without a key, and with one where it is compared
        ("SELECT (SELECT max(z) FROM c) AS m FROM a", "project(project(inner(a, distinct | )))"),
        (
            "SELECT k FROM a WHERE x = (SELECT max(z) FROM c)",
            'project(project(inner(a, distinct | )))[(a.x = "4.subquery")]',
        ),
        # a linked aggregate is grouped by what links it
        (
            "SELECT (SELECT max(z) FROM c WHERE c.k = a.k) AS m FROM a",
            'project(project(left(a, aggregate | (a.k = "5.key"))))',
        ),
        # no row of NULLs satisfies the comparison, so the join is an inner one
        (
            "SELECT k FROM a WHERE x < (SELECT avg(z) FROM c WHERE c.k = a.k)",
            'project(project(inner(a, aggregate | (a.k = "5.key"))))[(CAST(a.x AS DOUBLE) < "4.subquery")]',
        ),
        # zero of COUNT is not NULL
        (
            "SELECT k FROM a WHERE x < (SELECT count(*) FROM c WHERE c.k = a.k)",
            'project(project(left(a, project(aggregate) | (a.k = "5.key"))))[(CAST(a.x AS BIGINT) < "4.subquery")]',
        ),
        # other links than equalities: for each value of the domain
        (
            "SELECT (SELECT max(z) FROM c WHERE c.k < a.k) AS m FROM a",
            'project(project(left(a, aggregate | (a.k IS NOT DISTINCT FROM "6.key"))))',
        ),
        # at most one row
        (
            "SELECT (SELECT z FROM c WHERE c.k = a.k) AS m FROM a",
            'project(project(left(a, atmostone | (a.k = "4.key"))))',
        ),
    ],
)
def test_a_subquery_as_a_value_is_a_join(query: str, expected: str) -> None:
    assert tree(query) == expected


def test_equal_subqueries_of_one_query_are_one_join() -> None:
    total = "(SELECT max(z) FROM c WHERE c.k = a.k)"
    assert tree(f"SELECT {total} AS m, {total} + 1 AS n FROM a WHERE {total} > x OR x = 1").count("left(") == 1


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("SELECT x < ANY (SELECT z FROM c) FROM a", "`x < ANY (SELECT z FROM c)` needs a name"),
        ("SELECT max(x) + (SELECT max(z) FROM c) FROM a", "`MAX(x) + (SELECT MAX(z) FROM c)` needs a name"),
        (
            "SELECT a.k FROM a FULL JOIN c ON EXISTS (SELECT 1 FROM g WHERE g.w BETWEEN a.x AND c.z)",
            "a subquery that reads both sides of a FULL JOIN is not supported in its ON",
        ),
        (
            "SELECT a.k FROM a RIGHT JOIN LATERAL (SELECT 1 AS o FROM c) q ON TRUE",
            "RIGHT JOIN LATERAL is not supported",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_detail_and_hint(query: str, fact: str) -> None:
    with pytest.raises(Unsupported) as raised:
        bind(query, CATALOG)
    assert raised.value.fact == fact
    assert raised.value.detail and raised.value.hint


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("(SELECT max(z) FROM c)", "scalarsubquery()"),
        ("1 + (SELECT max(z) FROM c WHERE c.k = a.k AND c.z < a.x AND a.k > 0)", "(1 + scalarsubquery(k, x, k))"),
        ("EXISTS (SELECT 1 FROM c WHERE c.k = a.k)", "exists(k)"),
        ("NOT EXISTS (SELECT 1 FROM c)", "(NOT exists())"),
        ("x IN (SELECT z FROM c WHERE c.k = a.k)", "(x IN (listquery(k)))"),
        ("x NOT IN (SELECT z FROM c)", "(NOT (x IN (listquery())))"),
        ("(k, x) IN (SELECT k, z FROM c)", "(named_struct('k', k, 'x', x) IN (listquery()))"),
        ("sum((SELECT max(z) FROM c))", "sum(scalarsubquery())"),
    ],
)
def test_a_subquery_without_a_name_gets_that_of_spark(item: str, name: str) -> None:
    assert bind(f"SELECT {item} FROM a", CATALOG).schema.names == [name]


def test_lateral_needs_a_relation_left_of_it() -> None:
    with pytest.raises(InvalidSql, match="LATERAL has no relation left of it"):
        bind("SELECT o FROM LATERAL (SELECT 1 AS o FROM c) q", CATALOG)
