"""Frontiers: the time below which a column of a relation no longer changes, and the expiry that follows from it.

- In the on-time rows of a source, the frontier of an event-time column is its watermark.
- A column of a join belongs to one input. Changes of this input are at its frontier or later. Changes of another input
  look up rows no older than the bounds of the join allow, and no older than the oldest retained row. The frontier is
  the minimum of these.
- A column of a union comes from any of its branches. Branches whose sources are all idle are ignored; rows that such a
  branch sends later, below the frontier, are late for the union.
- A value that is monotone in a column, such as the start of a window, has the frontier of the column, with the same
  function applied.
- A retained row expires once no later change can look it up.

A frontier is a formula over watermarks and retained rows. It is planned once and evaluated after each epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

import pyarrow as pa

from rejoinder.ir.catalog import Source
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.monotone import simplified
from rejoinder.ir.identities import UNIT, RelationId, is_on_time, source_of
from rejoinder.ir.logical import Predicate
from rejoinder.plan.blocks.lineage import sources_of
from rejoinder.plan.blocks.normal_form import Block, Derived, Input
from rejoinder.plan.join.block_bounds import Distances, Steps, all_bounds, looser
from rejoinder.plan.join.join_graph import input_of
from rejoinder.watermarks.formula import Formula, RetainedMinimum, UnionMinimum, Watermark, greatest, least, lift


@dataclass
class Frontiers:
    """Computes frontiers of relations and limits of inputs, each once."""

    sources: Mapping[str, Source]
    derived: Mapping[RelationId, Derived]
    unbounded: bool = False
    """Whether a column of a join that no condition bounds has a frontier: the oldest retained row. It may never
    advance, so it is only shown to users; neither expiry nor emission depend on it."""
    _known: dict[tuple[RelationId, str], Formula | None] = field(default_factory=dict)
    _reading: dict[RelationId, bool] = field(default_factory=dict)
    # By identity, because hashing a block hashes its whole tree; `_bounds` and `_timed` also by the inputs with a row.
    _always: dict[int, tuple[Block, frozenset[int]]] = field(default_factory=dict)  # blocks live as long as their ids
    _rows: dict[tuple[int, frozenset[int]], frozenset[int]] = field(default_factory=dict)
    _bounds: dict[tuple[int, frozenset[int]], Distances] = field(default_factory=dict)
    _below: dict[tuple[int, frozenset[int]], dict[tuple[str, int], list[tuple[str, Steps]]]] = field(
        default_factory=dict
    )
    _timed: dict[tuple[int, frozenset[int]], set[str]] = field(default_factory=dict)

    def of(self, relation: RelationId, name: str) -> Formula | None:
        """Return the frontier of a column of a relation; None if changes may have any time."""
        pair = relation, name
        if pair not in self._known:
            self._known[pair] = None
            self._known[pair] = self._found(relation, name)
        return self._known[pair]

    def _reads_times(self, relation: RelationId) -> bool:
        """Whether a column can have a frontier: the relation is made from on-time rows. Most flows have none."""
        if relation not in self._reading:
            made = self.derived.get(relation)
            inputs = [] if made is None else [each.relation for block in made.blocks for each in block.inputs]
            self._reading[relation] = self._is_read_on_time(relation) or any(map(self._reads_times, inputs))
        return self._reading[relation]

    def _is_read_on_time(self, relation: RelationId) -> bool:
        return is_on_time(relation)

    def _found(self, relation: RelationId, name: str) -> Formula | None:
        if is_on_time(relation):
            source = self.sources[source_of(relation)]
            return Watermark(source.name, name) if name in source.watermarks else None
        made = self.derived.get(relation)
        return made.operation.frontier(self, made, name) if made is not None and self._reads_times(relation) else None

    def of_input(self, made: Derived, name: str) -> Formula | None:
        """Return the frontier of the input of a derived relation; for a union, over its branches that are not idle."""
        formulas = []
        for block in made.blocks:
            outputs = dict(block.outputs)
            if name not in outputs:
                return None
            if _is_padding(outputs[name]):  # NULL is below no frontier
                continue
            frontier = self.of_output(made.id, block, outputs[name])
            if frontier is None:
                return None
            formulas.append(frontier)
        if len(formulas) < len(made.blocks):
            return least(formulas) if formulas else None
        return self.merged(made, formulas) if made.operation.skips_idle_blocks else least(formulas)

    def merged(self, made: Derived, formulas: Sequence[Formula], place: str = "") -> Formula:
        """Return the watermark of a union. If all branches read the same sources, they are idle only together."""
        read = [sources_of(block, self.derived) & self.sources.keys() for block in made.blocks]
        named = tuple(tuple(sorted(n for n in names if self.sources[n].watermarks)) for names in read)
        return least(formulas) if len(set(named)) == 1 else UnionMinimum(tuple(formulas), named, place)

    def of_output(self, user: RelationId, block: Block, expression: Expression) -> Formula | None:
        """Return the frontier of an output of a block; `user` is the relation or view that the block computes."""
        rising = expression.monotone
        if rising is None:
            return None
        i, at = rising.column, input_of(rising.column)
        each, name = block.inputs[at], dict(block.inputs[at].columns)[rising.column]
        starts = [start for start, other in enumerate(block.inputs) if start != at and not other.arrival]
        limits = [self.limit(block, start, i) for start in starts]
        known = [limit for limit in limits if limit is not None]
        met = least(known) if known and len(known) == len(limits) else None
        if each.arrival:  # result rows arrive only with changes of the other inputs
            return None if met is None else lift(met, rising.steps)
        own = self.of(each.relation, name)
        if own is None or (starts and met is None and not self.unbounded):
            return None
        if not starts:
            return lift(own, rising.steps)
        return lift(RetainedMinimum(own, met, user, each.relation, name, kept_key(user, i, block)), rising.steps)

    def _changed(self, block: Block, start: int, i: str) -> Formula | None:
        """Return the time of column `i` below which changes of input `start` change no row of a block."""
        each = block.inputs[start]
        return self.of(each.relation, dict(each.columns)[i]) if input_of(i) == start else self.limit(block, start, i)

    def change_sources(self, made: Derived, names: Iterable[str]) -> list[dict[str, Formula]]:
        """Return the frontiers of the input of a derived relation by column, for each source of its changes.

        There is one source of changes if some column has a frontier for all changes; otherwise each input of the join
        is one.
        """
        known = {name: below for name in names if (below := self.of_input(made, name)) is not None}
        if known or len(made.blocks) > 1:
            return [known]
        block = made.blocks[0]
        rising = [(name, r) for name, e in block.outputs if name in names and (r := e.monotone) is not None]
        starts = [start for start, each in enumerate(block.inputs) if not each.arrival]
        changed = [[(name, self._changed(block, start, r.column), r.steps) for name, r in rising] for start in starts]
        return [{name: lift(below, steps) for name, below, steps in way if below} for way in changed]

    def limit(self, block: Block, start: int, i: str) -> Formula | None:
        """Return the time of column `i` below which changes of input `start` look up no rows; None if unbounded."""
        if block.inputs[start].relation == UNIT or not self._reads_times(block.inputs[start].relation):
            return None
        bounds = self._bounds_below(block, self._there(block, (start, input_of(i)))).get((i, start), ())
        names = dict(block.inputs[start].columns) if bounds else {}
        reached = ((self.lookup_frontier(block.inputs[start], names[earlier]), steps) for earlier, steps in bounds)
        formulas = [lift(frontier, steps) for frontier, steps in reached if frontier is not None]
        return greatest(formulas) if formulas else None

    def _bounds_below(
        self, block: Block, there: frozenset[int]
    ) -> Mapping[tuple[str, int], Sequence[tuple[str, Steps]]]:
        """Return the bounds in rows of a block, by the later column and the input of the earlier column."""
        if (id(block), there) not in self._below:
            bounds: dict[tuple[str, int], list[tuple[str, Steps]]] = {}
            for (later, earlier), steps in self.bounds(block, there).items():
                bounds.setdefault((later, input_of(earlier)), []).append((earlier, steps))
            self._below[id(block), there] = bounds
        return self._below[id(block), there]

    def bounds(self, block: Block, inputs: Iterable[int]) -> Distances:
        """Return the bounds in rows of a block in which some inputs have a row, including bounds within those inputs.

        The ON of an input with a mode holds only in rows in which that input has a row.
        """
        there = self._there(block, inputs)
        if (id(block), there) not in self._bounds:
            within = {}
            for each in block.inputs:
                ids = {name: i for i, name in each.columns}
                made = self.derived.get(each.relation)
                for (later, earlier), steps in ({} if made is None else self._within(made)).items():
                    if later in ids and earlier in ids and self.has_time(block, there, ids[earlier]):
                        within[ids[later], ids[earlier]] = steps
            self._bounds[id(block), there] = all_bounds(_conditions(block, there), within)
        return self._bounds[id(block), there]

    def _there(self, block: Block, inputs: Iterable[int]) -> frozenset[int]:
        """Return the inputs that have a row where `inputs` do: inner and semi ones, and those that are compared."""
        if id(block) not in self._always:
            inner = {at for at, each in enumerate(block.inputs) if each.mode in ("inner", "semi")}
            self._always[id(block)] = block, _with_compared(block, inner)
        always = self._always[id(block)][1]
        if always.issuperset(inputs):
            return always
        known = id(block), frozenset(inputs)
        if known not in self._rows:
            self._rows[known] = _with_compared(block, always.union(inputs))
        return self._rows[known]

    def _within(self, made: Derived) -> Distances:
        """Return how far apart two columns of a row can be if neither is NULL: the loosest bound over its blocks."""
        if made.operation.changes_at_any_time or not made.blocks:
            return {}
        distances: list[Distances] = []
        padded: list[set[str]] = []
        for block in made.blocks:
            names: dict[str, list[str]] = {}
            for name, expression in block.outputs:
                if expression.is_column and name in made.schema.names:
                    names.setdefault(expression.columns[0], []).append(name)
            pairs = (
                (a, b, steps)
                for both in product({input_of(i) for i in names}, repeat=2)
                for (later, earlier), steps in self.bounds(block, both).items()
                if (input_of(later), input_of(earlier)) == both
                for a in names.get(later, ())
                for b in names.get(earlier, ())
            )
            distances.append({(a, b): steps for a, b, steps in pairs})
            padded.append({name for name, expression in block.outputs if _is_padding(expression)})
        result: Distances = {}
        for pair in {pair for each in distances for pair in each}:
            held = [each.get(pair) for each, names in zip(distances, padded, strict=True) if not names & set(pair)]
            loosest: Steps | None = held[0]
            for steps in held[1:]:
                loosest = None if steps is None or loosest is None else looser(loosest, steps)
            if loosest is not None:
                result[pair] = loosest
        return result

    def key_frontier(self, block: Block, at: int) -> list[dict[str, Formula]]:
        """Return the times below which no change of an input has the key of a retained row, if its mode tests keys.

        Changes of the input itself test the key, too: a row is needed until no other row of its key can be inserted or
        deleted. If left rows have a match status, a row is needed as long as a left row that it matches can be looked
        up.
        """
        each = block.inputs[at]
        names = dict(each.columns)
        others = {i for p in each.on for i in p.expression.columns} - names.keys()
        if any(_is_on_pairs(p, names.keys()) for p in each.on):
            if not self._reads_times(each.relation):
                return [{}]
            lifted: dict[str, list[Formula]] = {}
            for (later, earlier), steps in self.bounds(block, (at,)).items():
                met = self.limit(block, at, earlier) if later in names and earlier in others else None
                if met is not None:
                    lifted.setdefault(names[later], []).append(lift(met, steps))
            return [{name: greatest(formulas) for name, formulas in lifted.items()}]
        rising = [r for p in each.on if p.equality is not None and (r := p.equality[1].monotone) is not None]
        least_of = {names[r.column]: (*r.steps, *back) for r in rising if (back := r.least()) is not None}
        return [
            {name: lift(way[name], simplified(steps)) for name, steps in least_of.items() if name in way}
            for way in self._changes(each.relation, least_of.keys())
        ]

    def _changes(self, relation: RelationId, names: Iterable[str]) -> list[dict[str, Formula]]:
        """Return the frontiers of a relation by column, for each source of its changes."""
        made = self.derived.get(relation)
        if made is not None:
            return made.operation.change_frontiers(self, made, names)
        return [{name: below for name in names if (below := self.of(relation, name)) is not None}]

    def lookup_frontier(self, each: Input, name: str) -> Formula | None:
        """Return the frontier of those changes of an input that can match retained rows.

        If the input is the relation of matched left rows, these are the changes of the matches: a change of the left
        row arrives with its own row.
        """
        made = self.derived.get(each.relation)
        if made is not None and each.match_inputs and each.match_inputs == len(made.blocks[0].inputs) - 1:
            (inner,) = made.blocks
            rising = dict(inner.outputs)[name].monotone
            starts = range(len(inner.inputs) - each.match_inputs, len(inner.inputs))
            met = [] if rising is None else [self.limit(inner, start, rising.column) for start in starts]
            formulas = [formula for formula in met if formula is not None]
            if rising is not None and len(formulas) == each.match_inputs:
                return lift(least(formulas), rising.steps)
        return self.of(each.relation, name)

    def is_known(self, relation: RelationId, name: str) -> bool:
        """Return whether a column is never NULL: an event time of on-time rows, or computed from one."""
        if is_on_time(relation):
            return name in self.sources[source_of(relation)].watermarks
        made = self.derived.get(relation)
        return made is not None and made.operation.is_never_null(self, made, name)

    def is_final(self, block: Block, i: str) -> bool:
        """Return whether every row of a block is final once the frontier of this column has passed its time."""
        each = block.inputs[input_of(i)]
        return self._is_known_output(block, column(i, each.type_of(dict(each.columns)[i]))) and self.is_timed(block, i)

    def is_timed(self, block: Block, i: str) -> bool:
        """Return whether a column of a block is a time with a frontier: a row in which it is not NULL becomes final."""
        each = block.inputs[input_of(i)]
        kind = each.type_of(dict(each.columns)[i])
        is_time = pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_integer(kind)
        return is_time and self.of_output(UNIT, block, column(i, kind)) is not None  # the same for any user

    def covering(self, relation: RelationId, names: Sequence[str]) -> list[str]:
        """Return some of these columns, such that one of them is not NULL in every row; empty if there are none.

        In a FULL join, rows have a time of the left or of the right side, and either column can be NULL.
        """
        made = self.derived.get(relation)
        if made is None or made.operation.changes_at_any_time or made.operation.combines_rows:
            return []
        chosen: dict[str, None] = {}
        for block in made.blocks:
            outputs = dict(block.outputs)
            known = [name for name in names if name in outputs and self._is_known_output(block, outputs[name])]
            if not known:
                return []
            chosen[next((name for name in known if name in chosen), known[0])] = None
        return list(chosen)

    def is_known_input(self, made: Derived, name: str) -> bool:
        """Return whether a column of the input of a derived relation is never NULL."""
        outputs = [(block, dict(block.outputs).get(name)) for block in made.blocks]
        return all(e is not None and self._is_known_output(block, e) for block, e in outputs)

    def _is_known_output(self, block: Block, expression: Expression) -> bool:
        if expression.monotone is None:
            return False
        i = expression.monotone.column
        each = block.inputs[input_of(i)]
        tested = any(_mentions(p, i) and not p.null_safe for p in block.predicates)
        return each.mode == "inner" and (tested or self.is_known(each.relation, dict(each.columns)[i]))

    def has_time(self, block: Block, inputs: Iterable[int], i: str) -> bool:
        """Return whether column `i` is not NULL in rows of a block in which `inputs` have a row."""
        there = self._there(block, inputs)
        if (id(block), there) not in self._timed:
            self._timed[id(block), there] = set(self._compared_times(block, there))
        return i in self._timed[id(block), there] or self._is_known_column(block, i)

    def _compared_times(self, block: Block, there: Collection[int]) -> Iterator[str]:
        """Yield the columns that conditions compare in rows in which these inputs have a row: they are not NULL."""
        for p in _conditions(block, there):
            for bound in p.bounds:
                for name, other in permutations((bound.later.columns[0], bound.earlier.columns[0])):
                    if not p.null_safe or self._is_known_column(block, other):
                        yield name

    def _is_known_column(self, block: Block, i: str) -> bool:
        each = block.inputs[input_of(i)]
        return self.is_known(each.relation, dict(each.columns)[i])


def _with_compared(block: Block, inputs: Iterable[int]) -> frozenset[int]:
    """Return inputs, and those whose times are compared where these have a row."""
    reached, added = set(inputs), _compared(block.predicates)
    added |= reached
    while added:
        reached |= added
        added = {other for at in added for other in _compared(block.inputs[at].on)} - reached
    return frozenset(reached)


def _compared(predicates: Iterable[Predicate]) -> set[int]:
    """Return the inputs whose times conditions compare, so that they have a row."""
    bounds = [bound for p in predicates if not p.null_safe for bound in p.bounds]
    return {input_of(each.columns[0]) for bound in bounds for each in (bound.later, bound.earlier)}


def _conditions(block: Block, there: Collection[int]) -> list[Predicate]:
    """Return the conditions that hold in rows of a block in which these inputs have a row."""
    return [*block.predicates, *(p for at in sorted(there) for p in block.inputs[at].on)]


def kept_key(user: RelationId, i: str, block: Block) -> str:
    """Return the identity of a column of a block, which depends on the computation only."""
    return hashlib.blake2b(f"{user} {i} {block.text}".encode(), digest_size=8).hexdigest()


def _is_padding(expression: Expression) -> bool:
    return expression.is_null


def _is_on_pairs(predicate: Predicate, own: Collection[str]) -> bool:
    """Return whether a condition other than an equality reads columns of an input and of another one."""
    read = [i in own for i in predicate.expression.columns]
    return predicate.equality is None and any(read) and not all(read)


def _mentions(predicate: Predicate, i: str) -> bool:
    return any(i in (bound.later.columns[0], bound.earlier.columns[0]) for bound in predicate.bounds)
