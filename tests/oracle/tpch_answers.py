"""The 22 queries of TPC-H, as Spark's own benchmark writes them, and when two answers are equal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

QUERIES = {
    f"q{number}": Path(__file__).with_name("tpch").joinpath(f"q{number}.sql").read_text(encoding="utf-8")
    for number in range(1, 23)
}


def are_equal(one: Iterable[tuple[Any, ...]], other: Iterable[tuple[Any, ...]]) -> bool:
    """Whether two answers have the same rows, in any order.

    Spark divides decimals to a scale of its own where DuckDB has a DOUBLE, so that the last digits differ.
    """
    ours, theirs = (sorted(map(_comparable, rows), key=repr) for rows in (one, other))
    return len(ours) == len(theirs) and all(map(_are_equal_rows, ours, theirs))


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row that sorts like its equal from the other side: text first, and numbers of all types as one."""
    numbers = [round(float(value), 2) for value in row if isinstance(value, int | float | Decimal)]
    texts = [str(value) for value in row if not isinstance(value, int | float | Decimal)]
    return (*texts, *numbers)


def _are_equal_rows(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    return len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=0.011) if isinstance(a, float) else a == b
        for a, b in zip(ours, theirs, strict=True)
    )
