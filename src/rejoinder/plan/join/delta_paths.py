"""Delta joins: for each input of a block, the order in which its changes look up the other inputs.

Rules (one path per input, n(n−1) lookups, ties broken by input order):
- a path starts with the changes of its input and continues with inputs that share an equality with those already
  joined; only if none does, every row is joined with every row;
- the key of a lookup is every equality that links the next input with those already joined;
- an input with a mode is looked up, in its mode, once all inputs that its condition reads are joined;
- a path that starts at an input with a mode, or at one that depends on a padded one, goes the opposite way: its changes
  have keys, by which rows of the inputs that the condition reads are looked up. Padding matches no key;
- with conditions on pairs, such a path starts with the left rows that the conditions read, and their match status;
- if every row is joined with every row, changes go to all buckets, and each bucket has a part of the input, by row;
- the next input is the one with the smallest expected fan-out, by the statistics of its arrangement;
- path i reads inputs before it with this epoch's changes, and inputs after it without. Inputs with validity windows
  come first, so that a row is joined with the versions after the epoch, not with those that the epoch replaces;
- no path starts at an input at arrival, and all other paths read it with this epoch's changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from rejoinder.ir.expressions.canonical import canonical_text
from rejoinder.ir.expressions.expression import Expression, column, conjunction
from rejoinder.ir.identities import RelationId, column_text
from rejoinder.plan.blocks.normal_form import Block, Input
from rejoinder.plan.blocks.padding import is_null_on_padding
from rejoinder.plan.join.block_bounds import direct_bounds
from rejoinder.plan.join.fan_out import Statistics, expected_fanout
from rejoinder.plan.join.hop import FROM, TO, Hop
from rejoinder.plan.join.join_graph import JoinGraph, Link, Window, equal, input_of, inputs_of
from rejoinder.plan.join.outer_match import arranged, key_columns, left_input
from rejoinder.plan.physical.arrangement import Arrangement, Key

RANGED = 16  # rows of a key from which on a search by time is cheaper than to test them all; see ADR 0019


@dataclass(frozen=True)
class _Part:
    """One equality of a key: the side of the arrangement, the side of the path, and a name for their common value."""

    there: Expression
    here: Expression
    value: str
    null_safe: bool


@dataclass(frozen=True)
class _Candidate:
    """A hop that a path could take next."""

    hop: Hop
    parts: list[_Part]
    """The equalities that its key checks."""
    fanout: float
    """The expected number of rows per key."""
    forward: bool
    """Whether an input with a mode is looked up in its mode."""


@dataclass
class _Walk:
    """The state of a path under construction."""

    start: int
    met: set[int]
    """The inputs that are joined already."""
    stale: set[int]
    """The inputs whose candidates must be computed again, because an input was joined that is linked with them."""
    links: list[Link] = field(default_factory=list)
    """Equalities of inputs with a mode that no key has checked yet."""
    tests: list[Expression] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    here: dict[int, int] = field(default_factory=dict)
    """For each equality class, the first joined input that has a member."""
    candidates: dict[int, _Candidate] = field(default_factory=dict)
    """The next hops by input, kept from hop to hop."""


class PathFinder:
    """Orders the paths of a block."""

    def __init__(
        self,
        block: Block,
        graph: JoinGraph,
        statistics: Mapping[str, Statistics],
        primary_keys: Mapping[RelationId, set[str]],
    ) -> None:
        self.block = block
        self.graph = graph
        self.statistics = statistics
        self.primary_keys = primary_keys
        self.bounds = direct_bounds([*block.predicates, *(p for each in block.inputs if each.arrival for p in each.on)])
        self.bounds_of: list[list[tuple[str, str]]] = [[] for _ in block.inputs]  # by the input of the later column
        for pair in self.bounds:
            self.bounds_of[input_of(pair[0])].append(pair)
        numbered = list(enumerate(graph.classes))
        self.classes_of = [
            [number for number, group in numbered if group.members[at]] for at in range(len(block.inputs))
        ]
        self.linked_with = self._linked_with()

    def _linked_with(self) -> list[set[int]]:
        """Return, for each input, those that some condition links with it, other than by equality classes."""
        linked: list[set[int]] = [{at} for at in range(len(self.block.inputs))]
        edges = [{input_of(one), input_of(two)} for one, two in self.bounds]
        edges += [{window.input} | inputs_of(window.time) for window in self.graph.windows]
        edges += [{at} | on.needs for at, on in enumerate(self.graph.on) if on.needs]
        for edge in edges:
            for at in edge:
                linked[at] |= edge
        return linked

    def path(self, start: int) -> tuple[Hop, ...]:
        """Choose the order in which changes of input `start` look up the others; none if it is joined at arrival."""
        if self.block.inputs[start].arrival:
            return ()
        walk = _Walk(start, set(), set(range(len(self.block.inputs))))
        self._meet(walk, start)
        if self.graph.on[start].pairs:
            self._meet(walk, left_input(self.graph, start))  # MatchStatus has already joined it
            walk.windows = list(self.graph.windows)
            return self._hops(walk)
        walk.windows = [ranged(window) if window.input == start else window for window in self.graph.windows]
        if self.block.inputs[start].mode != "inner":
            on = self.graph.on[start]
            walk.links = [
                Link((link.sides[0], key), link.null_safe)
                for link, key in zip(on.links, key_columns(self.graph, start), strict=True)
            ]
            walk.tests = list(on.guards)
            walk.windows += [] if on.window is None else [ranged(on.window)]
        return self._hops(walk)

    def _hops(self, walk: _Walk) -> tuple[Hop, ...]:
        """Return the remaining hops of a path."""
        hops: list[Hop] = []
        while len(walk.met) < len(self.block.inputs):
            hops.append(self._next(walk))
        return tuple(hops)

    def _meet(self, walk: _Walk, at: int) -> None:
        """Mark an input as joined; candidates that are linked with it become stale."""
        walk.met.add(at)
        walk.candidates.pop(at, None)
        walk.stale |= self.linked_with[at]
        for number in self.classes_of[at]:
            if at < walk.here.get(number, len(self.block.inputs)):
                walk.here[number] = at
                walk.stale |= self.graph.classes[number].inputs

    def _next(self, walk: _Walk) -> Hop:
        for at in walk.stale - walk.met:
            walk.candidates.pop(at, None)
            found = self._link(walk, at)
            if found is not None:
                walk.candidates[at] = self._candidate(walk, at, *found)
        walk.stale = set()
        unmet = (at for at, each in enumerate(self.block.inputs) if each.mode == "inner" and at not in walk.met)
        candidates = list(walk.candidates.values()) or [self._candidate(walk, at, [], False) for at in unmet]
        best = min(candidates, key=lambda each: (each.fanout, each.hop.input))
        return self._taken(walk, best.hop, best.parts, forward=best.forward)

    def _link(self, walk: _Walk, at: int) -> tuple[list[_Part], bool] | None:
        """Return the equalities of an input with the joined ones, and whether it is looked up in its mode, or None."""
        each, on = self.block.inputs[at], self.graph.on[at]
        if each.mode == "inner":
            parts = self._parts(walk, at)
            return (parts, False) if parts else None
        is_ready = on.needs <= walk.met
        if each.mode == "left" and not (is_ready and on.links):
            parts = self._parts(walk, at, padding=False)
            if parts:
                return parts, False
        return (self._key(at), True) if is_ready else None

    def _candidate(self, walk: _Walk, at: int, parts: list[_Part], forward: bool) -> _Candidate:
        hop, parts = self._hop(walk, at, parts, forward=forward)
        statistics, primary_key = (
            self.statistics.get(hop.arrangement.id),
            self.primary_keys.get(self.block.inputs[at].relation),
        )
        fanout = expected_fanout(hop, statistics, primary_key or (), is_filtered=bool(self.graph.filters[at]))
        return _Candidate(hop, parts, fanout, forward)

    def _parts(self, walk: _Walk, at: int, *, padding: bool = True) -> list[_Part]:
        """Return the equalities between an input and the joined ones; without `padding`, only those it cannot match."""
        parts = []
        for number in self.classes_of[at]:
            group, here = self.graph.classes[number], walk.here.get(number)
            if here is not None:
                parts.append(_Part(group.members[at][0], group.members[here][0], f"={number}", group.null_safe))
        for link in walk.links:
            sides = link.of(at)
            if sides is not None and inputs_of(sides[1]) <= walk.met:
                parts.append(_Part(*sides, self._value(sides[0]), link.null_safe))
        each = self.block.inputs[at]
        return [p for p in parts if padding or (not p.null_safe and is_null_on_padding(p.there, each))]

    def _key(self, at: int) -> list[_Part]:
        """Return the key of an input with a mode: all equalities of its condition."""
        return [
            _Part(link.sides[1], link.sides[0], self._value(link.sides[0]), link.null_safe)
            for link in self.graph.on[at].links
        ]

    def _value(self, expression: Expression) -> str:
        """Return a name for the value of an expression: that of its equality class, or its text."""
        (at,) = inputs_of(expression) or {-1}
        for number in self.classes_of[at] if at >= 0 else ():
            if any(member == expression for member in self.graph.classes[number].members[at]):
                return f"={number}"
        return expression.key

    def _hop(self, walk: _Walk, at: int, parts: list[_Part], *, forward: bool) -> tuple[Hop, list[_Part]]:
        """Return the hop to an input, and the equalities that its key checks."""
        each = self.block.inputs[at]
        has_pairs = bool(self.graph.on[at].pairs) and not each.arrival
        parts = sorted(parts, key=lambda part: canonical_text((part.here if has_pairs else part.there).node))
        around = self._around(walk, at, parts, forward=forward)
        if around is not None:
            parts = [part for part in parts if set(part.there.columns) <= around.partition]
        inside = next((w for w in walk.windows if w.input in walk.met and _orders(w.time, at)), None)
        safe = frozenset(number for number, part in enumerate(parts) if part.null_safe)
        arrangement = arranged(each, Key(tuple(part.there for part in parts), safe))
        if around is not None or inside is not None:
            by = around.start if around is not None else inside.time if inside is not None else None
            assert by is not None
            arrangement = replace(arrangement, order=dict(each.columns)[by.columns[0]])
        key = Key(tuple(part.here for part in parts), safe)
        values = tuple(part.value + (" or NULL" if part.null_safe else "") for part in parts)
        hop = Hop(at, arrangement, key, values, after=each.arrival or self._rank(at) < self._rank(walk.start))
        if around is not None:
            hop = replace(hop, latest=around.time, strict=around.strict)
        elif inside is not None:
            hop = replace(hop, between=(inside.start, inside.end), strict=inside.strict)
        elif each.mode == "inner" or each.arrival:
            hop = self._within(walk, hop)
        if forward:
            on = self.graph.on[at]
            hop = replace(hop, mode=each.mode, guard=conjunction(on.guards), pairs=on.pairs)
        return self._spread(hop, each), parts

    def _spread(self, hop: Hop, each: Input) -> Hop:
        """If every row is joined with every row, distribute the input over all buckets."""
        is_range = any(way is not None for way in (hop.between, hop.latest, hop.near))
        if hop.key.parts or hop.arrangement.key.parts or is_range or each.mode != "inner" or not each.schema.names:
            return hop
        return replace(hop, arrangement=Arrangement.by_row(each.relation, each.schema), everywhere=True)

    def _within(self, walk: _Walk, hop: Hop) -> Hop:
        """Look up a range of times, if conditions bound it and a key has enough rows to make it cheaper."""
        if not self.bounds_of[hop.input]:
            return hop
        keyed = {name for part in hop.arrangement.key.parts for name in part.columns}
        own = {i: name for i, name in self.block.inputs[hop.input].columns if name not in keyed}
        found = [
            (self.bounds[here, there] + self.bounds[there, here], self.bounds[here, there], here, there)
            for here, there in self.bounds_of[hop.input]
            if here in own and input_of(there) in walk.met and (there, here) in self.bounds
        ]
        if not found:
            return hop
        _, below, here, there = min(found)
        ordered = replace(hop.arrangement, order=own[here])
        rows = [self.statistics[a.id].fanout for a in (hop.arrangement, ordered) if a.id in self.statistics]
        if hop.key.parts and max(rows, default=0.0) < RANGED:
            return hop
        time = column(there, self.block.inputs[hop.input].type_of(own[here]))
        return replace(hop, arrangement=ordered, near=(time, below, self.bounds[there, here]))

    def _rank(self, at: int) -> tuple[bool, int]:
        """Return the rank of an input: a path reads inputs of smaller rank with this epoch's changes."""
        return self.block.inputs[at].versions is None, at

    def _around(self, walk: _Walk, at: int, parts: list[_Part], *, forward: bool) -> Window | None:
        """Return the window of an input that contains a joined time, if the key determines its partition."""
        own = self.graph.on[at].window if forward else None
        known = {part.there.columns[0] for part in parts if part.there.is_column and not part.null_safe}
        for window in [*walk.windows, *([own] if own is not None else [])]:
            if window.input == at and inputs_of(window.time) <= walk.met and window.partition <= known:
                return window
        return None

    def _taken(self, walk: _Walk, hop: Hop, parts: list[_Part], *, forward: bool) -> Hop:
        """Take a hop: mark its input as joined, and add the conditions that no key checks as tests."""
        # Padding satisfies no equality, although the key of a left join includes it.
        used = set() if forward else {(part.there, part.here) for part in parts}
        on = self.graph.on[hop.input]
        for number in self.classes_of[hop.input]:
            group, first = self.graph.classes[number], walk.here.get(number)
            if first is None:
                continue
            here, there = group.members[first][0], group.members[hop.input][0]
            if (there, here) not in used:
                walk.tests.append(equal(here, there, null_safe=group.null_safe))
        self._meet(walk, hop.input)
        if not forward and self.block.inputs[hop.input].mode != "inner":
            walk.links += on.links
            walk.tests += [*on.guards, *on.pairs]
            walk.windows += [] if on.window is None else [on.window]
        for window in [w for w in walk.windows if {w.input} | inputs_of(w.time) <= walk.met]:
            walk.windows.remove(window)
            seen = hop.latest == window.time if hop.input == window.input else hop.between == (window.start, window.end)
            walk.tests += () if seen else window.conditions
        open_links = []
        for link in walk.links:
            sides = link.of(hop.input)
            if sides is not None and sides in used:
                continue
            if all(inputs_of(side) <= walk.met for side in link.sides):
                walk.tests.append(link.condition)
            else:
                open_links.append(link)
        walk.links = open_links
        tests = tuple(test for test in walk.tests if inputs_of(test) <= walk.met)
        walk.tests = [test for test in walk.tests if test not in tests]
        return replace(hop, tests=tests)


def ranged(window: Window) -> Window:
    """Return a window whose changes start a path: extra columns have its bounds, because its own may be projected."""
    kind = window.start.type
    return window.within(*(column(column_text(window.input, name), kind) for name in (FROM, TO)))


def _orders(time: Expression, at: int) -> bool:
    """Return whether rows of an input can be ordered by a time."""
    kind = time.type
    orderable = pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind)
    return orderable and time.is_column and inputs_of(time) == {at}
