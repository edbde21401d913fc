"""Hydration: the one-off dataflow that fills new arrangements and new views from what is there already.

Rules:
- only what is new is computed, and only from relations that something new needs;
- a relation that has an arrangement, be it empty, or one that is dropped with this very definition, is read from there
  (what is not in it may be past, and not to be found again), and a view, or notes, from the changelog;
- else it is computed from what it is made from, as if all rows of one input arrived now and met the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rejoinder.plan.accumulators import UNIT, Grouping
from rejoinder.plan.arrangement import Arrangement
from rejoinder.plan.catalog import ON_TIME
from rejoinder.plan.dataflow import Builder
from rejoinder.plan.enrichment import enrich
from rejoinder.plan.grouping import group
from rejoinder.plan.normal import Derived, Enrichment, Last, Recording, Union, Versions
from rejoinder.plan.paths import JoinPlan, check_keys, path, single
from rejoinder.plan.physical import ArrangementScan, ChangelogScan, Dataflow, UnitScan
from rejoinder.plan.program import Program, row_arrangement
from rejoinder.plan.recording import keep_last, record
from rejoinder.plan.rounds import Fragment
from rejoinder.plan.steps import Distinct
from rejoinder.plan.validity import validate


class Hydration(Builder):
    """Builds the dataflow; `filled` are the arrangements and `views` the views that are up to date.

    Of several arrangements of a relation the last one is read.
    """

    def __init__(self, program: Program, filled: Iterable[Arrangement], views: set[str]) -> None:
        super().__init__(program)
        self.known_views = views
        self.filled = {arrangement.id for arrangement in filled}
        self.donors: Mapping[str, Arrangement] = {arrangement.relation: arrangement for arrangement in filled}

    def keeps(self, arrangement: Arrangement) -> bool:
        """Whether the arrangement is to be filled."""
        return arrangement.id not in self.filled

    def build(self) -> Dataflow:
        """Make the dataflow."""
        self.collect()
        waiting = {gate.pending.id for gate in self.program.gates}  # filled with their views
        needed = [a for by_id in self.needed.values() for a in by_id.values() if a.id not in waiting]
        new = [a.relation for a in needed if self.keeps(a)]
        for name in (*self.program.views, *(relation.removesuffix("/input") for relation in new)):
            if name not in self.known_views or name in new:
                self.relation(name)
        for source in self.program.sources.values():
            if source.keeps_changes and source.changes not in self.known_views:
                self.relation(source.name)
                self.record(source)
        read = {getattr(step, "input", None) for steps in self.rounds for step in steps}
        self.scans = {name: scan for name, scan in self.scans.items() if scan.stream in read}
        return self.finish()

    def relation(self, name: str) -> None:
        """Offer the content of a relation, from an arrangement of it if there is one."""
        if name in self.fragments:
            return
        if name in self.donors:
            self.scan(name)
            self.arrange(name, check=False)
        elif name.endswith(ON_TIME):
            self.relation(name.removesuffix(ON_TIME))
            self.fragments[name] = self.fragments[name.removesuffix(ON_TIME)]
            self.arrange(name, check=False)
        elif name in self.program.sources and name + ON_TIME in self.donors:  # what is not forgotten yet
            self.relation(name + ON_TIME)
            self.fragments[name] = self.fragments[name + ON_TIME]
            self.arrange(name, check=False)
        elif name in self.program.sources:
            self.fragments[name] = []
        elif name in self.known_views:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = ChangelogScan(name, f"scan:{name}")
            self.arrange(name, check=False)
        elif name == UNIT:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = UnitScan(f"scan:{name}")
        elif name + "/input" in self.donors:
            self.derived(self.program.derived[name])
        else:
            super().relation(name)

    def scan(self, relation: str) -> None:
        """Read a relation from an arrangement."""
        self.fragments[relation] = [Fragment(0, f"scan:{relation}")]
        self.scans[relation] = ArrangementScan(self.donors[relation], f"scan:{relation}")

    def derived(self, derived: Derived) -> None:
        """Compute a derived relation, from the counts of its rows if it has them."""
        inputs = derived.name + "/input"
        if isinstance(derived.operation, Union):
            super().derived(derived)
            return
        if isinstance(derived.operation, Versions):
            validate(self, derived, derived.operation, whole=True)
            return
        if inputs in self.donors:
            self.scan(inputs)
        else:
            self.fragments[inputs] = [f for join in self.joins[derived.name] for f in self.block(join, derived.name)]
        if isinstance(derived.operation, Grouping):
            group(self, derived, derived.operation, whole=True)
            return
        if isinstance(derived.operation, Last):
            keep_last(self, derived, derived.operation, whole=True)
            return
        if isinstance(derived.operation, Recording):
            record(self, derived)
            return
        if isinstance(derived.operation, Enrichment):
            enrich(self, derived, derived.operation, whole=True)
            return
        counts = row_arrangement(inputs, derived.schema)
        merged = self.deliver(inputs, counts.key)
        change = self.stream(derived.name)
        self.add(merged.round, Distinct(merged.stream, change, counts, whole=True))
        self.arrange(inputs, check=False)
        self.fragments[derived.name] = [Fragment(merged.round, change)]
        self.arrange(derived.name, check=False)

    def punctual(self, union: Derived, branches: list[list[Fragment]]) -> list[Fragment]:
        """What is there already is not late."""
        return [fragment for branch in branches for fragment in branch]

    def block(self, join: JoinPlan, view: str) -> list[Fragment]:
        """All rows of the smallest input meet the other inputs as they are."""
        if len(join.block.inputs) == 1:
            return single(self, join)
        check_keys(self, join)
        inner = [at for at, each in enumerate(join.block.inputs) if each.mode == "inner" and not each.arrival]
        start = min(inner, key=lambda at: self._rows(join.block.inputs[at].relation))
        if not self.fragments[join.block.inputs[start].relation]:
            return []
        return [path(self, join, view, start, all_after=True)]

    def _rows(self, relation: str) -> int:
        known = [self.program.statistics[a].rows for a in self.needed.get(relation, {}) if a in self.program.statistics]
        return max(known, default=0)
