"""Hydration: the one-off dataflow that fills new arrangements and new views.

Rules:
- only what is new is computed, and only from relations that something new needs;
- a new view is the batch answer over every row that its sources have delivered, late rows included. So whatever it
  reads is complete: an arrangement without expired rows, a changelog, the source read again, or computed from such;
- rows that have expired from an arrangement are missing in it. Where a new view looks rows up there, the arrangement is
  built a second time, with every row, and dropped afterwards unless the first one does not hold what its users need;
- an arrangement that only views of today need is filled from another one of its relation that holds as much;
- what nothing holds is refused (`Holdings.refusal`).
"""

from __future__ import annotations

from dataclasses import replace

from rejoinder.connectors.registry import source_side
from rejoinder.errors import Incomplete
from rejoinder.ir.catalog import Source
from rejoinder.ir.source_variants import NEVER, Variant, source_of, variant_of
from rejoinder.plan.blocks.accumulators import UNIT
from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import ArrangementScan, ChangelogScan, Dataflow, SourceScan, UnitScan
from rejoinder.plan.physical.fragments import Fragment
from rejoinder.plan.physical.steps import Clip
from rejoinder.plan.rounds.path_steps import JoinPlan, check_keys, path, single
from rejoinder.plan.rounds.program import Program, base_arrangement
from rejoinder.plan.schedule.dataflow_builder import Builder
from rejoinder.plan.schedule.retained_relations import QUERY_WORDS, Holdings
from rejoinder.plan.schedule.source_state import LATER_VIEWS
from rejoinder.plan.time.start_condition import covers_time


