"""Prepare the hydration of a definition or an ad-hoc query, and put its result into the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rejoinder.connectors.registry import source_side
from rejoinder.engine.hydration.source_replay import SourceReplay, refuse_changed
from rejoinder.engine.version import Version
from rejoinder.ir.catalog import Source
from rejoinder.ir.splits import FileSplit, Split
from rejoinder.plan.physical.dataflow import ArrangementScan, Dataflow, SourceScan
from rejoinder.plan.planning import Plan
from rejoinder.plan.schedule.hydration import Hydration
from rejoinder.plan.schedule.retained_relations import Holdings
from rejoinder.runtime.task import Report, expiry_of
from rejoinder.state.completeness import holdings_of
from rejoinder.state.flow_state import Parts, State
from rejoinder.state.watermarks import Times
from rejoinder.store.runs.expiry import Expiry


@dataclass(frozen=True)
class Filling:
    """A hydration that is ready to run on `splits`: tasks see `before`, without what `expiry` says is expired."""

    dataflow: Dataflow
    holdings: Holdings
    before: Parts
    splits: list[Split]
    expiry: Mapping[str, Expiry]
    topics: tuple[Source, ...] = ()
    """Sources whose records are read again by Spark."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The signatures of the files that are read again, by path."""

    def into(self, state: State, reports: Mapping[int, Report]) -> State:
        """Return the state with the new arrangements and views. Arrangements that are held already are dropped.

        Raises `MissingInput` if a file was changed before a task read it again.
        """
        for report in reports.values():
            refuse_changed(self.files, report.signatures)
        held = set(self.holdings.held)
        kept = replace(state, arrangements={name: parts for name, parts in state.arrangements.items() if name in held})
        new_reports = {
            bucket: replace(report, spines={name: spine for name, spine in report.spines.items() if name not in held})
            for bucket, report in reports.items()
        }
        return kept.with_reports(new_reports)


def prepare(version: Version, replay: SourceReplay, new: Plan, after: Times) -> Filling:
    """Plan the hydration of what a plan needs and a version does not have. Raises `Incomplete`."""
    holdings = holdings_of(version, new, after, replay.unreadable)
    hydration = Hydration(new.program, holdings)
    dataflow = hydration.build()
    scanned = {scan.arrangement.id for scan in dataflow.scans.values() if isinstance(scan, ArrangementScan)}
    state, retentions = version.state, version.dataflow.retentions
    read = scanned | hydration.filled
    before = {name: parts for name, parts in state.arrangements.items() if name in read}
    before |= {second: state.arrangements[name] for second, name in hydration.second_names.items()}
    before |= state.changelogs
    expired = {name: expiry_of(retentions[name], version.times) for name in scanned if name in retentions}
    again = [scan.source for scan in dataflow.scans.values() if isinstance(scan, SourceScan)]
    files = {source.name: replay.files(source) for source in again if source_side(source).rereads_files}
    splits = state.splits(dataflow)
    for source in again:
        for number, file in enumerate(files.get(source.name, ())):
            splits.append(FileSplit(source.name, file.path, file.modified, replay.former(source, number)))
    signatures = {file.path: file.signature for read in files.values() for file in read}
    topics = tuple(source for source in again if not source_side(source).rereads_files)
    return Filling(dataflow, holdings, before, splits, expired, topics, signatures)
