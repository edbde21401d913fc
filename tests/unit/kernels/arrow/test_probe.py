"""Matching: every pair with equal hashes, once, whichever side is larger; then only pairs with equal keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.probe import expand, keep_equal, match

SORTED = st.lists(st.integers(0, 12), max_size=40).map(lambda values: np.array(sorted(values), np.uint64))


@given(needles=SORTED, haystack=SORTED)
def test_all_pairs_are_found_once(needles: Any, haystack: Any) -> None:
    left, right = match(needles, haystack)
    pairs = [(i, j) for i, a in enumerate(needles) for j, b in enumerate(haystack) if a == b]
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == pairs


def test_the_last_needle_and_the_last_straw_meet() -> None:
    one, other = np.array([3, 2**64 - 1], np.uint64), np.array([2**64 - 1], np.uint64)
    assert [positions.tolist() for positions in match(one, other)] == [[1], [0]]
    assert [positions.tolist() for positions in match(other, one)] == [[0], [1]]


@given(data=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 3)), max_size=10))
def test_ranges_are_expanded(data: list[tuple[int, int, int]]) -> None:
    left, low, count = (np.array([row[at] for row in data], np.int64) for at in range(3))
    result = expand(left, low, count)
    assert list(zip(*(positions.tolist() for positions in result), strict=True)) == [
        (who, start + step) for who, start, length in data for step in range(length)
    ]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (pa.array([1, None, 3], pa.int32()), pa.array([1, None, 4], pa.int64()), [True, False, False]),
        (pa.array(["a", ""]), pa.array(["a", None]), [True, False]),
        (pa.array([float("nan"), 0.0]), pa.array([float("nan"), -0.0]), [True, True]),
        (pa.array([2**40], pa.int64()), pa.array([1], pa.int8()), [False]),
        (
            pa.array([{"a": 1, "b": None}, None, {"a": 1, "b": 2}]),
            pa.array([{"a": 1, "b": None}, None, {"a": 1, "b": None}]),
            [True, False, False],
        ),
        (pa.array([[1, None], []]), pa.array([[1, None], None]), [True, False]),
    ],
)
def test_only_equal_keys_are_kept(left: pa.Array, right: pa.Array, equal: list[bool]) -> None:
    positions = np.arange(len(left))
    kept, same = keep_equal(positions, positions, [(pa.chunked_array([left]), pa.chunked_array([right]))])
    assert kept.tolist() == same.tolist() == [at for at, flag in enumerate(equal) if flag]


def test_all_columns_of_a_key_count() -> None:
    positions = np.arange(3)
    first = (pa.chunked_array([[1, 1, 2]]), pa.chunked_array([[1, 1, 1]]))
    second = (pa.chunked_array([["a", "b", "c"]]), pa.chunked_array([["a", "a", "c"]]))
    assert keep_equal(positions, positions, [first, second])[0].tolist() == [0]
    assert keep_equal(positions, positions, [])[0].tolist() == [0, 1, 2]
