"""Duplicate keys: detect keys with several rows in a view, for sinks with one row per key that cannot be read back.

The changes of an epoch do not show rows of earlier epochs. If the query of the view proves that the key is unique
(`plan.time.unique_keys`), no check is necessary. Otherwise the keys that got a row are looked up in the view as of the
epoch. Cost: one pass over the key columns of the view, split by row hash as deliveries are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery, EpochChanges
from rejoinder.connectors.kafka.sink_messages import Encoder
from rejoinder.kernels.arrow.columns import DIFF, UInt64, diffs, numbers, take
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.store.runs.net_rows import net_rows

_EPOCH, _DIFF = DELIVERED_COLUMNS.names


def refuse_duplicate_keys(delivery: Delivery, encoder: Encoder) -> None:
    """Raise `SinkFailed` if a key that got a row in this epoch has more than one row now.

    A snapshot has all rows, so the encoder finds duplicates itself.
    """
    if delivery.is_snapshot or delivery.is_unique(encoder.key):
        return
    inserted = [take(rows, np.flatnonzero(numbers(rows, _DIFF) > 0)) for rows in delivery.rows()]
    hashes = [hash_rows([rows.column(name) for name in encoder.key], rows.num_rows) for rows in inserted]
    parts = max(1, delivery.content.parts)
    wanted = np.unique(np.concatenate([*hashes, np.zeros(0, np.uint64)]))
    look_up = KeyRows(delivery.content, parts, encoder.key, wanted)
    rows = pa.concat_tables([look_up(0)] if parts == 1 else delivery.host.run(look_up, parts))
    groups = group_rows(rows, encoder.key)
    copies = np.bincount(groups.group_of, diffs(rows), minlength=len(groups.starts))
    if (copies > 1).any():
        changes = rows.append_column(_EPOCH, pa.array(np.full(rows.num_rows, delivery.epoch)))
        encoder.refuse(changes, int(groups.starts[np.argmax(copies > 1)]), "has more than one row")


@dataclass(frozen=True)
class KeyRows:
    """Finds the rows of a part of a view by the hashes of their keys. Sent to tasks."""

    content: EpochChanges
    parts: int
    key: tuple[str, ...]
    wanted: UInt64

    def __call__(self, number: int) -> pa.Table:
        """Return the key columns and `__diff` of the rows of a part."""
        content, hashes = self.content, hash_range(number, self.parts)
        rows = net_rows(
            content.store,
            content.refs,
            content.schema,
            after=content.after,
            until=content.epoch,
            hashes=hashes,
            keep=self._keep,
        )
        return rows.select([*self.key, DIFF])

    def _keep(self, rows: pa.Table) -> pa.Table:
        hashes = hash_rows([rows.column(name) for name in self.key], rows.num_rows)
        return take(rows, np.flatnonzero(np.isin(hashes, self.wanted)))
