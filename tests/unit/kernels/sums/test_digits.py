"""Exact sums: equal to what Python's unbounded numbers come to, whatever the order, with and without room for them."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.sums.digits import (
    decimals_of,
    digits_of_decimals,
    digits_of_integers,
    integers_of,
    normal,
    total,
)

INTEGERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 0, 1, -1, 2**32, -(2**32)])
)
DIFFS = st.sampled_from([1, 1, -1, 2, -3, 2**40])
DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1)
START = np.zeros(1, np.int64)


@given(rows=st.lists(st.tuples(INTEGERS, DIFFS), min_size=1, max_size=8))
def test_sums_of_integers_are_exact_or_known_not_to_fit(rows: list[tuple[int, int]]) -> None:
    values, diffs = np.array([v for v, _ in rows], np.int64), np.array([d for _, d in rows], np.int64)
    sums, too_large = integers_of(normal(total(digits_of_integers(values), diffs, START)))
    expected = sum(value * diff for value, diff in rows)
    assert bool(too_large[0]) == (not -(2**63) <= expected < 2**63)
    if not too_large[0]:
        assert int(sums[0]) == expected


@pytest.mark.parametrize("precision", [38, 20])
@given(rows=st.lists(st.tuples(DECIMALS, DIFFS), min_size=1, max_size=8))
def test_sums_of_decimals_are_exact_or_known_not_to_fit(precision: int, rows: list[tuple[int, int]]) -> None:
    with localcontext() as context:
        context.prec = 60
        values = pa.array([Decimal(value).scaleb(-4) for value, _ in rows], pa.decimal128(38, 4))
        diffs = np.array([diff for _, diff in rows], np.int64)
        kind = pa.decimal128(precision, 4)
        sums, too_large = decimals_of(normal(total(digits_of_decimals(values), diffs, START)), kind)
        expected = sum(value * diff for value, diff in rows)
        assert bool(too_large[0]) == (abs(expected) >= 10**precision)
        if not too_large[0]:
            assert sums[0].as_py() == Decimal(expected).scaleb(-4)


def test_each_group_has_its_own_sum() -> None:
    values, diffs = np.array([5, -6, 2**62, 2**62, 7]), np.array([1, 2, 1, 1, -1])
    sums, too_large = integers_of(normal(total(digits_of_integers(values), diffs, np.array([0, 2, 4]))))
    assert sums[[0, 2]].tolist() == [-7, -7]
    assert too_large.tolist() == [False, True, False]
