"""Trees: equal by structure, put in place of columns, and what is known about them follows from their parts."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest

from rejoinder.ir.expressions.comparisons import Comparison
from rejoinder.ir.expressions.expression import Expression, column, conjunction, literal, renamed, substitute
from rejoinder.ir.expressions.monotone import Monotone, Step
from rejoinder.ir.expressions.nodes import And, Call, Cast, Node, Or
from rejoinder.ir.expressions.operators import compared, is_null, shifted
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument, ScalarOperation
from rejoinder.kernels.duckdb.render import DEEP, duckdb_text, render

INT = pa.int64()


def add(left: Node, right: Node, *, can_fail: bool = False) -> Node:
    return Call(ScalarOperation("+", can_fail=can_fail), (left, right), INT)


def plus_one(name: str) -> Expression:
    return Expression(add(column(name, INT).node, literal(1, INT).node), f"{name} + 1")


def above_one(name: str) -> Expression:
    return Expression(compared(column(name, INT).node, ">", literal(1, INT).node), f"{name} > 1")


@pytest.mark.parametrize("name", ["a", "1.a", 'q"q', "it's", "a, b"])
def test_a_column_is_replaced_wherever_it_stands(name: str) -> None:
    whole = Expression(add(column(name, INT).node, add(column("other", INT).node, column(name, INT).node)))
    result = substitute(whole, {name: plus_one("2.z")})
    assert result.columns == ("2.z", "other")
    assert substitute(whole, {name: column("2.z", INT)}) == renamed(whole, {name: "2.z"})


def test_equality_is_that_of_the_trees_and_not_of_the_text() -> None:
    assert plus_one("a") == Expression(plus_one("a").node, "something else")
    assert len({plus_one("a"), plus_one("a"), plus_one("b")}) == 2
    assert column("a", INT) != column("a", pa.int32()) and literal(1, INT) != literal(True, INT)
    assert literal("1", pa.string()) != literal(1, INT)


def test_what_is_not_mentioned_stays() -> None:
    whole = plus_one("a")
    assert substitute(whole, {"b": column("c", INT)}) is whole
    assert substitute(column("a", INT), {"a": plus_one("b")}) == plus_one("b")


def test_replacements_are_not_replaced_again() -> None:
    whole = Expression(add(column("a", INT).node, column("b", INT).node))
    swapped = substitute(whole, {"a": column("b", INT), "b": column("a", INT)})
    assert duckdb_text(swapped.node) == '("b" + "a")'


def test_comparisons_follow_columns_and_fall_with_expressions() -> None:
    whole = above_one("a")
    assert whole.comparisons == (Comparison("a", "greater", 1),)
    assert renamed(whole, {"a": "z"}).comparisons == (Comparison("z", "greater", 1),)
    assert substitute(whole, {"a": plus_one("z")}).comparisons == ()


def test_a_value_rises_with_what_its_column_rises_with() -> None:
    later = Expression(shifted(column("a", INT).node, 5))
    assert later.monotone == Monotone("a", (Step(5),))
    to_days = ScalarOperation("div", monotone=MonotoneArgument(0, (Step(width=24),)))
    day = Expression(Call(to_days, (column("h", INT).node, literal(24, INT).node), INT))
    assert substitute(later, {"a": day}).monotone == Monotone("h", (Step(width=24), Step(5)))
    assert substitute(later, {"a": literal(1, INT)}).monotone is None


def test_conjunctions() -> None:
    one, two = above_one("a"), Expression(Or([column("b", pa.bool_()).node, is_null(column("a", INT).node)]), "b")
    assert conjunction([]) is None and conjunction([one]) is one
    both = conjunction([one, two])
    assert both is not None and both.columns == ("a", "b") and both.text == "a > 1 AND b"
    assert both.conjuncts == (one, two)
    assert both.comparisons == (), "one of them cannot be answered by Arrow"
    twice = conjunction([one, one])
    assert twice is not None and len(twice.comparisons) == 2


def test_a_conjunct_keeps_its_text_when_the_tree_changes() -> None:
    both = conjunction([above_one("a"), Expression(column("b", pa.bool_()).node, "is b")])
    assert both is not None
    nested = Expression(And([column("c", pa.bool_()).node, column("d", pa.bool_()).node], ["", "is d"]), "c and d")
    replaced = substitute(renamed(both, {"a": "z"}), {"b": nested})
    assert [part.text for part in replaced.conjuncts] == ["a > 1", "is b", "is d"]
    assert [part.columns for part in replaced.conjuncts] == [("z",), ("c",), ("d",)]
    assert replaced == conjunction(replaced.conjuncts), "texts do not count for equality"
    assert pickle.loads(pickle.dumps(replaced)).conjuncts[2].text == "is d"  # noqa: S301
    assert above_one("a").conjuncts == (above_one("a"),)


def test_a_cast_knows_from_its_types_what_can_happen() -> None:
    text, wide = column("s", pa.string()).node, column("a", INT).node
    narrow = Cast(wide, pa.int32())
    assert narrow.can_fail and narrow.monotone == Monotone("a") and narrow != Cast(wide, pa.int32(), is_try=True)
    tried = Cast(wide, pa.int32(), is_try=True)
    assert not tried.can_fail and tried.nullable and tried.monotone is None
    assert not Cast(literal(1, pa.int32()).node, INT).nullable and Cast(text, INT).can_fail
    day = Cast(column("t", pa.timestamp("us")).node, pa.date32())
    assert day.monotone == Monotone("t", (Step(width=86_400_000_000),)) and not day.can_fail


def test_digests_are_made_of_stable_texts() -> None:
    """They are in the names of stored relations: a change here makes states of older versions unreadable."""
    assert Cast(column("a", INT).node, pa.int32()).digest.hex() == "8e7f97e68837b9fd279066fdc22699a9"
    assert plus_one("a").key == "0b41eb80b244848dde13cac0f02f6e9a"


def test_a_predicate_that_may_fail_sees_only_what_earlier_ones_let_through() -> None:
    rest = Call(ScalarOperation("%", can_fail=True), (column("a", INT).node, column("b", INT).node), INT)
    risky = compared(rest, ">", literal(1, INT).node)
    both = conjunction([above_one("b"), Expression(risky)])
    assert both is not None and both.can_fail and "CASE" in duckdb_text(both.node)


def test_what_is_used_often_is_evaluated_once_unless_it_can_fail() -> None:
    def long(*, can_fail: bool) -> Expression:
        node = column("a", INT).node
        for _ in range(50):
            node = add(node, column("b", INT).node, can_fail=can_fail)
        return Expression(node)

    twice = Expression(add(column("x", INT).node, column("x", INT).node))
    assert duckdb_text(substitute(twice, {"x": long(can_fail=False)}).node).count('"b"') == 50
    assert duckdb_text(substitute(twice, {"x": long(can_fail=True)}).node).count('"b"') == 100, "guards stay in force"


def test_a_value_that_is_evaluated_once_can_be_replaced_in() -> None:
    inner = Expression(add(*[Call(ScalarOperation("abs"), (column("a", INT).node,), INT)] * 2))
    twice = Expression(add(column("x", INT).node, column("x", INT).node))
    nested = substitute(substitute(twice, {"x": inner}), {"a": plus_one("b")})
    assert duckdb_text(nested.node).count('abs(("b" + CAST(1 AS BIGINT)))') == 4 and nested.columns == ("b",)


@pytest.mark.parametrize("copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])  # noqa: S301
def test_a_deep_tree_is_made_compared_and_copied_without_recursion(copied: object) -> None:
    node = column("a", INT).node
    for _ in range(5_000):
        node = add(node, literal(1, INT).node)
    whole = Expression(node, "deep")
    assert callable(copied) and copied(whole) == whole and copied(whole).text == "deep"
    assert renamed(whole, {"a": "b"}).columns == ("b",)
    assert len(render(node)) == -(-5_000 // DEEP)


def test_only_what_is_always_evaluated_or_cannot_fail_is_a_stage() -> None:
    def deep(*, can_fail: bool) -> Node:
        node = column("a", INT).node
        for _ in range(DEEP + 10):
            node = add(node, column("a", INT).node, can_fail=can_fail)
        return node

    lazy = ScalarOperation("coalesce", evaluation="lazy")
    for can_fail, stages in ((False, 2), (True, 1)):
        assert len(render(Call(lazy, (column("b", INT).node, deep(can_fail=can_fail)), INT))) == stages
        assert len(render(Call(lazy, (deep(can_fail=can_fail), column("b", INT).node), INT))) == 2
