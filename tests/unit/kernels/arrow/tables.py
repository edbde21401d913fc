"""Columns and deltas of every type for the tests of the kernels, and what they mean in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, diffs
from rejoinder.kernels.arrow.equality import identity
from rejoinder.sql.types.spark_types import parse_type
from tests.oracle.values import BINARY, KINDS, normal

KINDS_BY_NAME = {kind.sql: kind for kind in (*KINDS, BINARY)}
NESTED: dict[str, list[Any]] = {
    "ARRAY<INT>": [[], [1], [1, 2], [2, 1], [None], [1, None], None],
    "ARRAY<STRING>": [[], [""], ["a", "longer than eight bytes"], ["ab"], ["a", "b"], None],
    "STRUCT<a: INT, b: STRING>": [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": None}, None],
    "MAP<STRING, INT>": [[("a", 1)], [("b", 1)], [("a", 1), ("b", 2)], [], None],
    "ARRAY<STRUCT<a: DOUBLE>>": [[{"a": 0.5}], [{"a": None}], [], None],
}
TYPES = [*KINDS_BY_NAME, *NESTED]


def samples(name: str) -> list[Any]:
    """The values of a type that tests use, NULL among them."""
    return NESTED[name] if name in NESTED else [*KINDS_BY_NAME[name].values, None]


def array_of(name: str, values: list[Any]) -> pa.Array:
    """An Arrow array of a SQL type."""
    return pa.array(values, parse_type(name))


def arrays(name: str, *, max_size: int = 30) -> st.SearchStrategy[pa.Array]:
    """Arrays of a type."""
    return st.lists(st.sampled_from(samples(name)), max_size=max_size).map(lambda values: array_of(name, values))


@st.composite
def deltas(draw: st.DrawFn, *, types: tuple[str, ...] = ("INT", "STRING", "DOUBLE"), epochs: bool = False) -> pa.Table:
    """Small deltas with many equal rows; `__diff` is left out now and then."""
    size = draw(st.integers(0, 25))
    columns = {
        f"c{at}": array_of(name, draw(st.lists(st.sampled_from(samples(name)[:4]), min_size=size, max_size=size)))
        for at, name in enumerate(types)
    }
    if draw(st.booleans()):
        signs = draw(st.lists(st.sampled_from([-2, -1, 0, 1, 1, 3]), min_size=size, max_size=size))
        columns[DIFF] = pa.array(signs, pa.int64())
    if epochs:
        columns[EPOCH] = pa.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), pa.int64())
    return pa.table(columns)


def meaning(table: pa.Table) -> Counter[str]:
    """The multiset of rows that a delta stands for."""
    result: Counter[str] = Counter()
    names = [name for name in table.column_names if name not in (DIFF, HASH)]
    for row, diff in zip(table.select(names).to_pylist(), diffs(table).tolist(), strict=True):
        result[", ".join(normal(value) for value in row.values())] += diff
    return Counter({row: count for row, count in result.items() if count})


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether two tables have equal columns and rows, in order; NaN equals NaN."""
    rows = [[identity(row) for row in table.to_pylist()] for table in (left, right)]
    return left.schema == right.schema and rows[0] == rows[1]


def with_hash(table: pa.Table, hashes: list[int]) -> pa.Table:
    """A delta with given hashes."""
    return table.append_column(HASH, pa.array(np.array(hashes, np.uint64)))
