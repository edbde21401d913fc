"""Keys that have several rows in a view, for sinks that keep a row per key and cannot tell what they hold.

The changes of an epoch do not show a row that came in an earlier one. Where the query of the view proves its key
(`plan.time.unique_keys`) nothing is to be done. Else the rows of the keys that got one are looked for in the view as it
is after the epoch: one pass over the columns of the key, cut by row hash as deliveries are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery, EpochChanges
from rejoinder.connectors.sink_messages import Encoder
from rejoinder.kernels.arrow.columns import DIFF, UInt64, diffs, numbers, take
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.state.changelog_reader import net_rows

_EPOCH, _DIFF = DELIVERED_COLUMNS.names


def refuse_doubles(delivery: Delivery, encoder: Encoder) -> None:
    """Raise `SinkFailed` if a key that got a row in this epoch has more than one now. A snapshot shows that itself."""
    if delivery.is_snapshot or delivery.is_unique(encoder.key):
        return
    came = [take(rows, np.flatnonzero(numbers(rows, _DIFF) > 0)) for rows in delivery.rows()]
    hashes = [hash_rows([rows.column(name) for name in encoder.key], rows.num_rows) for rows in came]
    parts = max(1, delivery.content.parts)
    wanted = np.unique(np.concatenate([*hashes, np.zeros(0, np.uint64)]))
    look_up = KeyRows(delivery.content, parts, encoder.key, wanted)
    found = [look_up(0)] if parts == 1 else delivery.host.run(look_up, parts)
    rows = pa.concat_tables(found)
    groups = group_rows(rows, encoder.key)
    copies = np.bincount(groups.group_of, diffs(rows), minlength=len(groups.starts))
    if (copies > 1).any():
        told = rows.append_column(_EPOCH, pa.array(np.full(rows.num_rows, delivery.epoch)))
        encoder.refuse(told, int(groups.starts[np.argmax(copies > 1)]), "has more than one row")


@dataclass(frozen=True)
class KeyRows:
    """Finds the rows of a part of a view whose key has one of some hashes, wherever it is run."""

    content: EpochChanges
    parts: int
    key: tuple[str, ...]
    wanted: UInt64

    def __call__(self, number: int) -> pa.Table:
        """The columns of the key, and `__diff`."""
        content, hashes = self.content, hash_range(number, self.parts)
        found = net_rows(
            content.store,
            content.refs,
            content.schema,
            after=content.after,
            until=content.epoch,
            hashes=hashes,
            keep=self._keep,
        )
        return found.select([*self.key, DIFF])

    def _keep(self, rows: pa.Table) -> pa.Table:
        hashes = hash_rows([rows.column(name) for name in self.key], rows.num_rows)
        return take(rows, np.flatnonzero(np.isin(hashes, self.wanted)))
