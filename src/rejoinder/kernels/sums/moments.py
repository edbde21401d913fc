"""Exact sums of powers and products per group, and the moments about the mean that follow from them.

A product of two floats is the sum of two floats without any rounding, and a fourth power that of six, so the sums are
exact and retractions cancel (`float_sums`). A moment is computed from these sums as a fraction of integers, and rounded
once: no digit is lost, however far the values are from zero. Where a power leaves the range of floats, it counts as
infinite. Cost: the sums of so many floats, and some operations on integers of a few thousand bits for each changed
group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.sums.float_sums import SMALLEST_POWER, Floats, integers_of_sums, sum_floats

Integers = npt.NDArray[Any]
"""Python integers, of any size."""

_UNIT = 1 << -SMALLEST_POWER
_SPLITTER = 2.0**27 + 1


def sum_powers(before: Sequence[pa.Array], values: Floats, diffs: Int64, starts: Int64) -> list[pa.Array]:
    """Add the first, second, … powers of values to the sums before, as many powers as there are sums."""
    square = _product(values, values)
    terms: list[list[Floats]] = [[values], list(square)]
    if len(before) > 2:
        terms.append([*_product(square[0], values), *_product(square[1], values)])
    if len(before) > 3:
        terms.append(
            [*_product(square[0], square[0]), *_product(2 * square[0], square[1]), *_product(square[1], square[1])]
        )
    return [_summed(kept, part, diffs, starts) for kept, part in zip(before, terms, strict=True)]


def sum_products(
    before: Sequence[pa.Array], pairs: tuple[Floats, Floats], diffs: Int64, starts: Int64
) -> list[pa.Array]:
    """Add pairs to three sums: of the first numbers, of the second ones, of the products."""
    terms = [[pairs[0]], [pairs[1]], list(_product(*pairs))]
    return [_summed(kept, part, diffs, starts) for kept, part in zip(before, terms, strict=True)]


def _product(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The rounded products, and what is missing to the exact ones (Dekker's and Veltkamp's method)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product: Floats = left * right
        high_left, low_left = _halves(left)
        high_right, low_right = _halves(right)
        rest = ((high_left * high_right - product) + high_left * low_right + low_left * high_right) + (
            low_left * low_right
        )
    return product, np.where(np.isfinite(rest), rest, 0.0)


def _halves(values: Floats) -> tuple[Floats, Floats]:
    scaled = _SPLITTER * values
    high = scaled - (scaled - values)
    return high, values - high


def _summed(before: pa.Array, terms: list[Floats], diffs: Int64, starts: Int64) -> pa.Array:
    many = len(terms)
    with np.errstate(over="ignore"):
        return sum_floats(before, np.stack(terms, axis=1).ravel(), np.repeat(diffs, many), starts * many)[0]


def second_moment(count: Int64, sums: Sequence[pa.Array]) -> tuple[Floats, Mask]:
    """Σ(x − mean)², and a mask of groups that have values."""
    (first, second), is_finite = _exact(sums)
    number = count.astype(object)
    moment = np.maximum(_second(number, first, second), 0.0)
    return np.where(is_finite, moment, np.nan), count > 0


def comoment(count: Int64, sums: Sequence[pa.Array]) -> tuple[Floats, Mask]:
    """Σ(x − mean of x)(y − mean of y), and a mask of groups that have pairs."""
    (left, right, products), is_finite = _exact(sums)
    number = count.astype(object)
    moment = _ratio(number * _UNIT * products - left * right, number * _UNIT**2)
    return np.where(is_finite, moment, np.nan), count > 0


def skewness(count: Int64, sums: Sequence[pa.Array]) -> tuple[Floats, Mask]:
    """√n Σ(x − mean)³ / (Σ(x − mean)²)^1.5, and a mask of groups in which not all values are equal."""
    (first, second, third), is_finite = _exact(sums)
    number = count.astype(object)
    squares = _second(number, first, second)
    cubes = _ratio(
        number**2 * _UNIT**2 * third - 3 * number * _UNIT * first * second + 2 * first**3, number**2 * _UNIT**3
    )
    with np.errstate(all="ignore"):
        result = np.sqrt(count) * cubes / np.sqrt(squares**3)
    return np.where(is_finite, result, np.nan), (count > 0) & ((squares > 0) | ~is_finite)


def kurtosis(count: Int64, sums: Sequence[pa.Array]) -> tuple[Floats, Mask]:
    """N Σ(x − mean)⁴ / (Σ(x − mean)²)² − 3, and a mask of groups in which not all values are equal."""
    (first, second, third, fourth), is_finite = _exact(sums)
    number = count.astype(object)
    squares = _second(number, first, second)
    scaled = number * _UNIT
    fourths = _ratio(
        scaled**3 * fourth - 4 * scaled**2 * first * third + 6 * scaled * first**2 * second - 3 * first**4,
        number**3 * _UNIT**4,
    )
    with np.errstate(all="ignore"):
        result = count * fourths / (squares * squares) - 3.0
    return np.where(is_finite, result, np.nan), (count > 0) & ((squares > 0) | ~is_finite)


def _second(number: Integers, first: Integers, second: Integers) -> Floats:
    return _ratio(number * _UNIT * second - first**2, number * _UNIT**2)


def _exact(sums: Sequence[pa.Array]) -> tuple[list[Integers], Mask]:
    """The sums as integers, in units of the smallest float; and a mask of groups whose sums are all finite."""
    integers, finite = zip(*map(integers_of_sums, sums), strict=True)
    return list(integers), np.logical_and.reduce(finite)


def _quotient(numerator: int, denominator: int) -> float:
    if not denominator:
        return 0.0
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if numerator > 0 else float("-inf")


def _ratio(numerator: Integers, denominator: Integers) -> Floats:
    """The float nearest to each quotient; 0 where the denominator is."""
    return np.asarray(np.frompyfunc(_quotient, 2, 1)(numerator, denominator), np.float64)
