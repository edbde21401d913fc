"""EXISTS and IN as conditions: which joins they become, with SQL's NULL rules, and what is refused."""

from __future__ import annotations

import pytest

from rejoinder.errors import AmbiguousName, RejoinderError, TypeMismatch, UnknownName, Unsupported
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.sql.bind.bind_query import bind
from tests.unit.sql.trees import CATALOG, join, tree


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("EXISTS (SELECT 1 FROM c)", "semi(a, c | )"),
        ("NOT EXISTS (SELECT * FROM c)", "anti(a, c | )"),
        ("NOT (NOT (EXISTS (SELECT c.* FROM c)))", "semi(a, c | )"),
        (
            "EXISTS (SELECT NULL FROM c WHERE c.k = a.k AND z > 1)",
            "semi(a, c[(c.z > CAST(1 AS INTEGER))] | (c.K = a.k))",
        ),
        ("NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND z < x)", "anti(a, c | (c.K = a.k) & (c.z < a.x))"),
        ("EXISTS (SELECT x FROM c WHERE a.x = 1)", "semi(a, c | (a.x = CAST(1 AS INTEGER)))"),
        ("EXISTS (SELECT DISTINCT z FROM c WHERE c.k = a.k)", "semi(a, c | (c.K = a.k))"),
        ("x IN (SELECT z FROM c)", "semi(a, c | (a.x = c.z))"),
        ("x IN (SELECT DISTINCT z FROM c WHERE c.k = a.k)", "semi(a, c | (c.K = a.k) & (a.x = c.z))"),
        ("x IN ((SELECT z FROM c))", "semi(a, c | (a.x = c.z))"),
        ("NOT (x NOT IN (SELECT z FROM c))", "semi(a, c | (a.x = c.z))"),
        ("(k, x) IN (SELECT k, z FROM c)", "semi(a, c | (a.k = c.K) & (a.x = c.z))"),
        (
            "x NOT IN (SELECT z FROM c WHERE c.k = a.k)",
            "anti(anti(anti(a, c | (c.K = a.k) & (a.x = c.z)), c | (c.K = a.k) & (a.x IS NULL)), "
            "c[(c.z IS NULL)] | (c.K = a.k))",
        ),
        ("1 NOT IN (SELECT z FROM c)", "anti(anti(a, c | (CAST(1 AS INTEGER) = c.z)), distinct | )"),
        # plain conditions come first, then subqueries in their order
        (
            "EXISTS (SELECT 1 FROM c) AND x > 1 AND (k > 2 AND NOT EXISTS (SELECT 1 FROM g))",
            "anti(semi(a[(a.x > CAST(1 AS INTEGER)) & (a.k > CAST(2 AS INTEGER))], c | ), g | )",
        ),
        # a subquery in a subquery, each with a condition on its outer query
        (
            "EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND z IN (SELECT w FROM g WHERE g.w > c.k))",
            "semi(a, semi(c, g | (g.w > c.K) & (c.z = g.w)) | (c.K = a.k))",
        ),
        # names belong to the innermost relation that has them, also as a field of a struct
        ("EXISTS (SELECT 1 FROM c WHERE k = z)", "semi(a, c[(c.K = c.z)] | )"),
        ("EXISTS (SELECT 1 FROM h WHERE a.k = w)", "semi(a, h[(struct_extract(h.a, 'k') = h.w)] | )"),
        ("x IN (WITH w AS (SELECT z FROM c) SELECT z FROM w)", 'semi(a, project(c) | (a.x = "2.z"))'),
        # the names of its columns are not used
        ("x IN (SELECT z + 1 FROM c)", "semi(a, c | (a.x = (c.z + CAST(1 AS INTEGER))))"),
        ("x IN (SELECT max(z) FROM c)", 'semi(a, project(aggregate) | (a.x = "2.v0"))'),
        ("x IN (SELECT z FROM c UNION ALL SELECT w FROM g)", 'semi(a, setoperation | (a.x = "3.z"))'),
        (
            "EXISTS (SELECT 1 FROM c LEFT JOIN g ON g.w = c.z WHERE c.k = a.k AND g.w IS NULL)",
            "semi(a, left(c, g | (g.w = c.z))[(g.w IS NULL)] | (c.K = a.k))",
        ),
    ],
)
def test_a_subquery_in_where_is_a_join(condition: str, expected: str) -> None:
    query = f"SELECT a.k FROM a WHERE {condition}"
    assert tree(query) == expected
    assert bind(query, CATALOG).schema.names == ["k"]


