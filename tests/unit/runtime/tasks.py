"""One task with its streams, for tests of single operators."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa

from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import SourceRows
from rejoinder.kernels.arrow.columns import DIFF, HASH
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.runtime.task import Task, partition_hashes
from rejoinder.store.objects.object_store import open_store
from rejoinder.store.runs.spine import Spine

_numbers = itertools.count()
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def task(before: dict[str, Spine] | None = None, *, epoch: int = 0, store_of: Task | None = None) -> Task:
    """A task of a single bucket."""
    store = store_of.store if store_of is not None else open_store(f"memory://operators-{next(_numbers)}")
    return Task(store, epoch, 0, 1, before or {}, 100)


def key(*names: str, null_safe: bool = False) -> Key:
    """A key of columns."""
    return Key(
        tuple(column(name, SCHEMA.field(name).type) for name in names),
        frozenset(range(len(names)) if null_safe else ()),
    )


def arrangement(*names: str, null_safe: bool = False) -> Arrangement:
    """An arrangement of relation `r`."""
    return Arrangement(SourceRows("r"), key(*names, null_safe=null_safe), SCHEMA)


def delta(rows: list[tuple[int | None, str | None, int]], by: Key | None = None) -> pa.Table:
    """Rows (k, s, diff), with the hash of a key if one is given."""
    table = pa.table({"k": [r[0] for r in rows], "s": [r[1] for r in rows]}, schema=SCHEMA)
    if any(diff != 1 for _, _, diff in rows):
        table = table.append_column(DIFF, pa.array([r[2] for r in rows], pa.int64()))
    if by is None:
        return table
    return table.append_column(HASH, pa.array(partition_hashes(table, by)[0]))


def meaning(table: pa.Table | None) -> Counter[tuple[Any, ...]]:
    """The signed multiset that a stream stands for."""
    result: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist() if table is not None else []:
        diff = row.pop(DIFF, 1)
        row.pop(HASH, None)
        result[tuple(row.values())] += diff
    return Counter({row: diff for row, diff in result.items() if diff})
