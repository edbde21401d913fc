"""Build one dataflow for all views of a flow: assign every lookup, arrangement and exchange to a round.

Scheduling rules:
- the changes of a source are available in round 0, those of a table (after its upsert) in round 1;
- an arrangement is updated in the round in which all changes of its relation have arrived at the bucket of their key;
- a lookup that reads this epoch's changes runs in that round or later, any other as soon as its stream is available;
- streams with equal keys, and an arrangement and the lookups that start from it, share a channel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.host.caps import cap_reached, caps
from rejoinder.ir.catalog import LATE_SCHEMA, Source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import (
    UNIT,
    Defined,
    DerivedRows,
    OperationInput,
    PendingRows,
    RelationId,
    SideOutput,
    SourceRows,
    StoredRows,
    UnitRow,
    ViewRows,
    is_on_time,
)
from rejoinder.ir.logical import EMIT_AT, GATE
from rejoinder.plan.blocks.normal_form import Block, Derived, read_columns
from rejoinder.plan.join.delta_paths import PathFinder
from rejoinder.plan.join.hop import needed_rows
from rejoinder.plan.join.join_graph import join_graph
from rejoinder.plan.join.outer_match import left_arrangement, left_input, left_rows, own_arrangement, tested_rows
from rejoinder.plan.operations.side_outputs import filter_late
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.dataflow import Dataflow, Path, Scan, SourceScan, User
from rejoinder.plan.physical.fragments import Fragment
from rejoinder.plan.physical.steps import Arrange, Channel, Emit, Hold, Send, Step, Upsert
from rejoinder.plan.rounds.labels import Labels
from rejoinder.plan.rounds.path_steps import JoinPlan, check_keys, path, single
from rejoinder.plan.rounds.program import Program, base_arrangement, row_arrangement
from rejoinder.plan.schedule.column_pruning import make_lean, with_read_columns, with_sent_columns
from rejoinder.plan.schedule.source_state import keep_source, rows_since
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.plan.time.retention import Retentions, Uses
from rejoinder.watermarks.formula import Watermark


class Builder:
    """Collects the steps of a dataflow round by round."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rounds: list[list[Step]] = [[]]
        self.scans: dict[str, Scan] = {}
        self.fragments: dict[RelationId, list[Fragment]] = {}
        self.side_outputs: dict[SideOutput, list[Fragment]] = {}
        self.passed: dict[str, Fragment] = {}  # the on-time rows of sources
        self.arranged: dict[str, int] = {}
        self.delivered: dict[tuple[RelationId, str], Fragment] = {}
        self.users: dict[str, dict[User, None]] = {}
        self.paths: list[Path] = []
        self.labels = Labels(program.derived)
        self.needed: dict[RelationId, dict[str, Arrangement]] = {}
        self.joins: dict[RelationId, list[JoinPlan]] = {}
        self.retentions = Retentions(Frontiers(program.sources, program.relations))
        self.frontiers = Frontiers(program.sources, program.relations, unbounded=True)
        self.read_columns: dict[str, list[Collection[str] | None]] = {}  # by arrangement, those of each user
        self._sent_columns: dict[str, list[Collection[str] | None]] = {}  # by channel, those that each step reads
        self._channels = 0
        self._streams = 0

    # -- what is needed -------------------------------------------------------------------------------------------

    def require(
        self,
        arrangement: Arrangement,
        user: User,
        uses: Uses | None = None,
        condition: Expression | None = None,
        columns: Collection[str] | None = None,
    ) -> None:
        """Require an arrangement for a user, with the bounds of its uses and the condition on rows that it needs.

        A user that looks rows up names the `columns` that it reads; None: the user needs all columns of every row.
        """
        self.retentions.add_user(arrangement, uses, condition)
        self.read_columns.setdefault(arrangement.id, []).append(columns)
        self.needed.setdefault(arrangement.relation, {}).setdefault(arrangement.id, arrangement)
        self.users.setdefault(arrangement.id, {})[user] = None

    def collect(self) -> None:
        """Find the paths of every block and the arrangements that they need."""
        for index in self.program.indexes:
            self.require(index, "index")
        for derived in self.program.derived.values():
            self.joins[derived.id] = [self._join(block, derived.id) for block in derived.blocks]
            for own in derived.operation.state(derived, self.program):
                self.require(own.arrangement, derived.id, self.retentions.for_input(derived))
        for name, block in self.program.views.items():
            self.joins[ViewRows(name)] = [self._join(block, ViewRows(name))]
        for gate in (gate for gate in self.program.gates if not gate.is_inside):
            self.require(gate.pending, ViewRows(gate.view))
        for source in self.program.sources.values():
            keep_source(self, source)
            make_lean(self, source)

    def variants(self, source: str) -> list[SourceRows]:
        """Return the variants of a source that views read."""
        blocks = (join.block for joins in self.joins.values() for join in joins)
        read = dict.fromkeys(each.relation for block in blocks for each in block.inputs)
        own = [relation for relation in read if isinstance(relation, SourceRows) and relation.source == source]
        return [relation for relation in own if relation != SourceRows(source)]

    def _join(self, block: Block, user: Defined) -> JoinPlan:
        graph = join_graph(block)
        unique = {source.relation: set(source.primary_key) for source in self.program.sources.values()}
        finder = PathFinder(block, graph, self.program.statistics, unique)
        paths = tuple(finder.path(start) for start in range(len(block.inputs)))
        for start, hops in enumerate(paths if len(block.inputs) > 1 else ()):
            for hop in hops:
                limits = self.retentions.for_lookup(block, start, hop.input)
                read = None if hop.everywhere else read_columns(block, hop.input)
                self.require(hop.arrangement, user, limits, needed_rows(block, graph, hop), read)
            if block.inputs[start].mode != "inner" and not block.inputs[start].arrival:
                arrangement, _ = own_arrangement(block, graph, start)
                limits = self.retentions.for_key(block, start)
                read = read_columns(block, start)
                self.require(arrangement, user, limits, tested_rows(block, graph, start), read)
                if graph.on[start].pairs:
                    at = left_input(graph, start)
                    left, _ = left_arrangement(block, graph, start)
                    limits = self.retentions.for_lookup(block, start, at)
                    self.require(left, user, limits, left_rows(block, graph, start), read_columns(block, at))
        return JoinPlan(block, graph, paths)

    # -- steps, channels, streams -----------------------------------------------------------------------------------

    def add(self, number: int, step: Step) -> None:
        """Append a step to a round. Raises `LimitReached` if an epoch would have too many rounds."""
        if number >= caps().max_rounds:
            remedy = "write UNION ALL for UNION, or nest fewer groups, UNIONs and outer joins within each other"
            raise cap_reached("a view needs too many rounds", "max_rounds", f"round {number + 1}", remedy=remedy)
        while len(self.rounds) <= number:
            self.rounds.append([])
        self.rounds[number].append(step)

    def stream(self, label: object) -> str:
        """Return a new stream name with a label."""
        self._streams += 1
        return f"{label}~{self._streams}"

    def send(
        self,
        fragments: Iterable[Fragment],
        key: Key,
        number: int,
        label: object,
        *,
        matching_only: bool,
        everywhere: bool = False,
    ) -> Fragment:
        """Send fragments to the buckets of a key in round `number`, or to all buckets."""
        self._channels += 1
        channel = Channel(self._channels, self.stream(label), key, number, matching_only, everywhere)
        for fragment in fragments:
            self.add(fragment.round, Send(fragment.stream, channel))
        return Fragment(number, channel.stream, key.text)

    def deliver(self, relation: RelationId, key: Key, columns: Collection[str] | None = None) -> Fragment:
        """Send all changes of a relation to the buckets of a key; done once per relation and key.

        The rows have the `columns` of all callers, and those of the key.
        """
        known = self.delivered.get((relation, key.text))
        if known is not None:
            self._sent_columns.get(known.stream, []).append(columns)
            return known
        fragments = self.fragments[relation]
        if len(fragments) == 1 and fragments[0].partition in (key.text, key.with_nulls.text):
            result = fragments[0]
        else:
            number = 1 + max((fragment.round for fragment in fragments), default=0)
            result = self.send(fragments, key, number, relation, matching_only=False)
            self._sent_columns[result.stream] = [{name for part in key.parts for name in part.columns}, columns]
        self.delivered[relation, key.text] = result
        return result

    def kept(self, arrangement: Arrangement) -> Arrangement:
        """Return an arrangement with the columns that it has."""
        return self.needed.get(arrangement.relation, {}).get(arrangement.id, arrangement)

    # -- relations --------------------------------------------------------------------------------------------------

    def source(self, source: Source) -> None:
        """Add the changes of a source; records of a table are turned into changes first."""
        raw = f"scan:{source.name}"
        self.scans[source.name] = SourceScan(source, raw)
        if source.rejects:
            rejected = str(source.rejected)
            self.add(0, Emit(rejected, rejected))
            self.side_outputs[source.rejected] = [Fragment(0, rejected)]
        if source.kind != "table":
            self.fragments[source.relation] = [Fragment(0, raw)]
        else:
            base = base_arrangement(source)
            incoming = self.send([Fragment(0, raw)], base.key, 1, f"{raw}/key", matching_only=False)
            change = f"table:{source.name}"
            self.add(1, Upsert(incoming.stream, change, base, source.order))
            self.fragments[source.relation] = [Fragment(1, change, base.key.text)]
        self.record(source)
        self.arrange(source.relation, check=source.kind == "changelog")

    def record(self, source: Source) -> None:
        """Write the changes of a source that keeps them to its changelog."""
        if source_side(source).keeps_changes:
            for fragment in self.fragments[source.relation]:
                self.add(fragment.round, Emit(fragment.stream, str(source.changes)))

    def derived(self, derived: Derived) -> None:
        """Add the changes of a derived relation."""
        derived.operation.steps(self, derived, whole=False)

    def branches(self, made: Derived) -> list[list[Fragment]]:
        """Return the changes of each block of a derived relation; in a hydration, all its rows."""
        return [self.block(join, made.id) for join in self.joins[made.id]]

    def collect_input(self, made: Derived, *, without: str | None = None) -> OperationInput:
        """Combine the changes of all blocks into one relation, and return it."""
        joins = [join.without(without) for join in self.joins[made.id]]
        self.fragments[made.input] = [fragment for join in joins for fragment in self.block(join, made.id)]
        return made.input

    def restrict(self, relation: OperationInput, fragment: Fragment) -> None:
        """Arrange a fragment in place of the changes of the relation: some of its rows are not needed any more."""
        self.fragments[relation] = [fragment]
        self.delivered = {key: known for key, known in self.delivered.items() if key[0] != relation}

    def stored(self, arrangement: Arrangement) -> Arrangement | None:
        """Return None: an epoch updates its arrangements, and reads none under a second name."""
        return None

    def arrange(self, relation: RelationId, *, check: bool) -> None:
        """Update every required arrangement of a relation. The one with the longest retention checks retractions."""
        needed = list(self.needed.get(relation, {}).values())
        if check:
            needed.sort(key=lambda each: (each.is_lean, self.retentions.of(each) is not None))
        for arrangement in needed:
            if arrangement.id in self.arranged or not self.keeps(arrangement):
                continue
            columns = arrangement.schema.names if arrangement.is_lean else None
            fragment = self.deliver(relation, arrangement.key, columns)
            retention = self.retentions.of(arrangement)
            times = self.times(relation, arrangement.schema)
            self.add(fragment.round, Arrange(fragment.stream, arrangement, check, retention, times))
            self.arranged[arrangement.id] = fragment.round
            check = False

    def times(self, relation: RelationId, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns that have a frontier, whose minimum over the retained rows is needed."""
        return tuple(name for name in schema.names if self.frontiers.of(relation, name) is not None)

    def keeps(self, arrangement: Arrangement) -> bool:
        """Return whether this dataflow updates the arrangement."""
        return True

    # -- blocks -----------------------------------------------------------------------------------------------------

    def block(self, join: JoinPlan, view: Defined) -> list[Fragment]:
        """Add all paths of a block; their streams together are its changes."""
        if len(join.block.inputs) == 1:
            if join.block.inputs[0].relation != UNIT:  # it never changes
                tests = [p.expression for p in join.block.predicates]
                filters = self.labels.conditions(tests, join.block)
                self.paths.append(Path(view, join.block.inputs[0].relation, (), condition=filters))
            return single(self, join)
        check_keys(self, join)
        # A relation of constants has no fragments, because it never changes.
        starts = [at for at, each in enumerate(join.block.inputs) if not each.arrival and self.fragments[each.relation]]
        return [path(self, join, view, start, all_after=False) for start in starts]

    # -- the whole --------------------------------------------------------------------------------------------------

    def build(self) -> Dataflow:
        """Build the dataflow of an epoch."""
        self.collect()
        for source in self.program.sources.values():
            self.relation(source.relation)
        for view in self.program.views:
            self.relation(ViewRows(view))
        return self.finish()

    def relation(self, relation: RelationId) -> None:
        """Add the changes of a relation, after those of its inputs; done once."""
        if relation in self.fragments:
            return
        for join in self.joins.get(relation, []):
            for each in join.block.inputs:
                self.relation(each.relation)
        match relation:
            case SourceRows():
                self.rows_of(relation)
            case ViewRows():
                self.view(relation)
            case DerivedRows():
                self.derived(self.program.derived[relation])
            case SideOutput():
                self.side_output(relation)
            case UnitRow():
                self.fragments[relation] = []
            case OperationInput() | PendingRows() | StoredRows():
                raise AssertionError(f"{relation} comes with the relation that it belongs to")

    def rows_of(self, relation: SourceRows) -> None:
        """Add the rows of a source, or of a variant of it."""
        source = self.program.sources[relation.source]
        if relation == source.relation:
            self.source(source)
            return
        self.relation(source.relation)
        rows = [self._on_time(source)] if relation.on_time else self.fragments[source.relation]
        self.fragments[relation] = rows_since(self, relation, rows)  # once it has started, it has all changes
        self.arrange(relation, check=source.kind == "changelog")

    def _on_time(self, source: Source) -> Fragment:
        """Return the on-time rows of a source. They are the same for all its variants; their retention is not."""
        if source.name not in self.passed:
            (fragment,) = self.fragments[source.relation]
            on_time = [relation for relation in self.variants(source.name) if relation.on_time]
            reads = self.program.reads
            views = tuple(v for v in self.program.views if any(reads(ViewRows(v), each) for each in on_time))
            times = tuple((column, Watermark(source.name, column)) for column in source.watermarks)
            policy = source.options.get("late", "keep")
            self.passed[source.name] = filter_late(self, fragment, source.name, times, views, policy)
        return self.passed[source.name]

    def side_output(self, side: SideOutput) -> None:
        """Add the rejected records of a source, or the late rows of a view, after their owner."""
        self.relation(SourceRows(side.owner) if side.owner in self.program.sources else ViewRows(side.owner))
        self.fragments[side] = self.side_outputs.get(side, [])
        self.arrange(side, check=False)

    def view(self, relation: ViewRows) -> None:
        """Write the changes of a view to its changelog, and update its arrangements."""
        view, fragments = relation.view, self.block(self.joins[relation][0], relation)
        self.fragments[relation] = fragments
        gates = self.program.gates_of(view)
        if not gates:
            for fragment in fragments:
                self.add(fragment.round, Emit(fragment.stream, view))
        elif fragments:
            number = 1 + max(fragment.round for fragment in fragments)
            schema = self.program.views[view].schema
            key = row_arrangement(relation, schema).key
            merged = self.send(fragments, key, number, relation, matching_only=False)
            times = self.times(relation, schema)
            for gate in gates:
                self.add(number, Hold(merged.stream, view, gate.pending, gate.interval, gate.number, times))
        self.arrange(relation, check=False)

    def finish(self) -> Dataflow:
        """Return the dataflow. It always has a bucket round, which inserts the changelog runs of the scans."""
        while len(self.rounds) < 2:
            self.rounds.append([])
        arrangements = tuple(a for by_id in self.needed.values() for a in by_id.values())
        views = {
            name: pa.schema([f for f in block.schema if f.name not in (EMIT_AT, GATE)])
            for name, block in self.program.views.items()
        }
        rejected = {str(s.rejected): source_side(s).rejected_schema for s in self.program.sources.values() if s.rejects}
        recorded = {str(s.changes): s.schema for s in self.program.sources.values() if source_side(s).keeps_changes}
        on_time = [relation for relation in self.fragments if is_on_time(relation)]
        late = {
            str(SideOutput(view, "late")): LATE_SCHEMA
            for view in self.program.views
            if any(self.program.reads(ViewRows(view), relation) for relation in on_time)
        }
        kept = {a.id: self.retentions.of(a) for a in arrangements}
        rounds = with_sent_columns(self.rounds, self._sent_columns)
        return Dataflow(
            {name: with_read_columns(scan, rounds[0]) for name, scan in self.scans.items()},
            rounds,
            arrangements,
            {name: tuple(users) for name, users in self.users.items()},
            tuple(self.paths),
            views | rejected | recorded | late,
            {name: retention for name, retention in kept.items() if retention is not None},
            frozenset(recorded),
        )
