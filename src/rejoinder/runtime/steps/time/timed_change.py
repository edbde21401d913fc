"""The change of a relation that is kept by partition and time, as a step on an ordered arrangement starts with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, replaced, take
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.ordered import sorted_by_hash_and_value
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.runtime.task import Task, partition_hashes


def timed_change(task: Task, stream: str, arrangement: Arrangement, names: Sequence[str]) -> pa.Table | None:
    """Return the net change of the rows that have a time, with columns `names`, sorted like a run; None if empty."""
    rows = task.streams.get(stream)
    if rows is None or not rows.num_rows:
        return None
    assert arrangement.order is not None
    if HASH not in rows.column_names:
        rows = rows.append_column(HASH, pa.array(partition_hashes(rows, arrangement.key)[0]))
    rows = replaced(rows, DIFF, diffs(rows)).select([*names, HASH, DIFF])
    timed = np.asarray(rows.column(arrangement.order).is_valid())
    rows = consolidate(rows if timed.all() else take(rows, np.flatnonzero(timed)))
    return sorted_by_hash_and_value(rows, arrangement.order) if rows.num_rows else None