class Hydration(Builder):
    """Builds the dataflow that fills what a program needs and the state does not have.

    `rebuilt` are arrangements that exist, hold what their users need, and are built a second time for new views.
    `second_names` are those of arrangements that are read as they are stored, with the name of the arrangement.
    """

    def __init__(self, program: Program, holdings: Holdings) -> None:
        super().__init__(program)
        self.holdings = holdings
        self.complete = {arrangement.relation: arrangement for arrangement in holdings.complete}
        self.filled = {arrangement.id for arrangement in holdings.complete if arrangement.id in holdings.held}
        self.fresh: set[str] = set()
        self.rebuilt: set[str] = set()
        self.second_names: dict[str, str] = {}
        self._for = ""

    def keeps(self, arrangement: Arrangement) -> bool:
        """Whether the arrangement is to be filled, or built a second time."""
        if arrangement.id in self.filled:
            return False
        if arrangement.id not in self.holdings.held:
            return True
        if not self.fresh & set(self.users.get(arrangement.id, ())):
            return False
        self.rebuilt.add(arrangement.id)
        return True

    def build(self) -> Dataflow:
        """Make the dataflow. Raises `Incomplete` if nothing holds the rows that something new needs."""
        self.collect()
        known, pending = self.holdings.views, {gate.pending.id for gate in self.program.gates}
        new = [name for name in self.program.views if name not in known]
        needed = [arrangement for by_id in self.needed.values() for arrangement in by_id.values()]
        lacking = [a for a in needed if a.id not in pending and a.id not in self.holdings.held]
        computed = [a.relation.removesuffix("/input") for a in lacking if a.id not in self.holdings.donors]
        self.fresh = self._reachable([*new, *computed])
        for name in new:
            self._for = f"view `{name}`" if name in self.holdings.names else QUERY_WORDS
            self.relation(name)
        for arrangement in lacking:
            self._for = f"`{arrangement.id}`, which {', '.join(self.program.named(self.users[arrangement.id]))} use,"
            try:
                self.relation(arrangement.relation.removesuffix("/input"))
            except Incomplete as refused:
                refused.is_needed = set(self.users[arrangement.id]) != {LATER_VIEWS}
                raise
        for source in self.program.sources.values():
            if source_side(source).keeps_changes and source.changes not in known:
                self.relation(source.name)
                self.record(source)
        read = {getattr(step, "input", None) for steps in self.rounds for step in steps}
        self.scans = {name: scan for name, scan in self.scans.items() if scan.stream in read}
        return self.finish()

    def _reachable(self, views: list[str]) -> set[str]:
        """New views and what they are made from, down to sources and views that are read as they are."""
        found: set[str] = set()
        waiting = list(views)
        while waiting:
            name = waiting.pop()
            if name not in found and name not in self.complete:
                found.add(name)
                blocks = [join.block for join in self.joins.get(name, [])]
                read = [each.relation for block in blocks for each in block.inputs]
                waiting += [each for each in read if each not in self.holdings.views]
        return found

    # -- relations --------------------------------------------------------------------------------------------------

    def relation(self, name: str) -> None:
        """Offer the content of a relation. Raises `Incomplete`."""
        if name in self.fragments:
            return
        if name in self.complete:
            self.scan(name, self.complete[name])
            self.arrange(name, check=False)
        elif self._donor(name) is not None:
            self._fill(name)
        elif source_of(name) in self.program.sources:
            self._variant(name)
            if self.fragments[name]:
                self.arrange(name, check=False)
        elif name in self.holdings.views:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = ChangelogScan(name, f"scan:{name}")
            self.arrange(name, check=False)
        elif name == UNIT:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = UnitScan(f"scan:{name}")
        elif name + "/input" in self.complete:
            self.derived(self.program.derived[name])
        else:
            super().relation(name)

    def _donor(self, relation: str) -> Arrangement | None:
        """An arrangement with all that others of the relation are to be filled with; None: it has to be complete."""
        if relation in self.fresh:
            return None
        wanted = [a for a in self.needed.get(relation, {}).values() if a.id not in self.holdings.held]
        donors = {self.holdings.donors.get(arrangement.id) for arrangement in wanted}
        return donors.pop() if len(donors) == 1 else None

    def _fill(self, relation: str) -> None:
        donor = self._donor(relation)
        assert donor is not None
        self.scan(relation, donor)
        self.arrange(relation, check=False)

    def _variant(self, name: str) -> None:
        """Every row of a source that was delivered, or those after the epoch at which a view starts."""
        variant = variant_of(name)
        source, holdings = variant.source, self.holdings
        if variant.start is not None:
            if holdings.delivered.get(source, NEVER) > variant.start:
                raise holdings.too_early(source, self._for, variant.start + 1)
            self.fragments[name] = []
        elif variant.time is not None:
            self._since(name, variant)
        elif variant.on_time:
            if not holdings.is_current(source, variant.late):
                raise holdings.refusal(source, self._for)
            self.relation(source)
            self.fragments[name] = self.fragments[source]
        else:
            self._source(source)

    def _since(self, name: str, variant: Variant) -> None:
        """The rows of a source since a time: from an arrangement in which no such row has expired, or of all rows."""
        source = self.program.sources[variant.source]
        if variant.on_time and not self.holdings.is_current(source.name, variant.late):
            raise self.holdings.refusal(source.name, self._for)
        held = [
            arrangement
            for arrangement, column, bound in self.holdings.since.get(source.name, ())
            if covers_time(source, column, bound, variant.time)
        ]
        if held and source.name not in self.complete:
            self.scan(name, held[-1])
            self.fragments[name] = self.since(name, self.fragments[name])
        else:
            self.relation(source.name)
            self.fragments[name] = self.since(name, self.fragments[source.name])

    def _source(self, name: str) -> None:
        """Every row of a source, from whatever has them."""
        source, holdings = self.program.sources[name], self.holdings
        on_time = [
            arrangement
            for relation, arrangement in self.complete.items()
            if source_of(relation) == name and not variant_of(relation).starts
            if holdings.is_current(name, variant_of(relation).late)
        ]
        if name not in holdings.delivered:
            self.fragments[name] = []
        elif source_side(source).keeps_changes and source.changes in holdings.views:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = ChangelogScan(source.changes, f"scan:{name}")
        elif on_time:
            self.scan(name, on_time[-1])
        elif holdings.unreadable(name) is None:
            self.fragments[name] = [Fragment(0, f"scan:{name}")]
            self.scans[name] = SourceScan(source, f"scan:{name}")
            if source.kind == "changelog":
                self._clip(source)
        else:
            raise holdings.refusal(name, self._for)

    def _clip(self, changelog: Source) -> None:
        """Leave deletes without a row out. While only views with bounded state read a source, some are not checked."""
        rows, key = self.stream(changelog.name), base_arrangement(changelog).key
        merged = self.send(self.fragments[changelog.name], key, 1, f"{changelog.name}/rows", matching_only=False)
        self.add(1, Clip(merged.stream, rows))
        self.fragments[changelog.name] = [Fragment(1, rows, key.text)]

    def scan(self, relation: str, arrangement: Arrangement) -> None:
        """Read a relation from an arrangement."""
        self.fragments[relation] = [Fragment(0, f"scan:{relation}")]
        self.scans[relation] = ArrangementScan(arrangement, f"scan:{relation}")

    def derived(self, derived: Derived) -> None:
        """Compute a derived relation."""
        derived.operation.steps(self, derived, whole=True)

    def collect_input(self, made: Derived) -> str:
        """Read the input of a derived relation from an arrangement that has all its rows, or else compute it."""
        inputs = made.name + "/input"
        if inputs not in self.complete:
            return super().collect_input(made)
        self.scan(inputs, self.complete[inputs])
        return inputs

    def stored(self, arrangement: Arrangement) -> Arrangement | None:
        """The arrangement as it is stored, under a second name; None if it is new."""
        if arrangement.id not in self.holdings.held:
            return None
        second = replace(arrangement, relation=f"{arrangement.relation}/stored")
        self.second_names[second.id] = arrangement.id
        return second

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