def test_not_in_with_several_columns_is_a_value() -> None:
    text = tree("SELECT k FROM a WHERE (k, x, s) NOT IN (SELECT k, z, 'a' FROM c)")
    assert text.count("left(") == 3  # a row that is equal, one with a NULL, one for values with a NULL
    assert "anti(" not in text


def test_the_subqueries_of_not_in_have_identifiers_of_their_own() -> None:
    outermost = join("SELECT k FROM a WHERE x NOT IN (SELECT z FROM c)")
    scans = []
    while outermost.kind == "anti":
        scans.append(outermost.right)
        if not hasattr(outermost.left, "kind"):
            break
        outermost = outermost.left  # type: ignore[assignment]
    assert len({scan.columns for scan in scans}) == 3  # type: ignore[union-attr]


def test_what_links_a_subquery_is_a_key() -> None:
    link, value = join("SELECT k FROM a WHERE x IN (SELECT z FROM c WHERE c.k = a.k)").predicates
    assert link.equality is not None and [duckdb_text(side.node) for side in link.equality] == ['"1.K"', '"0.k"']
    assert value.equality is not None and [duckdb_text(side.node) for side in value.equality] == ['"0.x"', '"1.z"']


def test_subqueries_see_ctes_and_views_of_the_query_around() -> None:
    query = "WITH w AS (SELECT z FROM c) SELECT k FROM a WHERE x IN (SELECT z FROM w)"
    assert tree(query) == 'semi(a, project(c) | (a.x = "2.z"))'


REFUSED: list[tuple[str, type[RejoinderError], str]] = [
    ("x IN (SELECT k, z FROM c)", TypeMismatch, "IN compares 1 with 2 columns"),
    ("(k, x) IN (SELECT z FROM c)", TypeMismatch, "IN compares 2 with 1 columns"),
    ("s IN (SELECT z FROM c)", TypeMismatch, "`s` and `z` cannot be equal: string against int"),
    ("k > 1 OR s IN (SELECT z FROM c)", TypeMismatch, "`s` and `z` cannot be equal: string against int"),
    ("x = (SELECT k, z FROM c)", TypeMismatch, "a subquery as a value has 2 columns"),
    ("x > ALL (SELECT k, z FROM c)", TypeMismatch, "ANY compares 1 with 2 columns"),
    ("(k, x) > ALL (SELECT k, z FROM c)", Unsupported, "LTE of 2 columns with a subquery is not supported"),
    ("x IN (1, (SELECT z, k FROM c))", TypeMismatch, "a subquery as a value has 2 columns"),
    ("EXISTS (SELECT 1 FROM c WHERE c.nope = a.k)", UnknownName, "there is no column `c.nope`"),
    ("EXISTS (SELECT nope FROM c)", UnknownName, "there is no column `nope`"),
    ("EXISTS (SELECT q.* FROM c)", UnknownName, "there is no relation `q` in this FROM"),
    (
        "x = (SELECT sum(a.x) FROM c)",
        Unsupported,
        "`SUM(a.x)` is an aggregate of the outer query, in a subquery",
    ),
]


@pytest.mark.parametrize(("condition", "error", "fact"), REFUSED, ids=[condition for condition, _, _ in REFUSED])
def test_what_is_not_supported_is_refused_with_detail_and_hint(
    condition: str, error: type[RejoinderError], fact: str
) -> None:
    with pytest.raises(error) as raised:
        bind(f"SELECT k FROM a WHERE {condition}", CATALOG)
    assert type(raised.value) is error
    assert raised.value.fact == fact
    assert raised.value.detail and raised.value.hint


def test_a_correlated_name_that_two_relations_around_have_is_ambiguous() -> None:
    with pytest.raises(AmbiguousName) as raised:
        bind("SELECT a.x FROM a, b WHERE EXISTS (SELECT 1 FROM g WHERE w = k)", CATALOG)
    assert raised.value.fact == "column `k` is ambiguous"


def test_the_nearest_query_around_answers_to_a_name() -> None:
    query = "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM g WHERE g.w = k))"
    assert tree(query) == "semi(a, semi(c, g | (g.w = c.K)) | )"
