"""Read the changes of runs between two epochs, and net them over the epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, contiguous, numbers, replaced, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.run import RunRef, read_run, with_epoch


def net_rows(
    store: ObjectStore,
    refs: Sequence[RunRef],
    schema: pa.Schema,
    *,
    after: int,
    until: int,
    hashes: tuple[int, int],
    keep: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Return the changes of some runs after `after` up to `until`, netted over the epochs, with `__diff`.

    `keep` filters the rows of each run first. It must keep all changes of a row, or none.
    """
    return consolidate(without(changes_in(store, refs, schema, after, until, hashes, keep), [EPOCH]))


def changes_in(
    store: ObjectStore,
    refs: Sequence[RunRef],
    schema: pa.Schema,
    after: int,
    until: int,
    hashes: tuple[int, int],
    keep: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Return the changes of some runs after `after` up to `until`, with `__epoch` and `__diff`, run after run."""
    full = schema.append(pa.field(EPOCH, pa.int64())).append(pa.field(DIFF, pa.int64()))
    parts = [full.empty_table()]
    for ref in refs:
        table = read_run(store, ref.clipped(*hashes)) if ref.overlaps(*hashes) else None
        table = table if table is None or keep is None else keep(table)
        if table is None or not table.num_rows:
            continue
        table = without(with_epoch(table, ref), [HASH])
        if ref.epochs[0] <= after or ref.epochs[1] > until:
            epochs = numbers(table, EPOCH)
            table = take(table, np.flatnonzero((epochs > after) & (epochs <= until)))
        if DIFF not in table.column_names:
            table = replaced(table, DIFF, np.ones(table.num_rows, np.int64))
        parts.append(table.select(full.names))
    return contiguous(parts)
