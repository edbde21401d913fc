"""Runs with an order column, for tests of what searches them, and what they mean in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64
from rejoinder.kernels.arrow.hashing import Mask, hash_rows
from rejoinder.kernels.arrow.nearest import Search, search
from rejoinder.kernels.arrow.ordered import as_column, sorted_by_hash_and_value, views

Row = tuple[str | None, int | None, int]
"""Key, order value, diff."""

KEYS = st.sampled_from([None, "", "a", "b", "c", "d"])  # more than a weak hash can tell apart
TIMES = st.sampled_from([-(2**63), -3, 0, 1, 2, 3, 4, 2**63 - 1])
ROWS = st.tuples(KEYS, st.none() | TIMES, st.sampled_from([-2, -1, 1, 1, 1, 2]))
RUNS = st.lists(st.lists(ROWS, max_size=12), max_size=4)


def run(rows: Sequence[Row], kind: pa.DataType | None = None) -> pa.Table:
    """A sorted run with columns `k` and `t`; `__diff` is left out where all are one."""
    keys = pa.array([row[0] for row in rows], pa.string())
    known = np.array([row[1] is not None for row in rows], bool)
    times = as_column(np.array([row[1] or 0 for row in rows], np.int64), kind or pa.int64(), known)
    table = pa.table({"k": keys, "t": times, HASH: pa.array(hash_rows([keys], len(rows)))})
    if any(row[2] != 1 for row in rows):
        table = table.append_column(DIFF, pa.array([row[2] for row in rows], pa.int64()))
    return sorted_by_hash_and_value(table, "t")


def needles(keys: Sequence[str | None]) -> tuple[Any, list[str | None], Int64]:
    """The hashes of keys in ascending order, the keys in that order, and where each came from."""
    hashed = hash_rows([pa.array(keys, pa.string())], len(keys))
    order = np.argsort(hashed, kind="stable")
    return hashed[order], [keys[at] for at in order], order


def searched(runs: Sequence[pa.Table], keys: Sequence[str | None]) -> tuple[Search, Int64]:
    """Keys that have met the runs, NULL being a key like any other; and where each needle came from."""
    hashed, sorted_keys, order = needles(keys)
    names = [table["k"].to_pylist() for table in runs]

    def same(number: int, left: Int64, right: Int64) -> Mask:
        return np.array([sorted_keys[i] == names[number][j] for i, j in zip(left, right, strict=True)], bool)

    return search(hashed, views(runs, "t"), same), order


def totals(runs: Sequence[Sequence[Row]]) -> Counter[tuple[str | None, int | None]]:
    """The sum of the diffs by key and order value."""
    result: Counter[tuple[str | None, int | None]] = Counter()
    for rows in runs:
        for key, time, diff in rows:
            result[key, time] += diff
    return result
