"""The rows of one side of a join that may still find a partner, and which of them have found one.

Invariants:
- a run is sorted by the hash of the join key, and within a hash by the order column if there is one: it is what an
  arrangement's run is to the engine, and is searched by the same operators;
- a run is at most half as long as the one before it when it is added, so that there are O(log n) of them, and a row is
  rewritten O(log n) times;
- the smallest time of each column is known per run, so that a watermark touches only runs that lose rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import HASH, Int64, contiguous, hashes, numbers, replaced, take, without
from rejoinder.kernels.arrow.hashing import Mask, hash_rows
from rejoinder.kernels.arrow.ordered import Bound, sorted_by_hash_and_value
from rejoinder.kernels.arrow.probe import keep_equal, match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.runtime.matching.range_matching import match_range
from rejoinder.runtime.task import key_columns, needles
from rejoinder.store.runs.time_values import times_of

ARRIVAL = "__arrival"
USED = "__used"
ROW = "__row"


@dataclass(frozen=True)
class Run:
    """Sorted rows with their arrival number, whether each was joined (`used`, set in place), the least of each time."""

    table: pa.Table
    used: Mask
    lows: Mapping[str, int]


@dataclass(frozen=True)
class Found:
    """Pairs of rows of a batch (`left`) and rows of a run (`right`), by position."""

    run: Run
    left: Int64
    right: Int64

    def of(self, rows: Int64) -> Found:
        """Some of the pairs."""
        return Found(self.run, self.left[rows], self.right[rows])


class JoinBuffer:
    """One side's rows, by key; `times` are its watermarked columns."""

    def __init__(self, name: str, schema: pa.Schema, key: Key, times: Sequence[str], order: str | None) -> None:
        self._arrangement = Arrangement(name, key, schema, order)
        self._times = tuple(times)
        self._runs: list[Run] = []
        self._arrivals = 0

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(run.table.num_rows for run in self._runs)

    def least(self, column: str) -> int | None:
        """The smallest time of a column; None if there are no rows."""
        return min((run.lows[column] for run in self._runs), default=None)

    def add(self, table: pa.Table, used: Mask) -> None:
        """Keep rows, in the order in which they came."""
        if not table.num_rows:
            return
        arrival = np.arange(self._arrivals, self._arrivals + table.num_rows)
        self._arrivals += table.num_rows
        table = replaced(replaced(table, ARRIVAL, arrival), USED, used)
        keys = key_columns(table, self._arrangement.key)
        run = self._run(replaced(table, HASH, hash_rows(keys, table.num_rows)))
        while self._runs and 2 * run.table.num_rows > self._runs[-1].table.num_rows:
            run = self._run(contiguous([_marked(self._runs.pop()), _marked(run)]))
        self._runs.append(run)

    def find(self, table: pa.Table, key: Key, low: Int64 | None, high: Int64 | None) -> list[Found]:
        """Pair rows of the other side with the rows that have their key, and a time of order from `low` to `high`."""
        stream = needles(replaced(table, ROW, np.arange(table.num_rows)), key, hashed=False)
        if not stream.num_rows or not self._runs:
            return []
        at = numbers(stream, ROW)
        runs = [run.table for run in self._runs]
        if self._arrangement.order is None:
            pairs = [_equal(stream, run, key, self._arrangement.key) for run in runs]
        else:
            bounds = [None if end is None else Bound(end[at]) for end in (low, high)]
            pairs = match_range(stream, runs, key, self._arrangement, low=bounds[0], high=bounds[1])
        return [Found(run, at[left], right) for run, (left, right) in zip(self._runs, pairs, strict=True) if len(left)]

    def expire(self, limits: Mapping[str, int]) -> tuple[pa.Table, Mask]:
        """Take out the rows with a time below its column's limit: the rows, as they came, and which were joined."""
        gone: list[pa.Table] = []
        kept: list[Run] = []
        for run in self._runs:
            if all(run.lows[column] >= limit for column, limit in limits.items()):
                kept.append(run)
                continue
            over = np.zeros(run.table.num_rows, bool)
            for column, limit in limits.items():
                over |= times_of(run.table, column) < limit
            table = _marked(run)
            gone.append(take(table, np.flatnonzero(over)))
            if not over.all():
                kept.append(self._run(take(table, np.flatnonzero(~over)), is_sorted=True))
        self._runs = sorted(kept, key=lambda run: -run.table.num_rows)
        return self._as_they_came(gone)

    def content(self) -> pa.Table:
        """All rows as they came, with whether each was joined (`__used`)."""
        rows, used = self._as_they_came([_marked(run) for run in self._runs])
        return replaced(rows, USED, used)

    def clear(self) -> None:
        """Forget all rows."""
        self._runs = []

    def _run(self, table: pa.Table, *, is_sorted: bool = False) -> Run:
        order = self._arrangement.order
        if not is_sorted:
            table = sorted_by_hash(table) if order is None else sorted_by_hash_and_value(table, order)
        used = np.array(numbers(table, USED), dtype=np.bool_)
        return Run(without(table, [USED]), used, {name: int(times_of(table, name).min()) for name in self._times})

    def _as_they_came(self, tables: list[pa.Table]) -> tuple[pa.Table, Mask]:
        names = self._arrangement.schema.names
        if not tables:
            return self._arrangement.schema.empty_table(), np.zeros(0, bool)
        table = contiguous(tables)
        table = take(table, np.argsort(numbers(table, ARRIVAL), kind="stable"))
        return table.select(names), np.array(numbers(table, USED), dtype=np.bool_)


def _marked(run: Run) -> pa.Table:
    return replaced(run.table, USED, run.used)


def _equal(stream: pa.Table, run: pa.Table, here: Key, there: Key) -> tuple[Int64, Int64]:
    left, right = match(hashes(stream), hashes(run))
    keys = list(zip(key_columns(stream, here), key_columns(run, there), strict=True))
    return keep_equal(left, right, keys)
