"""The normal form: nested queries are flattened into one block; equal subqueries of queries are one relation."""

from __future__ import annotations

import pytest

from rejoinder.ir.identities import DerivedRows
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.plan.operations.distinct import Distinct
from rejoinder.plan.operations.union import Union
from tests.unit.plan.queries import normal


def inputs(query: str) -> list[str]:
    return [str(each.relation) for each in normal(query).block.inputs]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k FROM a", ["a"]),
        ("SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k", ["a", "b", "c"]),
        (
            "SELECT q.k FROM (SELECT a.k FROM a JOIN b ON a.k = b.k WHERE b.y > 1) q JOIN c ON q.k = c.k",
            ["a", "b", "c"],
        ),
        ("WITH w AS (SELECT k + 1 AS n FROM a) SELECT l.n FROM w l JOIN w r ON l.n = r.n", ["a", "a"]),
    ],
)
def test_joins_filters_and_projections_are_flattened_into_one_block(query: str, expected: list[str]) -> None:
    assert inputs(query) == expected
    assert normal(query).derived == {}


def test_columns_are_numbered_by_input() -> None:
    block = normal("SELECT r.k AS n, l.x FROM a l JOIN a r ON l.x = r.k WHERE l.s > 0").block
    assert [(name, duckdb_text(expression.node)) for name, expression in block.outputs] == [
        ("n", '"1.k"'),
        ("x", '"0.x"'),
    ]
    assert [set(predicate.expression.columns) for predicate in block.predicates] == [{"0.x", "1.k"}, {"0.s"}]


def test_computed_columns_are_put_in_place() -> None:
    block = normal("SELECT q.n FROM (SELECT k + x AS n FROM a) q JOIN b ON q.n = b.k WHERE q.n > 3").block
    assert set(block.outputs[0][1].columns) == {"0.k", "0.x"}
    assert set(block.predicates[1].expression.columns) == {"0.k", "0.x"}
    sides = block.predicates[0].equality
    assert sides is not None and [set(side.columns) for side in sides] == [{"0.k", "0.x"}, {"1.k"}]


def test_distinct_and_union_become_relations() -> None:
    form = normal("SELECT DISTINCT k FROM (SELECT k FROM a UNION ALL SELECT y FROM b) u WHERE k > 0")
    assert [made.kind for made in form.derived if isinstance(made, DerivedRows)] == ["union", "distinct"]
    union, distinct = form.derived.values()
    assert (union.operation, distinct.operation) == (Union(), Distinct())
    assert [str(each.relation) for block in union.blocks for each in block.inputs] == ["a", "b"]
    assert [each.relation for each in form.block.inputs] == [distinct.id]


def test_equal_subqueries_are_one_relation() -> None:
    one = normal("SELECT q.k FROM (SELECT DISTINCT a.k FROM a, b WHERE a.k = b.k AND a.x > 1) q JOIN c ON q.k = c.k")
    other = normal("SELECT DISTINCT l.k FROM a AS l JOIN b r ON l.k = r.k WHERE l.x > 1")
    assert list(one.derived) == list(other.derived)
    different = normal("SELECT DISTINCT l.k FROM a AS l JOIN b r ON l.k = r.k WHERE l.x > 2")
    assert list(different.derived) != list(one.derived)


def test_text_in_literals_is_never_taken_for_a_column() -> None:
    block = normal("""SELECT q.t FROM (SELECT '"0.k"' AS t, k FROM a WHERE 'it''s "k"' <> '') q WHERE q.k = 1""").block
    assert block.outputs[0][1].columns == ()
    assert '"0.k"' in duckdb_text(block.outputs[0][1].node)
