"""Spines filled epoch by epoch, for tests: what they hold, what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, diffs, hashes
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import LAST_HASH, is_sorted, order_by_hash
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import RunRef, read_run, with_epoch, write_run
from rejoinder.store.runs.spine import Compaction, Spine, insert, level_of, maintain

WHOLE = (0, LAST_HASH)


def delta(rows: Sequence[tuple[int, int]]) -> pa.Table:
    """Rows (value, diff) as a delta sorted by the hash of the value."""
    values = pa.array([value for value, _ in rows], pa.int64())
    hashed = hash_rows([values], len(rows))
    order = order_by_hash(hashed)
    columns = {"a": values.take(pa.array(order)), HASH: pa.array(hashed[order])}
    return pa.table({**columns, DIFF: pa.array(np.array([diff for _, diff in rows], np.int64)[order])})


def total(store: ObjectStore, refs: Iterable[RunRef], *, until: int | None = None) -> Counter[int]:
    """What the runs come to, in a changelog up to an epoch."""
    result: Counter[int] = Counter()
    for ref in refs:
        table = with_epoch(read_run(store, ref), ref)
        assert is_sorted(hashes(table))
        epochs = table[EPOCH].to_pylist()
        for value, diff, epoch in zip(table["a"].to_pylist(), diffs(table).tolist(), epochs, strict=True):
            if until is None or epoch <= until:
                result[value] += diff
    return Counter({value: count for value, count in result.items() if count})


@dataclass
class Filled:
    """A spine that is filled epoch by epoch, with a record of every file that was written."""

    store: ObjectStore
    how: Compaction
    spine: Spine = field(default_factory=Spine)
    epoch: int = -1
    files: dict[str, RunRef] = field(default_factory=dict)
    merged_rows: list[int] = field(default_factory=list)

    def add(self, rows: Sequence[tuple[int, int]], since: int | None = None) -> None:
        """Insert the rows of one epoch, and merge."""
        self.epoch += 1
        how = self.how if since is None else Compaction(self.how.fan, self.how.changelog, since)
        table = delta(rows)
        ref = write_run(self.store, table, epoch=self.epoch, level=level_of(table.num_rows, how.fan), bounds=WHOLE)
        self.files[ref.name] = ref
        spine = insert(self.spine, ref)
        self.spine = maintain(self.store, spine, how, epoch=self.epoch, bounds=WHOLE)
        new = [ref for ref in self.spine.refs if ref.name not in self.files]
        self.files |= {ref.name: ref for ref in new}
        self.merged_rows.append(sum(ref.file_rows for ref in new))

    @property
    def content(self) -> Counter[int]:
        """What the spine holds."""
        return total(self.store, self.spine.refs)
