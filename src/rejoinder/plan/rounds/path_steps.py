"""The steps of a path: changes of one input of a block look up the other inputs, hop by hop.

Every hop drops the columns that are no longer needed, and tests conditions as soon as their inputs are joined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column, conjunction, renamed, substitute
from rejoinder.ir.identities import Defined, RelationId, column_text
from rejoinder.plan.blocks.normal_form import PRESENT, Block, VersionColumns, read_columns
from rejoinder.plan.join.hop import FROM, TO, Hop
from rejoinder.plan.join.join_graph import JoinGraph, equal, inputs_of
from rejoinder.plan.join.outer_match import arranged, key_columns, left_arrangement, left_input, own_arrangement
from rejoinder.plan.physical.arrangement import Key
from rejoinder.plan.physical.dataflow import Path, PathHop
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.plan.physical.join_steps import Coverage, Lookup, MatchStatus, Presence
from rejoinder.plan.physical.steps import Check, Derive, Step, Sweep
from rejoinder.plan.rounds.labels import shown

_TRUE = Expression(nodes.Literal(True, pa.bool_()), "TRUE")


@dataclass(frozen=True)
class JoinPlan:
    """A block with its paths, one per input."""

    block: Block
    graph: JoinGraph
    paths: tuple[tuple[Hop, ...], ...]

    def without(self, name: str | None) -> JoinPlan:
        """Return the plan without an output of its block."""
        outputs = tuple(output for output in self.block.outputs if output[0] != name)
        return replace(self, block=replace(self.block, outputs=outputs))


def single(rounds: Rounds, join: JoinPlan) -> list[Fragment]:
    """Add the steps of a block without a join: filter and project in place."""
    block, outputs = join.block, []
    names = dict(block.inputs[0].columns)
    predicate = conjunction([_plain(p, names) for p in join.graph.filters[0] + join.graph.residual])
    projected = tuple((name, _plain(e, names)) for name, e in block.outputs)
    optional = None if block.optional is None else _plain(block.optional, names)
    for fragment in rounds.fragments[block.inputs[0].relation]:
        stream = rounds.stream("rows")
        rounds.add(fragment.round, Derive(fragment.stream, stream, predicate, projected, True, optional))
        outputs.append(Fragment(fragment.round, stream))
    return outputs


def check_keys(rounds: Rounds, join: JoinPlan) -> None:
    """Count the rows on which a side of an equality, or the time of a window, fails.

    A lookup cannot report it, because a row without a key matches nothing. All rows that pass the filters of their
    input are checked.
    """
    for at, each in enumerate(join.block.inputs):
        keys = [side for group in join.graph.classes for side in group.members[at]]
        keys += [side for on in join.graph.on for link in on.links for side in link.sides]
        windows = [*join.graph.windows, *(on.window for on in join.graph.on if on.window is not None)]
        keys += [window.time for window in windows]
        failing = tuple(dict.fromkeys(key for key in keys if key.can_fail and inputs_of(key) == {at}))
        if not failing:
            continue
        names = dict(each.columns)
        predicate = conjunction([_plain(p, names) for p in join.graph.filters[at]])
        present = {i: _TRUE for i, name in each.columns if name == PRESENT}  # these rows are there
        plain = tuple(_plain(substitute(key, present), names) for key in failing)
        for fragment in rounds.fragments[each.relation]:
            rounds.add(fragment.round, Check(fragment.stream, predicate, plain))


def path(rounds: Rounds, join: JoinPlan, view: Defined, start: int, *, all_after: bool) -> Fragment:
    """Add the steps of the path from input `start`. `all_after`: it reads all inputs with this epoch's changes."""
    return _Path(rounds, join, view, start, all_after=all_after).build()


