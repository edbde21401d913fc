"""The flow as a graph: sources, arrangements, views and sinks as nodes, and how changes get from one to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rejoinder.ir.catalog import Catalog
from rejoinder.ir.identities import (
    DerivedRows,
    OperationInput,
    PendingRows,
    RelationId,
    SideOutput,
    StoredRows,
    ViewRows,
    owner_of,
    source_of,
)
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.planning import Plan
from rejoinder.plan.rounds.labels import Labels

Kind = Literal["source", "arrangement", "view", "sink"]


@dataclass(frozen=True)
class Node:
    """A node. `key` is unique in the graph; `name` is that of the catalog, or the id of an arrangement."""

    kind: Kind
    name: str
    label: str
    users: tuple[str, ...] = ()
    """The views that use an arrangement."""

    @property
    def key(self) -> str:
        """The identity of the node."""
        return f"{self.kind}:{self.name}"

    @property
    def is_shared(self) -> bool:
        """Whether several views use it."""
        return len(self.users) > 1


@dataclass(frozen=True)
class Graph:
    """Nodes by key, and edges as pairs of keys, in the direction of the changes."""

    nodes: dict[str, Node]
    edges: tuple[tuple[str, str], ...]

    def before(self, keys: Iterable[str]) -> Graph:
        """Return the part of the graph that feeds these nodes, with the nodes."""
        kept = set(keys) & set(self.nodes)
        more = set(kept)
        while more:
            more = {start for start, end in self.edges if end in more} - kept
            kept |= more
        nodes = {key: node for key, node in self.nodes.items() if key in kept}
        return Graph(nodes, tuple(edge for edge in self.edges if edge[0] in kept and edge[1] in kept))


def graph_of(catalog: Catalog, plan: Plan) -> Graph:
    """Return the graph of a plan. Sources that no view reads are nodes without edges."""
    return _Builder(catalog, plan).graph()


class _Builder:
    def __init__(self, catalog: Catalog, plan: Plan) -> None:
        self.catalog, self.plan, self.dataflow = catalog, plan, plan.dataflow
        self.arrangements = {a.id: a for a in self.dataflow.arrangements}
        self.by_relation: dict[RelationId, list[str]] = {}
        for a in self.dataflow.arrangements:
            self.by_relation.setdefault(_made_by(a.relation), []).append(a.id)

    def graph(self) -> Graph:
        """Return all nodes, and the edges between them."""
        labels = Labels(self.plan.program.derived)
        nodes = [Node("source", source.name, source.name) for source in self.catalog.sources]
        nodes += [Node("arrangement", a.id, labels.arrangement(a), self._users(a)) for a in self.arrangements.values()]
        nodes += [Node("view", name, name) for name in self.plan.program.views]
        nodes += [Node("sink", sink.name, sink.name) for sink in self.catalog.sinks]
        by_key = {node.key: node for node in nodes}
        edges = dict.fromkeys([*self._stored(), *self._lookups()])
        direct = [edge for edge in self._starts() if edge not in edges and not self._is_covered(edge, edges)]
        sinks = [
            (f"{self._owner_kind(sink.view)}:{owner_of(sink.view)}", f"sink:{sink.name}") for sink in self.catalog.sinks
        ]
        listed = dict.fromkeys([*edges, *direct, *sinks])
        return Graph(by_key, tuple((a, b) for a, b in listed if a != b and a in by_key and b in by_key))

    def _users(self, arrangement: Arrangement) -> tuple[str, ...]:
        named = self.plan.program.named(self.dataflow.users[arrangement.id])
        return tuple(name for name in named if name in self.plan.program.views)

    def _owner_kind(self, name: str) -> str:
        return "source" if any(s.name == owner_of(name) for s in self.catalog.sources) else "view"

    def _stored(self) -> list[tuple[str, str]]:
        """Return the edges into arrangements whose rows are those of a source or view."""
        edges = []
        for a in self.arrangements.values():
            made = _made_by(a.relation)
            if isinstance(a.relation, PendingRows):
                edges.append((f"arrangement:{a.id}", f"view:{a.relation.view}"))
            elif made not in self.plan.program.derived:
                edges += [(owner, f"arrangement:{a.id}") for owner in self._owners(made)]
        return edges

    def _lookups(self) -> list[tuple[str, str]]:
        """Return the edges from arrangements to the relations whose paths look them up, or that keep them."""
        edges = []
        for path in self.dataflow.paths:
            targets = self._targets(path.view)
            edges += [(f"arrangement:{hop.arrangement}", target) for hop in path.hops for target in targets]
        for name, users in self.dataflow.users.items():
            own = _made_by(self.arrangements[name].relation)
            for user in users:
                if isinstance(user, ViewRows | DerivedRows) and own != user:
                    edges += [(f"arrangement:{name}", target) for target in self._targets(user)]
                elif isinstance(user, DerivedRows):
                    edges += [(f"arrangement:{name}", f"view:{view}") for view in self.plan.program.readers(user)]
        return edges

    def _starts(self) -> list[tuple[str, str]]:
        """Return the edges from the inputs of paths to what they change."""
        return [
            (owner, target)
            for path in self.dataflow.paths
            for owner in self._owners(path.start)
            for target in self._targets(path.view)
        ]

    def _is_covered(self, edge: tuple[str, str], edges: Iterable[tuple[str, str]]) -> bool:
        """Return whether an arrangement stands between the ends of an edge already."""
        after = {end for start, end in edges if start == edge[0] and end.startswith("arrangement:")}
        return any((middle, edge[1]) in edges for middle in after)

    def _targets(self, relation: RelationId) -> list[str]:
        """Return the nodes that a path to a relation changes: its view, its arrangements, or the views that read it."""
        if isinstance(relation, ViewRows):
            pending = [
                a.id
                for a in self.arrangements.values()
                if isinstance(a.relation, PendingRows) and a.relation.view == relation.view
            ]
            return [f"arrangement:{name}" for name in pending] or [f"view:{relation.view}"]
        kept = self.by_relation.get(relation, ())
        if kept:
            return [f"arrangement:{name}" for name in kept]
        return [f"view:{view}" for view in self.plan.program.readers(relation)]

    def _owners(self, relation: RelationId) -> list[str]:
        """Return the nodes from which the changes of a relation come."""
        made = _made_by(relation)
        if isinstance(made, ViewRows):
            return [f"view:{made.view}"]
        if isinstance(made, SideOutput):
            return [f"{self._owner_kind(made.owner)}:{made.owner}"]
        derived = self.plan.program.derived.get(made)
        if derived is None:
            return [f"source:{source_of(made)}"]
        kept = self.by_relation.get(made)
        if kept:
            return [f"arrangement:{name}" for name in kept]
        return [owner for block in derived.blocks for each in block.inputs for owner in self._owners(each.relation)]


def _made_by(relation: RelationId) -> RelationId:
    """Return the relation that an operation's own state belongs to; the relation itself for other arrangements."""
    return relation.of if isinstance(relation, OperationInput | StoredRows) else relation
