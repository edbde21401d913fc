"""The state of a flow between epochs: the runs of each arrangement and changelog, by bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.ir.logical import EMIT_AT
from rejoinder.ir.splits import Split, StateSplit
from rejoinder.kernels.arrow.columns import diffs
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.physical.dataflow import ArrangementScan, ChangelogScan, Dataflow, DueScan, UnitScan
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.plan.rounds.program import Gate
from rejoinder.runtime.task import Clock, Report, expiry_of
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import read_run
from rejoinder.store.runs.spine import Spine

Parts = dict[str, tuple[Spine, ...]]


@dataclass(frozen=True)
class State:
    """The runs of a flow. Arrangements are split by hash range, changelogs by the bucket that wrote them."""

    buckets: int
    arrangements: Parts = field(default_factory=dict)
    changelogs: Parts = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "buckets": self.buckets,
            "arrangements": {name: [s.to_json() for s in parts] for name, parts in self.arrangements.items()},
            "changelogs": {name: [s.to_json() for s in parts] for name, parts in self.changelogs.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> State:
        """Decode the result of `to_json`."""

        def parts(spines: Mapping[str, Any]) -> Parts:
            return {name: tuple(Spine.from_json(s) for s in listed) for name, listed in spines.items()}

        return cls(data["buckets"], parts(data["arrangements"]), parts(data["changelogs"]))

    @property
    def parts(self) -> Parts:
        """Arrangements and changelogs as tasks see them, by name."""
        return {**self.arrangements, **self.changelogs}

    def cut(self, buckets: int) -> State:
        """Return the state for another number of buckets. Only references are clipped; no file is read or written."""
        if buckets == self.buckets:
            return self
        ranges = [hash_range(bucket, buckets) for bucket in range(buckets)]
        arrangements = {}
        for name, parts in self.arrangements.items():
            whole = Spine(tuple(ref for part in parts for ref in part.refs))
            arrangements[name] = tuple(replace(whole.within(*bounds), credit=0) for bounds in ranges)
        changelogs = {}
        for name, parts in self.changelogs.items():
            folded = [Spine() for _ in range(buckets)]
            for number, part in enumerate(parts):
                spine = folded[number % buckets]
                folded[number % buckets] = Spine((*spine.refs, *part.refs), spine.credit + part.credit)
            changelogs[name] = tuple(folded)
        return State(buckets, arrangements, changelogs)

    def with_reports(self, reports: Mapping[int, Report]) -> State:
        """Return the state after an epoch, from the reports of its buckets."""
        arrangements, changelogs = dict(self.arrangements), dict(self.changelogs)
        for bucket, report in reports.items():
            for target, spines in ((arrangements, report.spines), (changelogs, report.changelogs)):
                for name, spine in spines.items():
                    parts = list(target.get(name, (Spine(),) * self.buckets))
                    parts[bucket] = spine
                    target[name] = tuple(parts)
        return State(self.buckets, arrangements, changelogs)

    def restricted_to(self, arrangements: Iterable[str], changelogs: Iterable[str]) -> State:
        """Return a copy with these arrangements and changelogs only. Those that do not exist yet are empty."""
        empty = (Spine(),) * self.buckets
        return State(
            self.buckets,
            {name: self.arrangements.get(name, empty) for name in arrangements},
            {name: self.changelogs.get(name, empty) for name in changelogs},
        )

    def splits(self, dataflow: Dataflow) -> list[Split]:
        """Return the splits of a hydration: one for each bucket of the arrangements and changelogs that it scans."""
        splits: list[Split] = [StateSplit(name) for name, scan in dataflow.scans.items() if isinstance(scan, UnitScan)]
        return splits + [
            StateSplit(name, bucket)
            for name, scan in dataflow.scans.items()
            if isinstance(scan, ArrangementScan | DueScan | ChangelogScan)
            for bucket, part in enumerate(self.parts[_scanned(scan)])
            if part.refs
        ]

    def expired(self, gates: Iterable[Gate], retentions: Mapping[str, Retention], clock: Clock) -> State:
        """Return the state without runs that are completely emitted or expired."""
        arrangements = dict(self.arrangements)
        expiries = {name: expiry_of(retention, clock.watermarks) for name, retention in retentions.items()}
        pending = [gate.pending.id for gate in gates]
        expiries |= {name: Expiry.below(EMIT_AT, clock.emitted_up_to[name] + 1) for name in pending}
        for name, expiry in expiries.items():
            parts = arrangements.get(name, ())
            arrangements[name] = tuple(
                replace(part, refs=tuple(ref for ref in part.refs if not expiry.is_expired(ref))) for part in parts
            )
        return replace(self, arrangements=arrangements)

    def files(self) -> set[str]:
        """Return the names of all runs."""
        return {ref.name for parts in self.parts.values() for part in parts for ref in part.refs}

    def net_rows(self, store: ObjectStore, arrangement: str) -> int:
        """Return the number of rows of an arrangement, without retracted rows. Reads all its runs."""
        refs = [ref for part in self.arrangements.get(arrangement, ()) for ref in part.refs]
        return sum(int(diffs(read_run(store, ref)).sum()) for ref in refs)

    def statistics(self) -> dict[str, Statistics]:
        """Return rows and keys of each arrangement. Keys are counted per run; the largest run gives the estimate."""
        result = {}
        for name, parts in self.arrangements.items():
            refs = [ref for part in parts for ref in part.refs]
            rows = sum(ref.rows for ref in refs)
            largest = max(refs, key=lambda ref: ref.rows, default=None)
            if largest is not None and largest.rows:
                result[name] = Statistics(rows, max(1, rows * largest.keys // largest.rows))
        return result


def _scanned(scan: ArrangementScan | DueScan | ChangelogScan) -> str:
    match scan:
        case ArrangementScan():
            return scan.arrangement.id
        case DueScan():
            return scan.pending.id
        case ChangelogScan():
            return scan.view


def bytes_written(before: State, after: State) -> int:
    """Return the bytes of the runs that are new in `after`."""
    known = before.files()
    new = {ref.name: ref.size for parts in after.parts.values() for part in parts for ref in part.refs}
    return sum(size for name, size in new.items() if name not in known)
