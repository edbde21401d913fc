"""The base class of core operators: by default rows and watermarks pass through.

An operator overrides the handlers that it needs. `on_input_watermark` is called for each input separately,
`on_watermark` once a key has arrived on all inputs that are not idle. A join needs the former, since its inputs have
different keys. A handler must check the key: watermarks of different keys cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rejoinder.core.messages import Message, Rows, as_table
from rejoinder.errors import StateError
from rejoinder.watermarks.coalescer import Idle, Watermark
from rejoinder.watermarks.input_watermarks import Delivery, InputWatermarks


class Operator:
    """An operator with inputs numbered from 0; `inputs` is their number, or the number of upstream instances of each.

    >>> passing = Operator()
    >>> passing.watermark(0, key=1, time=20) + passing.watermark(0, key=2, time=10)
    [Watermark(key=1, time=20), Watermark(key=2, time=10)]
    """

    parts: tuple[str, ...] = ("watermarks",)
    """The names in a snapshot."""

    def __init__(self, inputs: int | Sequence[int] = 1) -> None:
        self._watermarks = InputWatermarks([1] * inputs if isinstance(inputs, int) else inputs)

    def rows(self, ordinal: int, batch: pa.Table | pa.RecordBatch, *, upstream: int = 0) -> list[Message]:
        """Receive rows of an input; return what is emitted. Rows end idleness; an empty batch has no effect."""
        table = as_table(batch)
        if not table.num_rows:
            return []
        self._watermarks.event(ordinal, upstream=upstream)
        return self.on_rows(ordinal, table)

    def watermark(self, ordinal: int, key: int, time: int, *, upstream: int = 0) -> list[Message]:
        """Receive a watermark of an input; return what is emitted. Raises `WatermarkRegress` if it does not rise."""
        return self._delivered(self._watermarks.watermark(ordinal, key, time, upstream=upstream))

    def idle(self, ordinal: int, *, upstream: int = 0) -> list[Message]:
        """Receive an idle message of an input; return what is emitted."""
        return self._delivered(self._watermarks.idle(ordinal, upstream=upstream))

    def idle_inputs(self) -> tuple[int, ...]:
        """Return the inputs that are idle."""
        return tuple(int(ordinal) for ordinal in self._watermarks.whole.idle_inputs())

    def snapshot(self) -> dict[str, Any]:
        """Return the state: plain data, and rows as Arrow tables."""
        return {"watermarks": self._watermarks.snapshot()}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Replace the state by that of snapshots; of several watermarks of a key the smallest counts.

        Raises `StateError` for a snapshot of another operator.
        """
        for snapshot in snapshots:
            missing = [part for part in self.parts if part not in snapshot]
            if missing:
                raise StateError(
                    f"this is not a snapshot of a {type(self).__name__}",
                    detail=f"it has {', '.join(map(str, snapshot)) or 'nothing'}, and no {missing[0]}",
                    hint="restore a snapshot that the same operator returned",
                )
        self._watermarks.restore(*(snapshot["watermarks"] for snapshot in snapshots))

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Handle rows."""
        return [Rows(table)]

    def on_input_watermark(self, ordinal: int, watermark: Watermark) -> list[Message]:
        """Handle a watermark of one input."""
        return []

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        """Handle a watermark of all inputs together."""
        return [watermark]

    def on_idle(self) -> list[Message]:
        """Handle that all inputs are idle."""
        return [Idle()]

    def _delivered(self, deliveries: Sequence[Delivery]) -> list[Message]:
        result: list[Message] = []
        for delivery in deliveries:
            message = delivery.message
            if isinstance(message, Watermark):
                if delivery.ordinal is None:
                    result += self.on_watermark(message)
                else:
                    result += self.on_input_watermark(delivery.ordinal, message)
            elif delivery.ordinal is None:
                result += self.on_idle()
        return result
