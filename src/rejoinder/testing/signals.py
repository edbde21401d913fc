"""Signals that a test gives besides rows: explicit watermarks and idle partitions, pending until the next step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rejoinder.ir.catalog import Source
from rejoinder.state.watermarks import Partition, Signals, Watermarks


@dataclass
class PendingSignals:
    """Collects signals for the next step. An invalid signal raises at once and changes nothing."""

    explicit: dict[str, dict[Partition, dict[str, int]]] = field(default_factory=dict)
    silent: dict[str, dict[Partition, None]] = field(default_factory=dict)

    def watermark(
        self, source: Source, partition: Partition | None, column: str, value: int, known: Watermarks
    ) -> None:
        """Add an explicit watermark. It must be above earlier ones of each partition, in this step or before it.

        Raises `MissingInput` or `WatermarkRegress`.
        """
        partitions, explicit = known.explicit_partitions(source, partition), self.explicit.get(source.name, {})
        for name in partitions:
            known.check_rise(source, name, column, value, explicit.get(name, {}).get(column))
        for name in partitions:
            self.explicit.setdefault(source.name, {}).setdefault(name, {})[column] = value
        self._mark_active(source, partitions)

    def idle(self, source: Source, partition: Partition | None, known: Watermarks) -> None:
        """Mark a partition idle after the signals so far; None marks all known ones. Raises `MissingInput`."""
        partitions = [partition] if partition is not None else known.partitions_of(source) or [0]
        known.check_partitions(source, partitions)
        self.silent.setdefault(source.name, {}).update(dict.fromkeys(partitions))

    def rows(self, source: Source, rows: Iterable[dict[str, Any]]) -> None:
        """Mark the partitions of new rows as not idle."""
        column = source.partition_by
        self._mark_active(source, {0 if column is None else row.get(column, 0) for row in rows})

    def remove(self, source: Source) -> None:
        """Remove the signals of an earlier source with this name."""
        for signals in (self.explicit, self.silent):
            for name in [name for name in signals if name.lower() == source.name.lower()]:
                del signals[name]

    def signals(self) -> Signals:
        """Return all signals for an epoch."""
        return Signals(self.explicit, self.silent)

    def _mark_active(self, source: Source, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self.silent.get(source.name, {}).pop(partition, None)
