"""Expressions put in place of columns: only columns are replaced, and what is known about the expression stays true."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rejoinder.ir.expression import Comparison, Expression, column, conjunction, quoted, renamed, substitute

INT = pa.int64()


def plus_one(name: str) -> Expression:
    return Expression(f"{quoted(name)} + 1", INT, (name,), text=f"{name} + 1")


@pytest.mark.parametrize("name", ["a", "1.a", 'q"q', "it's", "a, b"])
def test_a_column_is_replaced_wherever_it_stands(name: str) -> None:
    whole = Expression(f"""{quoted(name)} + 'x"{name.replace("'", "''")}"' || "other" """, INT, (name, "other"))
    result = substitute(whole, {name: plus_one("2.z")})
    assert result.columns == ("2.z", "other")
    assert result.sql.startswith('("2.z" + 1) + ') and f"""'x"{name.replace("'", "''")}"'""" in result.sql


def test_what_is_not_mentioned_stays() -> None:
    whole = plus_one("a")
    assert substitute(whole, {"b": column("c", INT)}) is whole
    assert substitute(column("a", INT), {"a": plus_one("b")}) == plus_one("b")


def test_replacements_are_not_replaced_again() -> None:
    whole = Expression('"a" + "b"', INT, ("a", "b"))
    assert substitute(whole, {"a": column("b", INT), "b": column("a", INT)}).sql == '"b" + "a"'


def test_comparisons_follow_columns_and_fall_with_expressions() -> None:
    whole = Expression('"a" > 1', pa.bool_(), ("a",), comparisons=(Comparison("a", "greater", 1),))
    assert renamed(whole, {"a": "z"}).comparisons == (Comparison("z", "greater", 1),)
    assert substitute(whole, {"a": plus_one("z")}).comparisons == ()


def test_a_renamed_column_keeps_its_type() -> None:
    assert renamed(column("a", pa.string()), {"a": "b"}) == Expression('"b"', pa.string(), ("b",), text="a")


def test_conjunctions() -> None:
    one = Expression('"a" > 1', pa.bool_(), ("a",), comparisons=(Comparison("a", "greater", 1),))
    two = Expression('"b" OR "a"', pa.bool_(), ("b", "a"))
    assert conjunction([]) is None and conjunction([one]) is one
    both = conjunction([one, two])
    assert both is not None and both.sql == '(("a" > 1) AND ("b" OR "a"))' and both.columns == ("a", "b")
    assert both.comparisons == (), "one of them cannot be answered by Arrow"
    twice = conjunction([one, one])
    assert twice is not None and len(twice.comparisons) == 2


def test_a_predicate_that_may_fail_sees_only_what_earlier_ones_let_through() -> None:
    guard = Expression('"b" <> 0', pa.bool_(), ("b",))
    risky = Expression('"a" % "b" > 1', pa.bool_(), ("a", "b"), throws=True)
    both = conjunction([guard, risky])
    assert both is not None and both.throws and "CASE" in both.sql


def test_a_long_text_that_is_used_often_goes_in_once() -> None:
    square = Expression('"x" * "x"', pa.int64(), ("x",))
    long = Expression(" + ".join(['"a" * "b"'] * 200), pa.int64(), ("a", "b"))
    inlined = substitute(square, {"x": long})
    assert inlined.sql.count('"a" * "b"') == 200 and inlined.columns == ("a", "b")
    risky = replace(long, throws=True)
    assert substitute(square, {"x": risky}).sql.count('"a" * "b"') == 400, "guards stay in force"