class _Path:
    def __init__(self, rounds: Rounds, join: JoinPlan, view: Defined, start: int, *, all_after: bool) -> None:
        self.rounds, self.block, self.graph = rounds, join.block, join.graph
        self.view, self.start, self.all_after = view, start, all_after
        self.hops = join.paths[start]
        self.relation = join.block.inputs[start].relation
        self.user = ", ".join(rounds.program.named([view]))
        self.label = f"{self.user}/{self.relation}"
        self.tests = list(join.graph.residual)
        self.names = self._names()
        self.described: list[PathHop] = []
        self.columns = self._first_columns()
        self.needed_after = self._needed_after()

    def build(self) -> Fragment:
        """Add all steps of the path; return a fragment of the block's changes."""
        moded = self.block.inputs[self.start].mode != "inner"
        met = {self.start}
        if self.graph.on[self.start].pairs:
            state = self._match_status()
            met.add(left_input(self.graph, self.start))
        else:
            state = self._presence() if moded else self._beginning()
        for at, hop in enumerate(self.hops):
            if state.partition != _partition(hop) or state.round < self._earliest(hop):
                state = self._sent([state], hop)
            met.add(hop.input)
            state = self._lookup(state, at, hop, met)
        if not self.hops:
            stream = self.rounds.stream(self.label)
            step = Derive(state.stream, stream, conjunction(self.tests), self.block.outputs, last=True)
            self.rounds.add(state.round, step)
            state = replace(state, stream=stream)
        mode = self.block.inputs[self.start].mode
        filters = self.rounds.labels.conditions(self.graph.filters[self.start], self.block, self.names)
        covers = self.graph.on[self.start].window is not None
        has_pairs = bool(self.graph.on[self.start].pairs)
        self.rounds.paths.append(
            Path(self.view, self.relation, tuple(self.described), mode, filters, covers, has_pairs)
        )
        return Fragment(state.round, state.stream)

    def _beginning(self) -> Fragment:
        """Start a path at an inner input: filter its changes, and project them to the columns that are needed."""
        each, first = self.block.inputs[self.start], self.hops[0]
        names = dict(each.columns)
        wanted = self._wanted(-1, self.tests)
        bounds = {} if each.versions is None else self._bounds(each.versions)
        columns = (*each.columns, *bounds.items())
        kept = tuple((i, column(name, each.type_of(name))) for i, name in columns if i in wanted)
        predicate = conjunction([_plain(p, names) for p in self.graph.filters[self.start]])
        key = Key(tuple(_plain(part, names) for part in first.key.parts), first.key.null_safe)
        if key.text in self._keys_of(self.relation) and self.rounds.fragments[self.relation] and not first.everywhere:
            at = self.rounds.deliver(self.relation, key, read_columns(self.block, self.start))
            stream = self.rounds.stream(self.label)
            self.rounds.add(at.round, Derive(at.stream, stream, predicate, kept))
            stream = self._swept(at.round, stream, wanted)
            return Fragment(at.round, stream, _partition(first), hashed=True)
        parts = []
        for fragment in self.rounds.fragments[self.relation]:
            stream = self.rounds.stream(self.label)
            self.rounds.add(fragment.round, Derive(fragment.stream, stream, predicate, kept))
            parts.append(Fragment(fragment.round, self._swept(fragment.round, stream, wanted)))
        return self._sent(parts, first)

    def _bounds(self, versions: VersionColumns) -> dict[str, str]:
        """Return the columns with the bounds of a window whose changes start the path."""
        return {column_text(self.start, FROM): versions.time, column_text(self.start, TO): versions.end}

    def _swept(self, number: int, stream: str, wanted: Collection[str]) -> str:
        """Cancel changes of windows that only moved their end, if the end is not selected."""
        each = self.block.inputs[self.start]
        start, end = column_text(self.start, FROM), column_text(self.start, TO)
        if each.versions is None or start not in wanted:
            return stream
        if any(i in wanted for i, name in each.columns if name == each.versions.end):
            return stream
        swept = self.rounds.stream(self.label)
        self.rounds.add(number, Sweep(stream, swept, start, end))
        return swept

    def _keys_of(self, relation: RelationId) -> set[str]:
        return {arrangement.key.text for arrangement in self.rounds.needed.get(relation, {}).values()}

    def _presence(self) -> Fragment:
        """Start a path at an input with a mode: changes of its rows, and of the keys that it has."""
        each = self.block.inputs[self.start]
        names = dict(each.columns)
        arrangement, order = own_arrangement(self.block, self.graph, self.start)
        arrangement = self.rounds.kept(arrangement)
        at = self.rounds.deliver(self.relation, arrangement.key, read_columns(self.block, self.start))
        keys = key_columns(self.graph, self.start)
        wanted = self._wanted(-1, self.tests)
        present = next((i for i, name in each.columns if name == PRESENT and i in wanted), None)
        kept = tuple(
            (i, column(name, each.type_of(name))) for i, name in each.columns if i in wanted and name != PRESENT
        )
        stream = self.rounds.stream(self.label)
        named = tuple(keys[number].columns[0] for number in order)
        step: Step
        if self.graph.on[self.start].window is not None and each.versions is not None:
            (start, time), (end, until) = self._bounds(each.versions).items()
            step = Coverage(at.stream, stream, arrangement, (time, until), named, start, end, kept, present)
        else:
            filters = conjunction([_plain(p, names) for p in self.graph.filters[self.start]])
            shown = kept if each.mode == "left" else ()
            step = Presence(at.stream, stream, arrangement, each.mode, filters, named, shown, present, self.user)
        self.rounds.add(at.round, step)
        stream = self._swept(at.round, stream, wanted)
        same = self.hops[0].key.parts == tuple(keys[number] for number in order)
        same = same and not self.hops[0].everywhere
        return Fragment(at.round, stream, _partition(self.hops[0]) if same else None, hashed=same)

    def _match_status(self) -> Fragment:
        """Start a path at an input with conditions on pairs: its changes joined with the left rows."""
        each, on = self.block.inputs[self.start], self.graph.on[self.start]
        at = left_input(self.graph, self.start)
        other = self.block.inputs[at]
        arrangement, _ = own_arrangement(self.block, self.graph, self.start)
        left, key = left_arrangement(self.block, self.graph, self.start)
        arrangement, left = self.rounds.kept(arrangement), self.rounds.kept(left)
        own = [*self.graph.filters[self.start], *self.graph.filters[at], *on.guards, *on.pairs]
        restriction = conjunction([p for p in self.graph.filters[at] if p.can_fail])
        classes = [g for g in self.graph.classes if g.members[self.start] and g.members[at]]
        self.tests += [equal(g.members[self.start][0], g.members[at][0], null_safe=g.null_safe) for g in classes]
        after = self.all_after or (other.versions is not None) or at < self.start
        delivered = self.rounds.deliver(self.relation, arrangement.key, read_columns(self.block, self.start))
        number = max(delivered.round, self.rounds.arranged.get(left.id, 1) if after else 1)
        stream = delivered.stream
        if number > delivered.round:
            stream = self.rounds.send([delivered], arrangement.key, number, self.label, matching_only=True).stream
        wanted = self._wanted(-1, self.tests)
        needed = wanted | {i for p in own for i in p.columns} | {i for part in key.parts for i in part.columns}
        present = next((i for i, name in each.columns if name == PRESENT and i in wanted), None)
        fetched = tuple((name, i) for i, name in other.columns if i in needed)
        paired = tuple((name, i) for i, name in each.columns if i in needed and name != PRESENT)
        outputs = tuple(i for _, i in paired if i in wanted and each.mode == "left")
        output = self.rounds.stream(self.label)
        names = dict(each.columns)
        labels = self.rounds.labels
        self.described.append(
            PathHop(
                left.id,
                labels.key(arranged(each, Key(tuple(link.sides[1] for link in on.links))).key, {}),
                other.relation,
                after,
                filter=labels.conditions(self.graph.filters[at], self.block, self.names),
                guard=labels.conditions(on.guards, self.block, self.names),
                condition=labels.conditions(on.pairs, self.block, self.names),
            )
        )
        self.rounds.add(
            number,
            MatchStatus(
                stream,
                output,
                arrangement,
                left,
                key,
                after,
                each.mode,
                conjunction([_plain(p, names) for p in self.graph.filters[self.start]]),
                conjunction([p for p in own if not (p.can_fail and p in self.graph.filters[at])]),
                fetched,
                paired,
                outputs,
                present,
                restriction,
                self.user,
            ),
        )
        return Fragment(number, output)

    def _sent(self, fragments: list[Fragment], hop: Hop) -> Fragment:
        """Send a stream to the buckets of a hop's key, for the round in which it can read the arrangement."""
        number = max(1 + max(f.round for f in fragments), self._earliest(hop))
        matching_only = hop.mode in ("inner", "semi")
        sent = self.rounds.send(
            fragments, hop.key, number, self.label, matching_only=matching_only, everywhere=hop.everywhere
        )
        return Fragment(sent.round, sent.stream, _partition(hop), hashed=True)

    def _earliest(self, hop: Hop) -> int:
        after = self.all_after or hop.after
        return self.rounds.arranged.get(hop.arrangement.id, 1) if after else 1

    def _lookup(self, state: Fragment, at: int, hop: Hop, met: set[int]) -> Fragment:
        each = self.block.inputs[hop.input]
        filters = self.graph.filters[hop.input]
        self.tests += hop.tests
        now = [p for p in self.tests if inputs_of(p) <= met]
        self.tests = [p for p in self.tests if p not in now]
        matches = None
        self._describe(hop, now)
        if hop.mode == "inner":
            now = [*filters, *now]
        else:
            matches = conjunction([*filters, *hop.pairs])
        available = self._wanted(at, [*self.tests, *now, *hop.pairs])
        remaining = self._wanted(at, self.tests)
        own = {i for i, _ in each.columns}
        carried = tuple(sorted((available & self.columns.keys()) - own))
        self.columns.update((i, column(i, each.type_of(name))) for i, name in each.columns)
        shown = each.columns if hop.mode in ("inner", "left") else ()
        seen = available & {i for i, _ in shown} | set(matches.columns if matches is not None else ())
        fetched = tuple((name, i) for i, name in each.columns if i in seen and name != PRESENT)
        present = next((i for i, name in shown if i in available and name == PRESENT), None)
        last = at == len(self.hops) - 1
        outputs = tuple((i, self.columns[i]) for i in sorted(remaining & self.columns.keys()))
        output = self.rounds.stream(self.label)
        step = Lookup(
            state.stream,
            output,
            self.rounds.kept(hop.arrangement),
            hop.key,
            self.all_after or hop.after,
            carried,
            fetched,
            conjunction(now),
            hashed=state.hashed,
            outputs=self.block.outputs if last else outputs,
            mode=hop.mode,
            guard=hop.guard,
            filter=matches,
            present=present,
            between=hop.between,
            latest=hop.latest,
            strict=hop.strict,
            near=hop.near,
            last=last,
            user=self.user,
        )
        self.rounds.add(state.round, step)
        return Fragment(state.round, output, None if hop.everywhere else state.partition)

    def _wanted(self, at: int, tests: Iterable[Expression]) -> frozenset[str]:
        """Return the columns that are still needed after hop `at`."""
        return self.needed_after[at + 1].union(name for p in tests for name in p.columns)

    def _needed_after(self) -> list[frozenset[str]]:
        """Return the columns that the outputs and the remaining hops need, before each hop, without open tests."""
        needed = frozenset(name for _, e in self.block.outputs for name in e.columns)
        result = [needed]
        for hop in reversed(self.hops):
            near = () if hop.near is None else hop.near[:1]
            parts = [*hop.key.parts, *hop.tests, *hop.pairs, hop.guard, hop.latest, *(hop.between or ()), *near]
            needed = needed.union(name for part in parts if part is not None for name in part.columns)
            result.append(needed)
        return result[::-1]

    def _first_columns(self) -> dict[str, Expression]:
        """Return the columns of the path before its first hop, as expressions."""
        first = self.block.inputs[self.start]
        inputs = [first]
        if self.graph.on[self.start].pairs:
            inputs.append(self.block.inputs[left_input(self.graph, self.start)])
        columns = {i: column(i, each.type_of(name)) for each in inputs for i, name in each.columns}
        if first.mode != "inner":
            columns |= {key.columns[0]: key for key in key_columns(self.graph, self.start)}
        if first.versions is not None:
            columns |= {i: column(i, first.type_of(name)) for i, name in self._bounds(first.versions).items()}
        return columns

    def _names(self) -> dict[str, str]:
        """Return the labels of the path's columns, for EXPLAIN."""
        names = self.rounds.labels.names(self.block)
        for key, link in zip(key_columns(self.graph, self.start), self.graph.on[self.start].links, strict=True):
            names[key.columns[0]] = shown(link.sides[1], names)
        versions = self.block.inputs[self.start].versions
        for i, name in ({} if versions is None else self._bounds(versions)).items():
            names[i] = self.rounds.labels.column(self.relation, name)
        return names

    def _describe(self, hop: Hop, tests: list[Expression]) -> None:
        """Record a hop for EXPLAIN."""
        labels = self.rounds.labels
        within, by = "", labels.column(hop.arrangement.relation, hop.arrangement.order or "")
        if hop.latest is not None:
            within = f"latest {'before' if hop.strict else 'up to'} {shown(hop.latest, self.names)}"
        elif hop.between is not None:
            ends = ", ".join(shown(end, self.names) for end in hop.between)
            within = f"{by} in ({ends}]" if hop.strict else f"{by} in [{ends})"
        elif hop.near is not None:
            within = f"{by} near {shown(hop.near[0], self.names)}"
        self.described.append(
            PathHop(
                hop.arrangement.id,
                labels.key(replace(hop.key, null_safe=frozenset()), self.names),
                self.block.inputs[hop.input].relation,
                self.all_after or hop.after,
                hop.mode,
                within,
                labels.conditions(self.graph.filters[hop.input], self.block, self.names),
                "" if hop.guard is None else labels.conditions(self.graph.on[hop.input].guards, self.block, self.names),
                labels.conditions([*tests, *hop.pairs], self.block, self.names),
                self.block.inputs[hop.input].arrival,
            )
        )


def _plain(expression: Expression, names: Mapping[str, str]) -> Expression:
    return renamed(expression, {old: new for old, new in names.items() if old in expression.columns})


def _partition(hop: Hop) -> str:
    """Return how a stream must be partitioned for a hop."""
    return "everywhere" if hop.everywhere else ",".join(hop.values) or "()"
