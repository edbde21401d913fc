"""Watermarks of the sources' event-time columns, as an epoch moves them and as the manifest keeps them.

A watermark w of a column says that no row with a smaller time comes any more. Each partition of a source has its own:
it follows the largest time seen, at the declared delay, or is told (`Driver.watermark`). The slowest partition that is
not idle decides about the source (`watermarks.source_watermarks`). All of it is committed with the epoch that moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.errors import LimitReached, MissingInput, WatermarkRegress, near_misses
from rejoinder.ir.catalog import MOST_PARTITIONS, Source
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.state.row_text import plain, text
from rejoinder.watermarks.coalescer import Input
from rejoinder.watermarks.formula import REMEMBERED, Kept, Merged, Remembered, value_of
from rejoinder.watermarks.source_watermarks import SourceWatermarks

Partition = Input
Times = Mapping[str, Mapping[str, int]]
PartitionTimes = Mapping[str, Mapping[Partition, Mapping[str, int]]]
Snapshot = Mapping[str, Any]
Oldest = Callable[[Kept, Times], int]
SHOWN = 50


def shown(value: int | None, kind: pa.DataType) -> Any:
    """A watermark as a value of its column, in UTC without a zone."""
    return None if value is None else plain(as_column(np.array([value]), kind)[0].as_py())


def keys_of(source: Source) -> list[str]:
    """The event-time columns of a source, by the keys that stand for them: in an order that no restart changes."""
    return sorted(source.watermarks)


@dataclass(frozen=True)
class Signals:
    """What sources say besides their rows, with an epoch.

    `told`: watermarks, by source, partition and column; `idle`: partitions that send nothing for now; `partitions`:
    those that there are, for who can ask the source.
    """

    told: PartitionTimes = field(default_factory=dict)
    idle: Mapping[str, Collection[Partition]] = field(default_factory=dict)
    partitions: Mapping[str, Iterable[Partition]] = field(default_factory=dict)

    def with_idle(self, idle: Mapping[str, Collection[Partition]]) -> Signals:
        """The same, with more partitions that are idle."""
        names = dict.fromkeys((*self.idle, *idle))
        return replace(self, idle={name: {*self.idle.get(name, ()), *idle.get(name, ())} for name in names})


@dataclass(frozen=True)
class Watermarks:
    """What is known of each source: a snapshot of its partitions, `columns` that the keys in it stand for, and `told`.

    `seen` and `idle_since` are on the epochs' clock, in milliseconds. `remembered` are the last values of merges and
    joins, by key; `opened` is how far the gates were open last, by what waits there; `late` is how many rows came too
    late so far, by view and by whose they are.
    """

    sources: Mapping[str, Snapshot] = field(default_factory=dict)
    remembered: Mapping[str, int] = field(default_factory=dict)
    opened: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {name: dict(known) for name, known in self.__dict__.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Watermarks:
        """Read what `to_json` gave, or did when merges alone were remembered."""
        remembered = data["remembered"] if "remembered" in data else data["merged"]
        return cls(dict(data["sources"]), dict(remembered), dict(data.get("opened", {})), dict(data["late"]))

    def keeping(self, sources: Collection[str], views: Collection[str]) -> Watermarks:
        """What is known of these sources and views; the others are let go."""
        return replace(
            self,
            sources={name: known for name, known in self.sources.items() if name in sources},
            late={view: counts for view, counts in self.late.items() if view in views},
        )

    def counting(self, late: Mapping[str, Mapping[str, int]]) -> Watermarks:
        """The same with more rows that came too late."""
        total = {view: dict(counts) for view, counts in self.late.items()}
        for view, counts in late.items():
            known = total.setdefault(view, {})
            for name, rows in counts.items():
                known[name] = known.get(name, 0) + rows
        return replace(self, late=total)

    @property
    def values(self) -> dict[str, dict[str, int]]:
        """The watermark of each event-time column, by source and column, in the column's own unit."""
        return {
            name: {known["columns"][key]: value for key, value in known["released"]}
            for name, known in self.sources.items()
        }

    @property
    def times(self) -> Times:
        """What formulas are worked out with: the watermarks, and what is remembered."""
        return {**self.values, REMEMBERED: dict(self.remembered)}

    def remembering(self, formulas: Iterable[Remembered], oldest: Oldest | None = None) -> Watermarks:
        """The same with the values of these formulas, inner ones first; others are let go. None of them goes back.

        A merge is at the least of its branches that are not idle. A join is at the least of what it received and of
        the `oldest` row that it keeps; where nobody can tell that, it stays where it is.
        """
        known, keys = dict(self.remembered), dict[str, None]()
        times = {**self.values, REMEMBERED: known}
        for formula in formulas:
            value = known.get(formula.key, LEAST)
            if isinstance(formula, Merged):
                value = max(value, self._merged(formula, times))
            elif oldest is not None:
                value = max(value, min(value_of(formula.own, times, LEAST), oldest(formula, times)))
            if value != LEAST:
                known[formula.key] = value
                keys[formula.key] = None
        return replace(self, remembered={key: known[key] for key in keys})

    def opening(self, released: Mapping[str, int]) -> Watermarks:
        """The same with gates that are open so far. None closes again, whatever becomes of the formula of its limit."""
        return replace(self, opened=dict(released))

    def _merged(self, merge: Merged, times: Times) -> int:
        read = zip(merge.of, merge.sources, strict=True)
        active = [branch for branch, names in read if not all(self.is_idle(name) for name in names)]
        return min((value_of(branch, times, LEAST) for branch in active), default=LEAST)

    def of(self, source: str, column: str) -> int | None:
        """The watermark of a column; None before the first."""
        return self.values.get(source, {}).get(column)

    def is_idle(self, source: str) -> bool:
        """Whether all partitions of a source are idle."""
        inputs = self.sources.get(source, {}).get("inputs", [])
        return bool(inputs) and all(each["idle"] for each in inputs)

    def partitions_of(self, source: Source) -> list[Partition]:
        """The partitions of a source that are known: declared, named by the source, or seen."""
        seen = [each["input"] for each in self.sources.get(source.name, {}).get("inputs", [])]
        return list(dict.fromkeys([*range(source.partitions), *seen]))

    # -- checks, before anything is changed ---------------------------------------------------------------------------

    def check(self, sources: Mapping[str, Source], signals: Signals) -> None:
        """Refuse what cannot be: an idle partition that is not there, a told watermark that does not rise."""
        for name, source in sources.items():
            told, more = signals.told.get(name, {}), signals.partitions.get(name, ())
            self.check_partitions(source, [*signals.idle.get(name, ()), *(told if source.partitions else ())], more)
            for partition, columns in told.items():
                for column, value in columns.items():
                    self.check_rise(source, partition, column, value)

    def check_partitions(self, source: Source, partitions: Iterable[Partition], more: Iterable[Partition] = ()) -> None:
        """Raise `MissingInput` if a source has no such partitions. One of which none is known has partition 0."""
        named = [*self.partitions_of(source), *more]
        known = dict.fromkeys(named or [0])
        missing = next((partition for partition in partitions if partition not in known), None)
        if missing is not None:
            listed = [str(each) for each in known]
            shown = f"its partitions are {', '.join(listed[:SHOWN])}{', …' if len(listed) > SHOWN else ''}"
            raise MissingInput(
                f"`{source.name}` has no partition {missing!r}",
                detail=shown if named or not source.is_partitioned else "none is known before it has sent a row",
                hint=near_misses(str(missing), listed) or "name one of these, or declare OPTIONS (partitions 'n')",
            )

    def told_partitions(
        self, source: Source, partition: Partition | None, more: Iterable[Partition] = ()
    ) -> list[Partition]:
        """The partitions that a told watermark is about: the one that is named, or each that is known.

        One that is named becomes known by it, unless source or declaration say which there are (`more`: the source).
        """
        named = list(more)
        if partition is not None:
            if source.partitions or named:
                self.check_partitions(source, [partition], named)
            return [partition]
        known = list(dict.fromkeys([*self.partitions_of(source), *named]))
        if not known and source.is_partitioned:
            raise MissingInput(
                f"no partition of `{source.name}` is known yet",
                detail="one is known once it has sent a row",
                hint="name the partition, or declare OPTIONS (partitions 'n')",
            )
        return known or [0]

    def check_rise(
        self, source: Source, partition: Partition, column: str, value: int, pending: int | None = None
    ) -> None:
        """Raise `WatermarkRegress` if a partition was told the same or a higher watermark before, last `pending`.

        A watermark that is below what follows from rows alone is no regress: it was never told, and adds nothing.
        """
        last = self.told(source.name, partition).get(column) if pending is None else pending
        if last is not None and value <= last:
            times = [text(shown(each, source.schema.field(column).type)) for each in (value, last)]
            raise WatermarkRegress(
                f"the watermark of `{source.name}`.`{column}` does not rise",
                detail=f"partition {partition!r} got {times[0]} after {times[1]}",
                hint="a watermark promises that no earlier row follows: pass one only when it is higher than the last",
            )

    def told(self, source: str, partition: Partition) -> dict[str, int]:
        """The watermarks that a partition was told last, by column."""
        entries: dict[Partition, dict[str, int]] = dict(self.sources.get(source, {}).get("told", []))
        return dict(entries.get(partition, {}))

    # -- an epoch -----------------------------------------------------------------------------------------------------

    def advanced(
        self, sources: Mapping[str, Source], observed: PartitionTimes, signals: Signals, now: int, since: int
    ) -> Watermarks:
        """The watermarks after an epoch at `now`, which saw the `observed` largest times of each partition.

        Rows and told watermarks come first, then what is idle: an idle message is about what follows. Silence counts
        from `since` on, when the flow was started: before that it was the flow that was silent.
        """
        return replace(
            self,
            sources={
                name: self._moved(source, observed.get(name, {}), signals, now, since)
                for name, source in sources.items()
                if source.watermarks
            },
        )

    def _moved(
        self, source: Source, observed: Mapping[Partition, Mapping[str, int]], signals: Signals, now: int, start: int
    ) -> Snapshot:
        columns, known = keys_of(source), self.sources.get(source.name)
        told, idle = signals.told.get(source.name, {}), signals.idle.get(source.name, ())
        marks = self._marks(source, now, start)
        for partition in (*signals.partitions.get(source.name, ()), *observed, *told, *idle):
            marks.add(partition)
        _check_number(source, marks.partitions)
        marks.together(_keyed(observed, columns), _keyed(told, columns))
        marks.idle(*marks.silent(), *idle)
        snapshot = marks.snapshot()
        all_told: dict[Partition, Mapping[str, int]] = dict(known["told"]) if known else {}
        for partition, times in told.items():
            all_told[partition] = {**all_told.get(partition, {}), **times}
        before = {each["input"]: each["idle_since"] for each in known["inputs"]} if known else {}
        for each in snapshot["inputs"]:
            active = each["input"] in observed or each["input"] in told
            since = None if active else before.get(each["input"])
            each["idle_since"] = (now if since is None else since) if each["idle"] else None
        return {**snapshot, "columns": columns, "told": [[partition, times] for partition, times in all_told.items()]}

    def _marks(self, source: Source, now: int, since: int) -> SourceWatermarks:
        delays = [source.watermarks[column] for column in keys_of(source)]
        lags = {key: delay for key, delay in enumerate(delays) if delay is not None}
        names, after = self.partitions_of(source), source.idle_after
        marks = SourceWatermarks(names, lags=lags, idle_after=after, clock=lambda: now)
        if source.name in self.sources:
            marks.restore(self.sources[source.name], since=since)
        return marks

    def next_idle(self, sources: Iterable[Source], since: int) -> int | None:
        """When, on the clock, the first partition is idle because of its silence; None if none waits for that."""
        times = []
        for source in sources:
            if source.idle_after is not None and source.name in self.sources:
                known = self.sources[source.name]
                idle = {each["input"] for each in known["inputs"] if each["idle"]}
                times += [max(seen, since) + source.idle_after for name, seen in known["seen"] if name not in idle]
        return min(times, default=None)


def _keyed(times: Mapping[Partition, Mapping[str, int]], columns: list[str]) -> dict[Partition, dict[int, int]]:
    """Times by partition and key instead of column."""
    return {
        partition: {columns.index(column): time for column, time in values.items()}
        for partition, values in times.items()
    }


def _check_number(source: Source, partitions: Collection[Partition]) -> None:
    """Refuse a column of values that are no partitions: each has an entry in every manifest."""
    if len(partitions) > MOST_PARTITIONS:
        raise LimitReached(
            f"`{source.name}` has {len(partitions):,} partitions, and the limit is {MOST_PARTITIONS:,}",
            detail=f"each different value of `{source.partition_by}` is one",
            hint="take a column with few values, such as a shard or a region, not one that tells rows apart",
        )
