"""A seeded table of random values, for expressions whose last digit is at stake."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

ROWS = 1_000


def random_table(seed: int = 20_240_229) -> pa.Table:
    """Make the table: numbers of all sizes, decimals, times and texts of numbers."""
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.integers(-12, 16, ROWS)
    x = np.where(
        random.random(ROWS) < 0.5, random.normal(0, 1, ROWS) * sizes, random.integers(-100_000, 100_000, ROWS) / 1000
    )
    y = random.choice([2.0, 0.5, -3.0, 0.1, 7.0, 1e-3], ROWS)
    long = random.integers(-(2**63), 2**63 - 1, ROWS) >> random.integers(0, 60, ROWS)
    return pa.table(
        {
            "x": pa.array(x),
            "y": pa.array(y),
            "f": pa.array(x.astype(np.float32)),
            "l": pa.array(long),
            "h": pa.array(random.integers(-1000, 1000, ROWS), pa.int64()),
            "a": _decimals(random, 10, 2),
            "b": _decimals(random, 12, 5),
            "c": _decimals(random, 18, 4),
            "z": _decimals(random, 30, 12),
            "t": pa.array(random.integers(-(10**16), 10**17, ROWS), pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            "s": pa.array([_text(value, int(random.integers(0, 4))) for value in x]),
        }
    )


def _decimals(random: np.random.Generator, precision: int, scale: int) -> pa.Array:
    digits = random.integers(1, precision + 1, ROWS)
    values = [int(random.integers(-(10 ** min(int(count), 18)) + 1, 10 ** min(int(count), 18))) for count in digits]
    wide = [
        value * 10 ** max(int(count) - 18, 0) + int(random.integers(0, 10))
        for value, count in zip(values, digits, strict=True)
    ]
    limit = 10**precision - 1
    return pa.array(
        [Decimal(max(-limit, min(limit, value))).scaleb(-scale) for value in wide], pa.decimal128(precision, scale)
    )


def _text(value: float, form: int) -> str:
    return (repr(value), f"{value:.3f}", f" {value:e}", f"{value:.12g}")[form]
