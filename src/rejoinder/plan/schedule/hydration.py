"""Hydration: the one-off dataflow that fills new arrangements and new views.

Rules:
- only new relations are computed, and only from relations that they need;
- a new view is the batch result over every row that its sources have delivered, late rows included. So it reads only
  complete relations: an arrangement without expired rows, a changelog, the source read again, or computed from these;
- if a new view looks up rows in an arrangement from which rows have expired, the arrangement is built a second time
  with every row, and dropped afterwards, unless the stored one lacks rows that its users need;
- an arrangement that only existing views need is filled from another one of its relation that has as many rows;
- if nothing has the rows, the view is refused (`Holdings.refusal`).
"""

from __future__ import annotations

from dataclasses import replace

from rejoinder.connectors.registry import source_side
from rejoinder.errors import Incomplete
from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import (
    NEVER,
    Defined,
    DerivedRows,
    OperationInput,
    RelationId,
    SourceRows,
    StoredRows,
    UnitRow,
    ViewRows,
)
from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import ArrangementScan, ChangelogScan, Dataflow, Scan, SourceScan, UnitScan
from rejoinder.plan.physical.fragments import Fragment
from rejoinder.plan.physical.steps import Clip
from rejoinder.plan.rounds.path_steps import JoinPlan, check_keys, path, single
from rejoinder.plan.rounds.program import Program, base_arrangement
from rejoinder.plan.schedule.dataflow_builder import Builder
from rejoinder.plan.schedule.retained_relations import QUERY_WORDS, Holdings
from rejoinder.plan.schedule.source_state import LATER_VIEWS, rows_since
from rejoinder.plan.time.start_condition import covers_time


