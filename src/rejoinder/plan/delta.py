"""Delta joins: for each input of a block, the order in which its changes meet the other inputs.

Rules (one path per input, n(n−1) lookups, ties broken by input order):
- a path starts with the changes of its input and goes on only to inputs that share an equality with those already met;
- the key of a lookup is every equality that links the next input with the ones met;
- next comes the input with the smallest expected fan-out, by the statistics of its arrangement;
- path i sees an input before it with this epoch's changes, an input after it without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.kernels.evaluate import Expression
from rejoinder.plan.logical import renamed
from rejoinder.plan.normal import Block
from rejoinder.plan.physical import Arrangement, Key

UNKNOWN_FANOUT = 10.0
FILTERED = 0.3


@dataclass(frozen=True)
class Statistics:
    """Rows and distinct keys of an arrangement."""

    rows: int
    keys: int

    @property
    def fanout(self) -> float:
        """Expected number of rows for a key."""
        return self.rows / max(1, self.keys)


@dataclass(frozen=True)
class Hop:
    """A lookup of a path: which input, by which arrangement, with which key of the rows met so far."""

    input: int
    arrangement: Arrangement
    key: Key
    classes: tuple[int, ...]
    after: bool


@dataclass(frozen=True)
class JoinGraph:
    """A block's predicates sorted by what they do."""

    filters: tuple[tuple[Expression, ...], ...]
    classes: tuple[tuple[tuple[Expression, ...], ...], ...]
    residual: tuple[Expression, ...]


def inputs_of(expression: Expression) -> set[int]:
    """The inputs that an expression of a canonical block reads."""
    return {int(name.split(".", 1)[0]) for name in expression.columns}


def join_graph(block: Block) -> JoinGraph:
    """Sort predicates into filters of one input, classes of equal expressions, and the rest."""
    filters: list[list[Expression]] = [[] for _ in block.inputs]
    residual: list[Expression] = []
    members: list[set[tuple[int, Expression]]] = []
    for predicate in block.predicates:
        used = inputs_of(predicate.expression)
        sides = predicate.equality
        if len(used) == 1:
            filters[used.pop()].append(predicate.expression)
        elif sides is not None and all(len(inputs_of(side)) == 1 for side in sides):
            joined = {(inputs_of(side).pop(), side) for side in sides}
            touching = [group for group in members if any(_same(a, b) for a in group for b in joined)]
            for group in touching:
                members.remove(group)
                joined |= group
            members.append(joined)
        else:
            residual.append(predicate.expression)
    classes = []
    for group in members:
        by_input: list[list[Expression]] = [[] for _ in block.inputs]
        for at, side in sorted(group, key=lambda m: (m[0], m[1].sql)):
            if all(side.sql != other.sql for other in by_input[at]):
                by_input[at].append(side)
        for at, sides_here in enumerate(by_input):
            first = sides_here[0] if sides_here else None
            for other in sides_here[1:]:
                assert first is not None
                filters[at].append(_equal(first, other))
        classes.append(tuple(tuple(sides_here) for sides_here in by_input))
    return JoinGraph(tuple(map(tuple, filters)), tuple(classes), tuple(residual))


def _same(left: tuple[int, Expression], right: tuple[int, Expression]) -> bool:
    return left[0] == right[0] and left[1].sql == right[1].sql


def _equal(left: Expression, right: Expression) -> Expression:
    columns = tuple(dict.fromkeys((*left.columns, *right.columns)))
    text = f"{left.text} = {right.text}"
    throws = left.throws or right.throws
    return Expression(f"({left.sql}) = ({right.sql})", pa.bool_(), columns, text=text, throws=throws)


def order_path(
    block: Block,
    graph: JoinGraph,
    start: int,
    statistics: Mapping[str, Statistics],
    primary_keys: Mapping[str, set[str]],
) -> tuple[Hop, ...]:
    """Choose the order in which the changes of input `start` meet the other inputs."""
    met = {start}
    hops: list[Hop] = []
    while len(met) < len(block.inputs):
        candidates = [_hop(block, graph, met, at, start) for at in range(len(block.inputs)) if at not in met]
        linked = [hop for hop in candidates if hop is not None]
        if not linked:
            left = [block.inputs[at].relation for at in range(len(block.inputs)) if at not in met]
            raise Unsupported(
                f"no equality links {' and '.join(f'`{name}`' for name in left)} with the rest of the join",
                detail="without one, every row would pair with every other",
                hint="add a condition of the form a.x = b.y",
            )
        best = min(
            linked,
            key=lambda hop: (
                _fanout(hop, statistics, primary_keys) * (FILTERED if graph.filters[hop.input] else 1.0),
                hop.input,
            ),
        )
        hops.append(best)
        met.add(best.input)
    return tuple(hops)


def _hop(block: Block, graph: JoinGraph, met: set[int], at: int, start: int) -> Hop | None:
    relation = block.inputs[at]
    plain = dict(relation.columns)
    parts = []
    for number, group in enumerate(graph.classes):
        source = next((group[i][0] for i in sorted(met) if group[i]), None)
        if source is not None and group[at]:
            parts.append((renamed(group[at][0], plain), source, number))
    if not parts:
        return None
    parts.sort(key=lambda part: part[0].sql)
    key = Key(tuple(part[0] for part in parts))
    arrangement = Arrangement(relation.relation, key, relation.schema)
    return Hop(at, arrangement, Key(tuple(p[1] for p in parts)), tuple(p[2] for p in parts), after=at < start)


def _fanout(hop: Hop, statistics: Mapping[str, Statistics], primary_keys: Mapping[str, set[str]]) -> float:
    known = statistics.get(hop.arrangement.id)
    if known is not None and known.rows:
        return known.fanout
    columns = {part.columns[0] for part in hop.arrangement.key.parts if part.is_column}
    unique = primary_keys.get(hop.arrangement.relation)
    return 1.0 if unique and unique <= columns else UNKNOWN_FANOUT
