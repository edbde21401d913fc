"""Rows of DataFrames, flows and plain Python in one form, so that multisets of them compare."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, Row

import rejoinder as rj

Bag = Counter[str]


def text_of(row: Row | Mapping[str, Any] | tuple[Any, ...]) -> str:
    """A row as text: equal exactly if the values are, NaN and NULL included."""
    values = row.values() if isinstance(row, Mapping) else row
    return repr(tuple(bytes(value) if isinstance(value, bytearray) else value for value in values))


def bag(rows: DataFrame | Iterable[Any]) -> Bag:
    """Rows as a multiset."""
    return Counter(map(text_of, rows.collect() if isinstance(rows, DataFrame) else rows))


def summed(changes: Iterable[Row]) -> Bag:
    """The table that changes add up to: (row…, _epoch, _emit_time, _undo, _diff)."""
    total: dict[str, int] = {}
    for change in changes:
        values = tuple(change)
        name = text_of(values[:-4])
        total[name] = total.get(name, 0) + values[-1]
        assert (values[-1] < 0) == values[-2], "an undo has a negative diff"
    assert all(count >= 0 for count in total.values())
    return Counter({name: count for name, count in total.items() if count})


def wait_until(condition: Callable[[], bool], seconds: float = 100.0) -> None:
    """Wait for something that a running flow does; a tick that Spark has missed is repeated after a minute."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def view(flow: rj.Flow, name: str, **options: Any) -> Bag:
    """The rows of a view, read in this process."""
    return bag(flow.arrow(name, **options).to_pylist())
