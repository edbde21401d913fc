"""Seeded tables of random values: for expressions whose last digit is at stake, and of the columns of the corpus."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tests.spark.awkward_values import awkward_table

ROWS = 1_000
DRAWN = 211
_GENERATED = 0.3


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


def drawn_table(seed: int) -> pa.Table:
    """The columns of `awkward_table` with values drawn from it at random, and among them values that are not in it.

    So functions meet other combinations of arguments, and ordinary values.
    """
    random = np.random.default_rng(seed)
    awkward = awkward_table()
    columns = {}
    for name in awkward.column_names:
        values = awkward.column(name).combine_chunks()
        taken = values.take(pa.array(random.integers(0, len(values), DRAWN)))
        drawn = list(taken) if pa.types.is_temporal(values.type) else taken.to_pylist()  # Python has not all dates
        made = [_made(random, values.type, drawn) if random.random() < _GENERATED else value for value in drawn]
        columns[name] = pa.array(made, values.type)
    return pa.table(columns)


def _made(random: np.random.Generator, kind: pa.DataType, drawn: list[Any]) -> Any:
    """A value of a type. Texts are put together from pieces of others; what has no rule here is drawn."""
    if pa.types.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return int(random.integers(-limit, limit - 1) >> random.integers(0, 60))
    if pa.types.is_floating(kind):
        return float(np.float32(random.integers(-(2**20), 2**20) / 2 ** random.integers(0, 12)))
    if pa.types.is_decimal(kind):
        digits = int(random.integers(1, min(kind.precision, 18) + 1))
        return Decimal(int(random.integers(-(10**digits) + 1, 10**digits))).scaleb(-kind.scale)
    if pa.types.is_string(kind):
        texts = (drawn[int(place)] or "" for place in random.integers(0, len(drawn), 2))
        return "".join(text[: int(random.integers(0, 12))] for text in texts)
    if pa.types.is_date32(kind):
        return date(1970, 1, 1) + timedelta(days=int(random.integers(-100_000, 100_000)))
    if pa.types.is_timestamp(kind):
        return datetime(1970, 1, 1) + timedelta(microseconds=int(random.integers(-(10**16), 10**16)))
    if pa.types.is_list(kind):
        return [int(value) for value in random.integers(-3, 6, int(random.integers(0, 5)))]
    return drawn[int(random.integers(0, len(drawn)))]
