"""Sums of floats: the float nearest to the exact sum, in whatever order and in however many parts it was made."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.sums.float_sums import sum_floats
from rejoinder.kernels.sums.sparse_counts import KEPT

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 0.1, 1.0, 1e20, 1e300, -1e300, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**-1022]),
)
ANYTHING = st.one_of(NUMBERS, st.sampled_from([math.nan, math.inf, -math.inf]))
DIFFS = st.sampled_from([1, 1, -1, 2, -3, 10**9])
Rows = list[tuple[float, int]]


def add(kept: pa.Array | None, rows: Rows) -> tuple[pa.Array, float]:
    before = pa.nulls(1, KEPT) if kept is None else kept
    values, diffs = np.array([value for value, _ in rows]), np.array([diff for _, diff in rows])
    kept, sums = sum_floats(before, values, diffs, np.zeros(1, np.int64))
    return kept, float(sums[0])


def nearest(rows: Rows) -> float:
    exact = sum(Fraction(value) * diff for value, diff in rows)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(parts=st.lists(st.lists(st.tuples(NUMBERS, DIFFS), min_size=1, max_size=6), min_size=1, max_size=4))
def test_the_sum_is_the_nearest_float(parts: list[Rows]) -> None:
    kept, shown = None, 0.0
    for part in parts:
        kept, shown = add(kept, part)
    rows = [row for part in parts for row in part]
    assert shown == nearest(rows)
    assert add(None, rows[::-1]) == (kept, shown), "neither order nor parts can be seen"


@given(rows=st.lists(st.tuples(ANYTHING, DIFFS), min_size=1, max_size=8))
def test_what_is_taken_out_again_leaves_no_trace(rows: Rows) -> None:
    kept, _ = add(None, rows)
    kept, shown = add(kept, [(value, -diff) for value, diff in rows])
    assert kept.to_pylist() == [[]] and shown == 0.0
    assert math.copysign(1.0, shown) == 1.0


def test_what_is_not_finite_is_counted() -> None:
    kept, shown = add(None, [(math.inf, 1), (1.5, 1)])
    assert shown == math.inf
    kept, shown = add(kept, [(-math.inf, 1)])
    assert math.isnan(shown)
    kept, shown = add(kept, [(math.inf, -1)])
    assert shown == -math.inf
    kept, shown = add(kept, [(-math.inf, -1), (math.nan, 1)])
    assert math.isnan(shown)
    _, shown = add(kept, [(math.nan, -1)])
    assert shown == 1.5


def test_a_large_number_hides_nothing() -> None:
    kept, shown = add(None, [(1e20, 1), (1.0, 1), (1e300, 1), (1e150, 1)])
    assert shown == 1e300
    assert add(kept, [(1e20, -1), (1e300, -1), (1e150, -1)])[1] == 1.0


def test_groups_are_apart() -> None:
    values, diffs = np.array([0.1, 0.2, 1e300, 3.0]), np.ones(4, np.int64)
    kept, sums = sum_floats(pa.nulls(3, KEPT), values, diffs, np.array([0, 2, 3]))
    assert sums.tolist() == [0.30000000000000004, 1e300, 3.0]
    _, sums = sum_floats(kept, np.array([0.3, 1.0, -3.0]), np.array([-1, 1, 1]), np.array([0, 1, 2]))
    assert sums.tolist() == [float(Fraction(0.1) + Fraction(0.2) - Fraction(0.3)), 1e300, 0.0]
