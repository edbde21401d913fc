"""Expressions that fail on some rows: which rows they are, and what is said about each."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rejoinder.ir.expressions.expression import Expression, column, conjunction
from rejoinder.kernels.arrow.columns import DIFF, ERROR, contiguous
from rejoinder.kernels.duckdb.row_errors import (
    SAMPLED,
    error_of,
    filter_project_marked,
    or_null,
    possible,
    satisfying,
    split_marked,
    truths,
)
from rejoinder.kernels.duckdb.text_expression import text_expression

ROWS = pa.table({"a": [0, 1, None, 2, 5], "b": [1, 0, 0, 0, 1], DIFF: [1, -1, 1, 2, 1]})
ZERO = "CASE WHEN a = 0 THEN {!it's zero} ELSE 10 // a END"
TENTH = text_expression(ZERO, pa.int64(), ("a",), text="10 DIV a", can_fail=True)
LARGE = text_expression(f"({ZERO}) > 3", pa.bool_(), ("a",), text="10 DIV a > 3", can_fail=True)
PLAIN = text_expression("b = 0", pa.bool_(), ("b",), text="b = 0")
NARROW = text_expression("CAST(a * 100 AS TINYINT)", pa.int8(), ("a",), text="CAST(a * 100 AS TINYINT)", can_fail=True)


def test_the_rows_that_fail_stay_marked_and_the_others_are_projected() -> None:
    result = filter_project_marked(ROWS, None, [("q", TENTH), ("a", column("a", pa.int64()))], (DIFF,))
    sound, failed = split_marked(result)
    assert sound.to_pydict() == {"q": [10, None, 5, 2], "a": [1, None, 2, 5], DIFF: [-1, 1, 2, 1]}
    assert failed is not None and without_error(failed) == {"q": [None], "a": [0], DIFF: [1]}
    error = error_of(failed.column(ERROR)[0].as_py())
    assert error.fact == "`10 DIV a` failed on a row"
    assert error.detail == "Invalid Input Error: it's zero" or "zero" in str(error.detail)
    assert error.hint


def without_error(table: pa.Table) -> dict[str, list[object]]:
    return {name: values for name, values in table.to_pydict().items() if name != ERROR}


def test_nothing_is_marked_while_nothing_fails() -> None:
    result = filter_project_marked(ROWS.slice(1), LARGE, [("q", TENTH)])
    assert result.to_pydict() == {"q": [10, 5]}


def test_a_condition_that_is_not_true_removes_the_row_in_any_order() -> None:
    for parts in ((LARGE, PLAIN), (PLAIN, LARGE)):
        condition = conjunction(parts)
        assert condition is not None
        assert filter_project_marked(ROWS, condition, [("a", column("a", pa.int64()))]).to_pydict() == {
            "a": [1, 2],
            **({} if parts[0] is PLAIN else {ERROR: [None, None]}),
        }


def test_a_null_removes_the_row_too() -> None:
    unknown = text_expression("(CASE WHEN b = 1 THEN NULL ELSE TRUE END)", pa.bool_(), ("b",))
    mask, errors = truths(ROWS, conjunction([LARGE, unknown]) or LARGE)
    assert mask.tolist() == [False, True, False, True, False]
    assert errors is None or errors.null_count == 5


def test_of_several_errors_the_smallest_is_kept() -> None:
    rows = pa.table({"a": [0, 9]})
    once = filter_project_marked(rows, None, [("a", column("a", pa.int64())), ("q", TENTH), ("n", NARROW)])
    facts = [error_of(text).fact for text in once.column(ERROR).to_pylist()]
    assert facts == ["`10 DIV a` failed on a row", "`CAST(a * 100 AS TINYINT)` failed on a row"]
    again = filter_project_marked(once, None, [("n", NARROW)])
    assert [error_of(text).fact for text in again.column(ERROR).to_pylist()] == facts


def test_a_pair_on_which_a_test_fails_is_beside_those_that_pass() -> None:
    passed, failed = satisfying(ROWS, LARGE)
    assert passed.column("a").to_pylist() == [1, 2]
    assert failed is not None and failed.column("a").to_pylist() == [0]
    assert satisfying(ROWS.slice(1), LARGE)[1] is None
    assert possible(ROWS, LARGE).column("a").to_pylist() == [0, 1, 2]


def test_optional_rows_are_left_out_when_they_fail() -> None:
    nothing = text_expression("(a = 0)", pa.bool_(), ("a",))
    result = filter_project_marked(ROWS, None, [("q", TENTH)], optional=nothing)
    assert split_marked(result)[0].column("q").to_pylist() == [10, None, 5, 2]
    assert split_marked(result)[1] is None


def test_a_list_that_fails() -> None:
    repeated = replace(text_expression(f"[{ZERO}, a]", pa.list_(pa.int64()), ("a",), can_fail=True), repeats=True)
    sound, failed = split_marked(filter_project_marked(ROWS, None, [("q", repeated)], (DIFF,)))
    assert sound.column("q").to_pylist() == [10, 1, None, None, 5, 2, 2, 5]
    assert failed is not None and failed.num_rows == 1


def test_many_rows_that_fail_share_a_text() -> None:
    rows = pa.table({"a": pa.array([0] * (SAMPLED + 10), pa.int64())})
    result = filter_project_marked(rows, None, [("q", TENTH)])
    assert len(set(result.column(ERROR).to_pylist())) == 1 and result.num_rows == SAMPLED + 10


def test_a_key_that_fails_is_null() -> None:
    key = or_null(TENTH)
    assert filter_project_marked(ROWS, None, [("q", key)]).column("q").to_pylist() == [None, 10, None, 5, 2]
    assert or_null(PLAIN) is PLAIN


def test_a_text_that_looks_like_a_failure_is_not_one() -> None:
    text = text_expression("CASE WHEN a = 0 THEN {!no} ELSE 'error(''x'')' END", pa.string(), ("a",), can_fail=True)
    assert filter_project_marked(ROWS, None, [("t", text)]).column("t").to_pylist()[0] == "error('x')"


def test_tables_with_and_without_marks_are_one() -> None:
    marked = filter_project_marked(ROWS.slice(0, 1), None, [("q", TENTH)])
    plain = filter_project_marked(ROWS.slice(1), None, [("q", TENTH)])
    assert contiguous([plain, marked]).column(ERROR).null_count == 4


@pytest.mark.parametrize(
    ("expression", "values"),
    [(NARROW, "900"), (text_expression("a + 9223372036854775806", pa.int64(), ("a",), text="a + large"), "9223")],
)
def test_the_values_of_a_row_are_not_shown(expression: Expression, values: str) -> None:
    failed = filter_project_marked(pa.table({"a": [9]}), None, [("q", expression)])
    error = error_of(failed.column(ERROR)[0].as_py())
    assert values not in str(error) and values in str(error.values)