class Hydration(Builder):
    """Builds the dataflow that fills what a program needs and the state does not have.

    `rebuilt` are existing arrangements that have all rows for their users, and are built a second time for new views.
    `second_names` maps the second name of an arrangement, which reads its stored content, to its own name.
    """

    def __init__(self, program: Program, holdings: Holdings) -> None:
        super().__init__(program)
        self.holdings = holdings
        self.complete = {arrangement.relation: arrangement for arrangement in holdings.complete}
        self.filled = set(holdings.filled)
        self.fresh: set[RelationId] = set()
        self.rebuilt: set[str] = set()
        self.second_names: dict[str, str] = {}
        self._for = ""

    def keeps(self, arrangement: Arrangement) -> bool:
        """Return whether the arrangement is filled, or built a second time."""
        if arrangement.id in self.filled:
            return False
        if arrangement.id not in self.holdings.held:
            return True
        if not self.fresh & set(self.users.get(arrangement.id, ())):
            return False
        self.rebuilt.add(arrangement.id)
        return True

    def build(self) -> Dataflow:
        """Build the dataflow. Raises `Incomplete` if nothing has the rows that a new relation needs."""
        self.collect()
        known, pending = self.holdings.views, {gate.pending.id for gate in self.program.gates}
        new = [name for name in self.program.views if name not in known]
        needed = [arrangement for by_id in self.needed.values() for arrangement in by_id.values()]
        lacking = [a for a in needed if a.id not in pending and a.id not in self.holdings.held]
        computed = [_maker(a.relation) for a in lacking if a.id not in self.holdings.donors]
        self.fresh = self._reachable([*map(ViewRows, new), *computed])
        for view in new:
            self._for = f"view `{view}`" if view in self.holdings.names else QUERY_WORDS
            self.relation(ViewRows(view))
        for arrangement in lacking:
            self._for = f"`{arrangement.id}`, which {', '.join(self.program.named(self.users[arrangement.id]))} use,"
            try:
                self.relation(_maker(arrangement.relation))
            except Incomplete as refused:
                refused.is_needed = set(self.users[arrangement.id]) != {LATER_VIEWS}
                raise
        for source in self.program.sources.values():
            if source_side(source).keeps_changes and str(source.changes) not in known:
                self.relation(source.relation)
                self.record(source)
        read = {getattr(step, "input", None) for steps in self.rounds for step in steps}
        self.scans = {name: scan for name, scan in self.scans.items() if scan.stream in read}
        return self.finish()

    def _reachable(self, relations: list[RelationId]) -> set[RelationId]:
        """Return new views and their inputs, down to sources and views that are not computed."""
        reached: set[RelationId] = set()
        pending = list(relations)
        while pending:
            relation = pending.pop()
            if relation not in reached and relation not in self.complete:
                reached.add(relation)
                blocks = [join.block for join in self.joins.get(relation, [])]
                read = [block_input.relation for block in blocks for block_input in block.inputs]
                pending += [inner for inner in read if str(inner) not in self.holdings.views]
        return reached

    # -- relations --------------------------------------------------------------------------------------------------

    def relation(self, relation: RelationId) -> None:
        """Add the content of a relation. Raises `Incomplete`."""
        if relation in self.fragments:
            return
        donor = self.complete.get(relation) or self._donor(relation)
        if isinstance(relation, UnitRow):  # it costs nothing, so it is never read from an arrangement
            self._scan(relation, UnitScan(f"scan:{relation}"))
            self.arrange(relation, check=False)
        elif donor is not None:
            self._scan(relation, ArrangementScan(donor, f"scan:{relation}"))
            self.arrange(relation, check=False)
        elif isinstance(relation, SourceRows):
            self._variant(relation)
            if self.fragments[relation]:
                self.arrange(relation, check=False)
        elif str(relation) in self.holdings.views:
            self._scan(relation, ChangelogScan(str(relation), f"scan:{relation}"))
            self.arrange(relation, check=False)
        elif isinstance(relation, DerivedRows) and OperationInput(relation) in self.complete:
            self.derived(self.program.derived[relation])
        else:
            super().relation(relation)

    def _donor(self, relation: RelationId) -> Arrangement | None:
        """Return an arrangement with all rows that the new ones of the relation need; None: they need every row."""
        if relation in self.fresh:
            return None
        wanted = [a for a in self.needed.get(relation, {}).values() if a.id not in self.holdings.held]
        donors = {self.holdings.donors.get(arrangement.id) for arrangement in wanted}
        return donors.pop() if len(donors) == 1 else None

    def _scan(self, relation: RelationId, scan: Scan) -> None:
        self.fragments[relation] = [Fragment(0, scan.stream)]
        self.scans[str(relation)] = scan

    def _variant(self, relation: SourceRows) -> None:
        """Add every delivered row of a source, or those after the epoch at which a view starts."""
        source, holdings = self.program.sources[relation.source], self.holdings
        if relation.start is not None:
            if holdings.delivered.get(source.name, NEVER) > relation.start:
                raise holdings.too_early(source.name, self._for, relation.start + 1)
            self.fragments[relation] = []
        elif relation.time is not None:
            self._since(relation, source)
        elif relation.on_time:
            if not holdings.is_current(source.name, relation.late):
                raise holdings.refusal(source.name, self._for)
            self.relation(source.relation)
            self.fragments[relation] = self.fragments[source.relation]
        else:
            self._source(source)

    def _since(self, relation: SourceRows, source: Source) -> None:
        """Add the rows of a source since a time: from an arrangement in which none of them has expired, or from all."""
        if relation.on_time and not self.holdings.is_current(source.name, relation.late):
            raise self.holdings.refusal(source.name, self._for)
        held = [
            arrangement
            for arrangement, column, bound in self.holdings.since.get(source.name, ())
            if covers_time(source, column, bound, relation.time)
        ]
        if held and source.relation not in self.complete:
            self._scan(relation, ArrangementScan(held[-1], f"scan:{relation}"))
            self.fragments[relation] = rows_since(self, relation, self.fragments[relation])
        else:
            self.relation(source.relation)
            self.fragments[relation] = rows_since(self, relation, self.fragments[source.relation])

    def _source(self, source: Source) -> None:
        """Add every row of a source, from any relation that has them."""
        holdings, stream = self.holdings, f"scan:{source.name}"
        on_time = [
            arrangement
            for relation, arrangement in self.complete.items()
            if isinstance(relation, SourceRows) and relation.source == source.name and not relation.starts
            if holdings.is_current(source.name, relation.late)
        ]
        if source.name not in holdings.delivered:
            self.fragments[source.relation] = []
        elif source_side(source).keeps_changes and str(source.changes) in holdings.views:
            self._scan(source.relation, ChangelogScan(str(source.changes), stream))
        elif on_time:
            self._scan(source.relation, ArrangementScan(on_time[-1], stream))
        elif holdings.unreadable(source.name) is None:
            self._scan(source.relation, SourceScan(source, stream))
            if source.kind == "changelog":
                self._clip(source)
        else:
            raise holdings.refusal(source.name, self._for)

    def _clip(self, changelog: Source) -> None:
        """Drop deletes without a row. While only views with bounded state read a source, some are not checked."""
        rows, key = self.stream(changelog.name), base_arrangement(changelog).key
        merged = self.send(self.fragments[changelog.relation], key, 1, f"{changelog.name}/rows", matching_only=False)
        self.add(1, Clip(merged.stream, rows))
        self.fragments[changelog.relation] = [Fragment(1, rows, key.text)]

    def derived(self, derived: Derived) -> None:
        """Compute a derived relation."""
        derived.operation.steps(self, derived, whole=True)

    def collect_input(self, made: Derived, *, without: str | None = None) -> OperationInput:
        """Read the input of a derived relation from an arrangement that has all its rows, or else compute it."""
        if made.input not in self.complete:
            return super().collect_input(made, without=without)
        self._scan(made.input, ArrangementScan(self.complete[made.input], f"scan:{made.input}"))
        return made.input

    def stored(self, arrangement: Arrangement) -> Arrangement | None:
        """Return the stored arrangement under a second name; None if it is new."""
        if arrangement.id not in self.holdings.held:
            return None
        second = replace(arrangement, relation=StoredRows(arrangement.relation))
        self.second_names[second.id] = arrangement.id
        return second

    def block(self, join: JoinPlan, view: Defined) -> list[Fragment]:
        """Join all rows of the smallest input with the current content of the other inputs."""
        if len(join.block.inputs) == 1:
            return single(self, join)
        check_keys(self, join)
        inner = [at for at, each in enumerate(join.block.inputs) if each.mode == "inner" and not each.arrival]
        start = min(inner, key=lambda at: self._rows(join.block.inputs[at].relation))
        if not self.fragments[join.block.inputs[start].relation]:
            return []
        return [path(self, join, view, start, all_after=True)]

    def _rows(self, relation: RelationId) -> int:
        known = [self.program.statistics[a].rows for a in self.needed.get(relation, {}) if a in self.program.statistics]
        return max(known, default=0)


def _maker(relation: RelationId) -> RelationId:
    """Return the relation to compute for another one: the input of an operation is computed with its result."""
    return relation.of if isinstance(relation, OperationInput) else relation
