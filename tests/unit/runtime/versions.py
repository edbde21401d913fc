"""A relation of versions (key, payload, time), kept in order by several buckets over many epochs, for tests."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import ViewRows
from rejoinder.kernels.arrow.columns import DIFF
from rejoinder.kernels.arrow.ordered import as_column
from rejoinder.kernels.arrow.scatter import scatter, sorted_by_hash
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Arrange, Validity
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.steps.time.validity import validity
from rejoinder.runtime.task import Task, partition_hashes
from rejoinder.store.objects.object_store import open_store
from rejoinder.store.runs.run import read_run
from rejoinder.store.runs.spine import Spine

Version = tuple[Any, str | None, int | None, int]
"""Key, payload, time, diff."""

_numbers = itertools.count()
TIMESTAMP = pa.timestamp("us", tz="UTC")
KEYS: dict[pa.DataType, list[Any]] = {pa.int64(): [None, 0, 1, 2], pa.string(): [None, "", "a", "b", "c", "d"]}


def epochs(kind: pa.DataType, *, deletes: bool = True) -> st.SearchStrategy[list[list[Version]]]:
    """Epochs of random versions, some of them NULL; −1 stands for the retraction of such a row, if there is one."""
    row = st.tuples(
        st.sampled_from(KEYS[kind]),
        st.sampled_from([None, "p", "q"]),
        st.sampled_from([None, 0, 1, 2, 3, 4, 5]),
        st.sampled_from([-1, 1, 1, 2] if deletes else [1]),
    )
    return st.lists(st.lists(row, max_size=6), max_size=8)


class Versions:
    """The relation `v` by key and time, and what it holds in plain Python."""

    def __init__(self, kind: pa.DataType, *, time: pa.DataType = TIMESTAMP, null_safe: bool = True) -> None:
        self.schema = pa.schema([("k", kind), ("p", pa.string()), ("t", time)])
        key = Key((column("k", kind),), frozenset([0] if null_safe else []))
        self.arrangement = Arrangement(ViewRows("v"), key, self.schema, "t")
        self.store = open_store(f"memory://versions-{next(_numbers)}")
        self.spines = [Spine()]
        self.number = -1
        self.rows: Counter[tuple[Any, str | None, int | None]] = Counter()

    def table(self, rows: Sequence[Version]) -> pa.Table:
        """Versions as a delta."""
        known = np.array([row[2] is not None for row in rows], bool)
        times = as_column(np.array([row[2] or 0 for row in rows], np.int64), self.schema.field("t").type, known)
        columns = [pa.array([row[at] for row in rows], self.schema.field(at).type) for at in (0, 1)]
        return pa.table([*columns, times], schema=self.schema).append_column(DIFF, pa.array([r[3] for r in rows]))

    def epoch(self, rows: Sequence[Version]) -> Counter[tuple[Any, ...]]:
        """Let rows come and go (those that can); give the change of the windows, if NULL is a key like any other."""
        self.number += 1
        possible = []
        for key, payload, time, diff in rows:
            if self.rows[key, payload, time] + diff >= 0:
                self.rows[key, payload, time] += diff
                possible.append((key, payload, time, diff))
        change: Counter[tuple[Any, ...]] = Counter()
        table = self.table(possible) if possible else self.table([]).slice(0, 0)
        hashed, _ = partition_hashes(table.drop_columns([DIFF]), self.arrangement.key)
        for bucket, part in scatter(table, hashed, len(self.spines)):
            change.update(self._bucket(bucket, part))
        return change

    def _bucket(self, bucket: int, part: pa.Table) -> Counter[tuple[Any, ...]]:
        before = {self.arrangement.id: self.spines[bucket]}
        task = Task(self.store, self.number, bucket, len(self.spines), before, 100)
        task.streams["in"] = part
        if self.arrangement.key.null_safe:
            validity(task, Validity("in", "out", self.arrangement, "end"))
        arrange(task, Arrange("in", self.arrangement, check=True))
        insert_runs(task)
        self.spines[bucket] = task.report.spines.get(self.arrangement.id, self.spines[bucket])
        return windows(task.streams.get("out"))

    def cut(self, buckets: int) -> None:
        """Go on with another number of buckets."""
        whole = Spine(tuple(ref for spine in self.spines for ref in spine.refs), 10)
        self.spines = [whole.within(*hash_range(bucket, buckets)) for bucket in range(buckets)]

    @property
    def runs(self) -> list[pa.Table]:
        """All runs."""
        return [read_run(self.store, ref) for spine in self.spines for ref in spine.refs]

    def ends(self, last: int) -> Counter[tuple[Any, ...]]:
        """The windows as they should be: each row with the next later time of its key."""
        live = {(key, time) for (key, _, time), count in self.rows.items() if count > 0 and time is not None}
        result: Counter[tuple[Any, ...]] = Counter()
        for (key, payload, time), count in self.rows.items():
            if count and time is not None:
                end = min((t for k, t in live if k == key and t > time), default=last)
                result[key, payload, time, end] = count
        return result

    def stream(self, rows: Sequence[Any], kind: pa.DataType | None = None) -> pa.Table:
        """Keys as a stream to look up, sorted by hash, with their positions in column `at`."""
        keys = pa.table({"x": pa.array(rows, kind or self.schema.field("k").type), "at": pa.array(range(len(rows)))})
        hashed, _ = partition_hashes(keys, self.key(kind))
        return sorted_by_hash(keys.append_column("__hash", pa.array(hashed)))

    def key(self, kind: pa.DataType | None = None) -> Key:
        """The key of such a stream."""
        return Key((column("x", kind or self.schema.field("k").type),), self.arrangement.key.null_safe)


def windows(table: pa.Table | None) -> Counter[tuple[Any, ...]]:
    """A change of windows, times as integers. Each row must be there once, with a diff that is not zero."""
    result: Counter[tuple[Any, ...]] = Counter()
    if table is None:
        return result
    assert table.column_names == ["k", "p", "t", "end", "__hash", DIFF]
    assert table.field("t").type == table.field("end").type
    times = [table[name].combine_chunks().view(f"int{table[name].type.bit_width}") for name in ("t", "end")]
    columns = [table["k"], table["p"], *times, table[DIFF]]
    for *row, diff in zip(*(each.to_pylist() for each in columns), strict=True):
        assert diff and tuple(row) not in result
        result[tuple(row)] = diff
    return result


def minus(new: Counter[tuple[Any, ...]], old: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The change from one multiset to another."""
    return Counter({row: new[row] - old[row] for row in {*new, *old} if new[row] != old[row]})
