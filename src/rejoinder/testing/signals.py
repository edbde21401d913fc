"""What a test says of its sources besides rows, until the next step takes it: watermarks, and who is idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rejoinder.ir.catalog import Source
from rejoinder.state.watermarks import Partition, Signals, Watermarks


@dataclass
class Said:
    """Collects signals. What is wrong raises at once and changes nothing."""

    told: dict[str, dict[Partition, dict[str, int]]] = field(default_factory=dict)
    silent: dict[str, dict[Partition, None]] = field(default_factory=dict)

    def watermark(
        self, source: Source, partition: Partition | None, column: str, value: int, known: Watermarks
    ) -> None:
        """Tell a watermark: it must be above what each partition was told before, in this step or an earlier one."""
        named, told = known.told_partitions(source, partition), self.told.get(source.name, {})
        for each in named:
            known.check_rise(source, each, column, value, told.get(each, {}).get(column))
        for each in named:
            self.told.setdefault(source.name, {}).setdefault(each, {})[column] = value
        self._active(source, named)

    def idle(self, source: Source, partition: Partition | None, known: Watermarks) -> None:
        """Say that a partition is idle after what was said before; None stands for all that are known."""
        named = [partition] if partition is not None else known.partitions_of(source) or [0]
        known.check_partitions(source, named)
        self.silent.setdefault(source.name, {}).update(dict.fromkeys(named))

    def rows(self, source: Source, rows: Iterable[dict[str, Any]]) -> None:
        """Note that rows follow: their partitions are not idle, after all."""
        by = source.partition_by
        self._active(source, {0 if by is None else row.get(by, 0) for row in rows})

    def forget(self, source: Source) -> None:
        """Drop what was said of an earlier source of this name."""
        for said in (self.told, self.silent):
            for name in [name for name in said if name.lower() == source.name.lower()]:
                del said[name]

    def signals(self) -> Signals:
        """All that was said."""
        return Signals(self.told, self.silent)

    def _active(self, source: Source, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            self.silent.get(source.name, {}).pop(partition, None)
