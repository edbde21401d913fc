"""Encode the changes of an epoch as messages with a key and a value, in one of three modes.

`append` sends every change, with `_epoch` and `_diff` in the value. `upsert` sends the row of a key after the epoch, or
a tombstone if it has none. `debezium` sends the rows before and after. The last two modes need a sink key that is
unique in the view; a key with two rows is an error. `message_values` encodes a row as a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery
from rejoinder.connectors.kafka.message_values import Values
from rejoinder.connectors.kafka.record_layout import key_format_of
from rejoinder.errors import SinkFailed
from rejoinder.kernels.arrow.columns import Int64, numbers, single_chunk, take, without
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.json_text import json_rows
from rejoinder.kernels.duckdb.text_expression import text_expression

MESSAGES = pa.schema([("key", pa.binary()), ("value", pa.binary())])
_EPOCH, _DIFF = DELIVERED_COLUMNS.names


@dataclass(frozen=True)
class Encoder:
    """Encodes the changes of a sink as messages. All changes of a key must be in the same call. Sent to tasks."""

    sink: str
    view: str
    mode: str
    key: tuple[str, ...]
    values: Values
    is_snapshot: bool = False

    @classmethod
    def of(cls, delivery: Delivery, mode: str, key: tuple[str, ...]) -> Encoder:
        """Return the encoder of a delivery."""
        sink = delivery.sink
        return cls(sink.name, sink.view, mode, key, Values(sink), delivery.is_snapshot)

    def on_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode the batches of a Spark partition."""
        collected = list(batches)
        if collected:
            yield from self.encode(pa.Table.from_batches(collected)).to_batches()

    def encode(self, changes: pa.Table) -> pa.Table:
        """Return messages in the order of the changes, or one for each key. Raises `SinkFailed` for a duplicate key."""
        if self.mode == "append":
            return self._messages(changes, self.values.write(changes))
        rows = without(changes, [_EPOCH, _DIFF])
        old, new = self._sides(changes)
        keyed = take(rows, np.where(new >= 0, new, old))
        after = self._row_or_null(rows, new)
        if self.mode == "upsert":
            is_tombstone = (new >= 0) & np.asarray(after.is_null())
            if is_tombstone.any():
                self.refuse(
                    changes, int(new[np.argmax(is_tombstone)]), "has NULL for its value, which would delete it,"
                )
            return self._messages(keyed, after)
        return self._messages(keyed, self._envelopes(self._row_or_null(rows, old), after, changes))

    def _sides(self, changes: pa.Table) -> tuple[Int64, Int64]:
        """Return the positions of the removed and the added row of each key, −1 where there is none."""
        groups, signs = group_rows(changes, self.key), numbers(changes, _DIFF)
        sides = []
        for on_side in (signs < 0, signs > 0):
            copies = np.bincount(groups.group_of[on_side], np.abs(signs[on_side]), minlength=len(groups.starts))
            if (copies > 1).any():
                self.refuse(changes, int(groups.starts[np.argmax(copies > 1)]), "has more than one row")
            rows = np.full(len(groups.starts), -1, np.int64)
            rows[groups.group_of[on_side]] = np.flatnonzero(on_side)
            sides.append(rows)
        return sides[0], sides[1]

    def refuse(self, changes: pa.Table, row: int, problem: str) -> None:
        """Raise `SinkFailed` for the key in a row of changes."""
        values = changes.select(list(self.key)).slice(row, 1).to_pylist()[0]
        key = ", ".join(f"{name} = {value!r}" for name, value in values.items())
        raise SinkFailed(
            f"a key of sink `{self.sink}` {problem} in `{self.view}`",
            detail=f"columns of the key: {', '.join(values)}; epoch {changes.column(_EPOCH)[row].as_py()}",
            values=key,
            hint="choose key columns that identify a row: DROP SINK, and CREATE it with another key, "
            "or send all changes: mode 'append'",
        )

    def _messages(self, rows: pa.Table, values: pa.Array | pa.ChunkedArray) -> pa.Table:
        keys = self._keys(rows) if self.key else pa.nulls(rows.num_rows, pa.binary())
        return pa.table({"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())}, schema=MESSAGES)

    def _keys(self, rows: pa.Table) -> pa.Array:
        """Encode keys as sources read them: bytes as they are, one value as text, several as a JSON object."""
        key = rows.select(list(self.key))
        if self.mode != "append":
            for name in self.key:
                if key.column(name).null_count:
                    changes = rows.append_column(_EPOCH, pa.nulls(rows.num_rows, pa.int64()))
                    first = int(np.argmax(np.asarray(key.column(name).is_null())))
                    self.refuse(changes, first, "is NULL")
        form = key_format_of(key.schema.types)
        if form == "json":
            return single_chunk(json_rows(key))
        text = text_expression(f"CAST({quoted(self.key[0])} AS VARCHAR)", pa.string(), self.key)
        return single_chunk(key.column(0) if form == "raw" else project(key, [("key", text)]).column(0))

    def _row_or_null(self, rows: pa.Table, places: Int64) -> pa.Array:
        """Return the values of rows by position; NULL where the position is −1."""
        exists = places >= 0
        if not exists.any():
            return pa.nulls(len(places), pa.string())
        return self.values.write(take(rows, places[exists])).take(pa.array(np.cumsum(exists) - 1, mask=~exists))

    def _envelopes(self, before: pa.Array, after: pa.Array, changes: pa.Table) -> pa.Array:
        """Return Debezium envelopes: `before`, `after`, `op` (c, u, d; r in a snapshot), and `source`."""
        epoch = changes.column(_EPOCH)[0].as_py()
        origin = json.dumps({"connector": "rejoinder", "table": self.view, "sink": self.sink, "epoch": epoch})
        created = pc.if_else(before.is_null(), "r" if self.is_snapshot else "c", "u")
        ops = pc.if_else(after.is_null(), "d", created)
        parts = ['{"before":', before.fill_null("null"), ',"after":', after.fill_null("null"), ',"op":"', ops]
        return pc.binary_join_element_wise(*parts, f'","source":{origin}}}', "")
