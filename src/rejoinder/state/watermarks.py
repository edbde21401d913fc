"""Watermarks of the event-time columns of sources: how an epoch advances them and how the manifest stores them.

A watermark w of a column asserts that no row with a time below w follows. Each partition of a source has its own
watermark. It follows the largest time seen, minus the declared delay, or it is explicit (`Driver.watermark`). The
slowest partition that is not idle determines the watermark of the source (`watermarks.source_watermarks`). Watermarks
are committed with the epoch that advances them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.errors import LimitReached, MissingInput, WatermarkRegress, near_misses
from rejoinder.formats.text.row_text import plain, text
from rejoinder.ir.catalog import MOST_PARTITIONS, Source
from rejoinder.kernels.arrow.ordered import LEAST, as_column
from rejoinder.watermarks.coalescer import Input
from rejoinder.watermarks.formula import PERSISTED, Persisted, RetainedMinimum, UnionMinimum, value_of
from rejoinder.watermarks.source_watermarks import SourceWatermarks

Partition = Input
Times = Mapping[str, Mapping[str, int]]
PartitionTimes = Mapping[str, Mapping[Partition, Mapping[str, int]]]
Snapshot = Mapping[str, Any]
Oldest = Callable[[RetainedMinimum, Times], int]
SHOWN = 50


def shown(value: int | None, kind: pa.DataType) -> Any:
    """Return a watermark as a value of its column, in UTC without a zone; None if there is no watermark."""
    return None if value is None else plain(as_column(np.array([value]), kind)[0].as_py())


def keys_of(source: Source) -> list[str]:
    """List the event-time columns of a source. The index of a column is its key, which is stable across restarts."""
    return sorted(source.watermarks)


@dataclass(frozen=True)
class Signals:
    """Control input of an epoch: what sources report in addition to their rows.

    `explicit`: explicit watermarks by source, partition and column.
    `idle`: partitions that send nothing for now, by source.
    `partitions`: all partitions of a source, where the caller can list them.
    """

    explicit: PartitionTimes = field(default_factory=dict)
    idle: Mapping[str, Collection[Partition]] = field(default_factory=dict)
    partitions: Mapping[str, Iterable[Partition]] = field(default_factory=dict)

    def with_idle(self, idle: Mapping[str, Collection[Partition]]) -> Signals:
        """Return a copy with additional idle partitions."""
        names = dict.fromkeys((*self.idle, *idle))
        return replace(self, idle={name: {*self.idle.get(name, ()), *idle.get(name, ())} for name in names})


@dataclass(frozen=True)
class Watermarks:
    """The watermarks of a flow after an epoch.

    `sources`: by source, a snapshot of its partitions, the `columns` that the keys of the snapshot stand for, and the
    last `explicit` watermarks. `seen` and `idle_since` are processing times of epochs, in milliseconds.
    `persisted`: the last values of unions and joins, by key of the formula.
    `emitted_up_to`: how far each gate has emitted, by its pending arrangement.
    `late`: the number of late rows so far, by view and source.
    """

    sources: Mapping[str, Snapshot] = field(default_factory=dict)
    persisted: Mapping[str, int] = field(default_factory=dict)
    emitted_up_to: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {name: dict(values) for name, values in self.__dict__.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Watermarks:
        """Decode the result of `to_json`. Raises `KeyError` if a field is missing."""
        return cls(**{name: dict(data[name]) for name in ("sources", "persisted", "emitted_up_to", "late")})

    def restricted_to(self, sources: Collection[str], views: Collection[str]) -> Watermarks:
        """Return a copy with these sources and views only."""
        return replace(
            self,
            sources={name: snapshot for name, snapshot in self.sources.items() if name in sources},
            late={view: counts for view, counts in self.late.items() if view in views},
        )

    def with_late(self, late: Mapping[str, Mapping[str, int]]) -> Watermarks:
        """Return a copy with the late rows of an epoch added to the counts."""
        total = {view: dict(counts) for view, counts in self.late.items()}
        for view, counts in late.items():
            view_total = total.setdefault(view, {})
            for name, rows in counts.items():
                view_total[name] = view_total.get(name, 0) + rows
        return replace(self, late=total)

    @property
    def values(self) -> dict[str, dict[str, int]]:
        """The watermark of each event-time column, by source and column, in the column's own unit."""
        return {
            name: {snapshot["columns"][key]: value for key, value in snapshot["released"]}
            for name, snapshot in self.sources.items()
        }

    @property
    def times(self) -> Times:
        """The values that formulas are evaluated with: watermarks and persisted values."""
        return {**self.values, PERSISTED: dict(self.persisted)}

    def with_persisted(self, formulas: Iterable[Persisted], oldest: Oldest | None = None) -> Watermarks:
        """Return a copy with the current values of these formulas, and of no others. List inner formulas first.

        A union is at the minimum of its branches that are not idle. A join is at the minimum of its input and of the
        `oldest` row that it retains; without `oldest` it keeps its value. No value decreases: rows have been emitted
        and expired by it.
        """
        values, keys = dict(self.persisted), dict[str, None]()
        times = {**self.values, PERSISTED: values}
        for formula in formulas:
            value = values.get(formula.key, LEAST)
            if isinstance(formula, UnionMinimum):
                value = max(value, self._union_value(formula, times))
            elif oldest is not None:
                value = max(value, min(value_of(formula.own, times, LEAST), oldest(formula, times)))
            if value != LEAST:
                values[formula.key] = value
                keys[formula.key] = None
        return replace(self, persisted={key: values[key] for key in keys})

    def with_emitted(self, emitted_up_to: Mapping[str, int]) -> Watermarks:
        """Return a copy with the times up to which gates have emitted.

        They are stored so that no gate falls back when a new plan changes the formula of its limit.
        """
        return replace(self, emitted_up_to=dict(emitted_up_to))

    def _union_value(self, union: UnionMinimum, times: Times) -> int:
        branches = zip(union.of, union.sources, strict=True)
        active = [branch for branch, names in branches if not all(self.is_idle(name) for name in names)]
        return min((value_of(branch, times, LEAST) for branch in active), default=LEAST)

    def of(self, source: str, column: str) -> int | None:
        """Return the watermark of a column; None if it has none yet."""
        return self.values.get(source, {}).get(column)

    def is_idle(self, source: str) -> bool:
        """Return whether all partitions of a source are idle. A source without partitions is not idle."""
        inputs = self.sources.get(source, {}).get("inputs", [])
        return bool(inputs) and all(partition["idle"] for partition in inputs)

    def partitions_of(self, source: Source) -> list[Partition]:
        """List the known partitions of a source: declared, reported by the source, or seen in rows."""
        seen = [partition["input"] for partition in self.sources.get(source.name, {}).get("inputs", [])]
        return list(dict.fromkeys([*range(source.partitions), *seen]))

    # -- checks, before any state changes -----------------------------------------------------------------------------

    def check(self, sources: Mapping[str, Source], signals: Signals) -> None:
        """Check the signals of an epoch.

        Raises `MissingInput` for an unknown partition and `WatermarkRegress` for an explicit watermark that does not
        rise.
        """
        for name, source in sources.items():
            explicit, more = signals.explicit.get(name, {}), signals.partitions.get(name, ())
            self.check_partitions(source, [*signals.idle.get(name, ()), *(explicit if source.partitions else ())], more)
            for partition, columns in explicit.items():
                for column, value in columns.items():
                    self.check_rise(source, partition, column, value)

    def check_partitions(self, source: Source, partitions: Iterable[Partition], more: Iterable[Partition] = ()) -> None:
        """Raise `MissingInput` if a source does not have these partitions.

        A source without known partitions has partition 0.
        """
        named = [*self.partitions_of(source), *more]
        known = dict.fromkeys(named or [0])
        missing = next((partition for partition in partitions if partition not in known), None)
        if missing is not None:
            listed = [str(partition) for partition in known]
            shown = f"its partitions are {', '.join(listed[:SHOWN])}{', …' if len(listed) > SHOWN else ''}"
            raise MissingInput(
                f"`{source.name}` has no partition {missing!r}",
                detail=shown if named or not _is_partitioned(source) else "none is known before it has sent a row",
                hint=near_misses(str(missing), listed) or "name one of these, or declare OPTIONS (partitions 'n')",
            )

    def explicit_partitions(
        self, source: Source, partition: Partition | None, more: Iterable[Partition] = ()
    ) -> list[Partition]:
        """List the partitions that an explicit watermark applies to: the given one, or all known ones.

        A given partition is new if it is not known, unless the declaration or the source (`more`) lists the partitions.
        Raises `MissingInput` if the partition does not exist, or if none is given and none is known.
        """
        named = list(more)
        if partition is not None:
            if source.partitions or named:
                self.check_partitions(source, [partition], named)
            return [partition]
        known = list(dict.fromkeys([*self.partitions_of(source), *named]))
        if not known and _is_partitioned(source):
            raise MissingInput(
                f"no partition of `{source.name}` is known yet",
                detail="one is known once it has sent a row",
                hint="name the partition, or declare OPTIONS (partitions 'n')",
            )
        return known or [0]

    def check_rise(
        self, source: Source, partition: Partition, column: str, value: int, pending: int | None = None
    ) -> None:
        """Raise `WatermarkRegress` if a partition had an equal or higher explicit watermark before.

        `pending` is the last one, if an epoch has not applied it yet. A value below the watermark that follows from
        rows is accepted, since it does not contradict an earlier explicit one; it has no effect.
        """
        last = self.explicit(source.name, partition).get(column) if pending is None else pending
        if last is not None and value <= last:
            times = [text(shown(time, source.schema.field(column).type)) for time in (value, last)]
            raise WatermarkRegress(
                f"the watermark of `{source.name}`.`{column}` does not rise",
                detail=f"partition {partition!r} got {times[0]} after {times[1]}",
                hint="a watermark promises that no earlier row follows: pass one only when it is higher than the last",
            )

    def explicit(self, source: str, partition: Partition) -> dict[str, int]:
        """Return the last explicit watermarks of a partition, by column."""
        entries: dict[Partition, dict[str, int]] = dict(self.sources.get(source, {}).get("explicit", []))
        return dict(entries.get(partition, {}))

    # -- an epoch -----------------------------------------------------------------------------------------------------

    def advanced(
        self, sources: Mapping[str, Source], observed: PartitionTimes, signals: Signals, now: int, since: int
    ) -> Watermarks:
        """Return the watermarks after an epoch at `now` that saw the `observed` largest times of each partition.

        Rows and explicit watermarks are applied before idle marks, because an idle mark refers to what follows.
        A partition is silent at the earliest from `since`, the start of the flow: a stopped flow reads nothing.
        """
        return replace(
            self,
            sources={
                name: self._advanced_source(source, observed.get(name, {}), signals, now, since)
                for name, source in sources.items()
                if source.watermarks
            },
        )

    def _advanced_source(
        self, source: Source, observed: Mapping[Partition, Mapping[str, int]], signals: Signals, now: int, start: int
    ) -> Snapshot:
        columns, previous = keys_of(source), self.sources.get(source.name)
        explicit, idle = signals.explicit.get(source.name, {}), signals.idle.get(source.name, ())
        marks = self._marks(source, now, start)
        for partition in (*signals.partitions.get(source.name, ()), *observed, *explicit, *idle):
            marks.add(partition)
        _check_number(source, marks.partitions)
        marks.update(_keyed(observed, columns), _keyed(explicit, columns))
        marks.idle(*marks.silent(), *idle)
        snapshot = marks.snapshot()
        last: dict[Partition, Mapping[str, int]] = dict(previous["explicit"]) if previous else {}
        for partition, times in explicit.items():
            last[partition] = {**last.get(partition, {}), **times}
        idle_since = {entry["input"]: entry["idle_since"] for entry in previous["inputs"]} if previous else {}
        for entry in snapshot["inputs"]:
            is_active = entry["input"] in observed or entry["input"] in explicit
            since = None if is_active else idle_since.get(entry["input"])
            entry["idle_since"] = (now if since is None else since) if entry["idle"] else None
        return {**snapshot, "columns": columns, "explicit": [[partition, times] for partition, times in last.items()]}

    def _marks(self, source: Source, now: int, since: int) -> SourceWatermarks:
        delays = [source.watermarks[column] for column in keys_of(source)]
        lags = {key: delay for key, delay in enumerate(delays) if delay is not None}
        names, after = self.partitions_of(source), source.idle_after
        marks = SourceWatermarks(names, lags=lags, idle_after=after, clock=lambda: now)
        if source.name in self.sources:
            marks.restore(self.sources[source.name], since=since)
        return marks

    def next_idle(self, sources: Iterable[Source], since: int) -> int | None:
        """Return the processing time at which the next partition becomes idle by silence; None if none can."""
        times = []
        for source in sources:
            if source.idle_after is not None and source.name in self.sources:
                snapshot = self.sources[source.name]
                idle = {entry["input"] for entry in snapshot["inputs"] if entry["idle"]}
                times += [max(seen, since) + source.idle_after for name, seen in snapshot["seen"] if name not in idle]
        return min(times, default=None)


def _keyed(times: Mapping[Partition, Mapping[str, int]], columns: list[str]) -> dict[Partition, dict[int, int]]:
    """Return the times by partition and key instead of column."""
    return {
        partition: {columns.index(column): time for column, time in values.items()}
        for partition, values in times.items()
    }


def _check_number(source: Source, partitions: Collection[Partition]) -> None:
    """Raise `LimitReached` for too many partitions: each has an entry in every manifest."""
    if len(partitions) > MOST_PARTITIONS:
        raise LimitReached(
            f"`{source.name}` has {len(partitions):,} partitions, and the limit is {MOST_PARTITIONS:,}",
            detail=f"each different value of `{source.partition_by}` is one",
            hint="use a column with few values, such as a shard or a region, not one that identifies rows",
        )


def _is_partitioned(source: Source) -> bool:
    """Whether rows of a source say their partition."""
    return source.partition_by is not None or source_side(source).is_partitioned
