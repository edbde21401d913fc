"""Moments of groups are exact: they do not depend on the order of rows, and retractions leave nothing behind."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from rejoinder.kernels.sums import moments
from rejoinder.kernels.sums.bit_counts import bits_in_all, bits_in_any, count_bits, odd_bits
from rejoinder.kernels.sums.sparse_counts import KEPT

START = np.zeros(1, np.int64)


def _powers(values: list[float], diffs: list[int], before: list[pa.Array] | None = None) -> list[pa.Array]:
    kept = [pa.array([None], KEPT)] * 4 if before is None else before
    return moments.sum_powers(kept, np.array(values), np.array(diffs, np.int64), START)


def _exact(values: list[float], power: int) -> float:
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    return float(sum((number - mean) ** power for number in numbers))


@pytest.mark.parametrize("values", [[1.5, 2.5, 4.0], [1e9 + 0.25, 1e9 + 0.5, 1e9 + 1], [1e-30, 3e-30, -7e-30, 1.0]])
def test_moments_are_those_of_exact_arithmetic(values: list[float]) -> None:
    sums, count = _powers(values, [1] * len(values)), np.array([len(values)])
    second = _exact(values, 2)
    assert moments.second_moment(count, sums[:2])[0][0] == second
    skewness = math.sqrt(len(values)) * _exact(values, 3) / math.sqrt(second**3)
    assert moments.skewness(count, sums[:3])[0][0] == pytest.approx(skewness, rel=1e-15)
    kurtosis = len(values) * _exact(values, 4) / (second * second) - 3
    assert moments.kurtosis(count, sums)[0][0] == pytest.approx(kurtosis, rel=1e-14)


def test_a_retraction_leaves_nothing_behind() -> None:
    sums = _powers([0.1, 1e200, math.inf, math.nan, -7.3], [1] * 5)
    assert math.isnan(moments.second_moment(np.array([5]), sums[:2])[0][0])
    sums = _powers([1e200, math.nan, math.inf], [-1] * 3, sums)
    assert sums == _powers([-7.3, 0.1], [1, 1])


def test_the_comoment_is_that_of_exact_arithmetic() -> None:
    left, right = np.array([1e8 + 0.1, 1e8 + 0.2, 1e8 + 0.7]), np.array([0.1, -1e8, 3.0])
    sums = moments.sum_products([pa.array([None], KEPT)] * 3, (left, right), np.ones(3, np.int64), START)
    x, y = ([Fraction(value) for value in values.tolist()] for values in (left, right))
    exact = sum((a - sum(x) / 3) * (b - sum(y) / 3) for a, b in zip(x, y, strict=True))
    assert moments.comoment(np.array([3]), sums)[0][0] == float(exact)


def test_bits_can_be_retracted() -> None:
    state, counts = count_bits(
        pa.array([None], KEPT), pa.array([6, -2, None, 3]), np.array([1, 1, 1, 2], np.int64), START
    )
    assert [f(counts)[0] for f in (bits_in_any, odd_bits)] == [6 | -2 | 3, 6 ^ -2]
    assert bits_in_all(counts, np.array([4]))[0] == 2
    state, counts = count_bits(state, pa.array([-2, 3]), np.array([-1, -2], np.int64), START)
    assert bits_in_all(counts, np.array([1]))[0] == bits_in_any(counts)[0] == 6
    assert len(state[0]) == 2
