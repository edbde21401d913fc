"""Random FROM clauses: joins of all kinds over relations, subqueries, VALUES, LATERAL and generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.oracle.trees.syntax import Node, listed, sql
from tests.oracle.trees.tree_terms import FAMILIES, LITERALS, Column, Dice, Scope, Terms

KINDS = {
    "JOIN": 6.0,
    "LEFT JOIN": 4.0,
    "RIGHT JOIN": 1.5,
    "FULL JOIN": 2.0,
    "LEFT SEMI JOIN": 1.5,
    "LEFT ANTI JOIN": 1.5,
    "CROSS JOIN": 0.7,
    ",": 1.5,
}
IN_DUCKDB = {"LEFT SEMI JOIN": "SEMI JOIN", "LEFT ANTI JOIN": "ANTI JOIN"}


@dataclass(frozen=True)
class Relation:
    """Something with a name: a source, a view, a WITH. Its columns and their families."""

    name: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """A query, and the families of its columns."""

    node: Node
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Input:
    """What stands in FROM, and what can be named of it."""

    node: Node
    columns: tuple[Column, ...]


class Queries(Protocol):
    """Makes queries of any form."""

    def query(self, families: Sequence[str] | None, outer: Sequence[Column], depth: int) -> Query:
        """A query; with columns of these families if they are given."""


@dataclass
class Inputs:
    """Makes FROM clauses."""

    dice: Dice
    terms: Terms
    queries: Queries
    known: list[Relation] = field(default_factory=list)

    def joined(self, outer: Sequence[Column], depth: int) -> Input:
        """One to three inputs, joined, and perhaps a generator."""
        result = self.single(outer, depth)
        count = self.dice.choices((0, 1, 2), (5, 4, 1))[0]
        for number in range(count):
            # A comma binds less than JOIN, so that the ON of a JOIN after it does not see what stands before it.
            kinds = KINDS if number == count - 1 else {kind: weight for kind, weight in KINDS.items() if kind != ","}
            result = self._join(self.dice.weighed(**kinds), result, tuple(outer), depth)
        if self.dice.chance(0.08):
            result = self._generated(result)
        return result

    def single(self, outer: Sequence[Column], depth: int) -> Input:
        """One input."""
        alias = self.dice.name("t")
        if depth > 0 and self.dice.chance(0.25):
            # Only LATERAL sees the other inputs; a subquery in FROM sees the queries around, which is not for DuckDB.
            return _aliased(self.queries.query(None, (), depth - 1), alias)
        if self.dice.chance(0.04):
            return self._values(alias)
        relation = self.dice.choice(self.known)
        return Input(sql(f"{relation.name} {alias}"), _columns(alias, relation.columns))

    def _join(self, kind: str, left: Input, outer: tuple[Column, ...], depth: int) -> Input:
        is_lateral = depth > 0 and kind in ("JOIN", "LEFT JOIN", ",") and self.dice.chance(0.15)
        if is_lateral:
            query = self.queries.query(None, (*outer, *left.columns), depth - 1)
            alias = self.dice.name("t")
            right = Input(Node(f"LATERAL ({{0}}) {alias}", (query.node,)), _columns(alias, query.columns))
        else:
            right = self.single(outer, depth)
        both = (*left.columns, *right.columns)
        columns = left.columns if kind in IN_DUCKDB else both
        if kind in ("CROSS JOIN", ","):
            template = "{0}, {1}" if kind == "," else "{0} CROSS JOIN {1}"
            return Input(Node(template, (left.node, right.node), "from"), columns)
        if is_lateral and self.dice.chance(0.6):
            on: Node = sql("TRUE")
        else:
            # DuckDB has no subqueries in the ON of a LATERAL.
            on = listed(self._conditions(left, right, 0 if is_lateral else depth), " AND ", least=1)
        words = (f"{{0}} {name} {{1}} ON {{2}}" for name in (kind, IN_DUCKDB.get(kind, kind)))
        return Input(Node(next(words), (left.node, right.node, on), "from", next(words)), columns)

    def _conditions(self, left: Input, right: Input, depth: int) -> list[Node]:
        """What links two inputs: mostly an equality; now and then other conditions, or those alone."""
        pairs = [(a, b) for a in left.columns for b in right.columns if a.family == b.family and a.family in LITERALS]
        result = []
        if pairs and self.dice.chance(0.9):
            for one, two in self.dice.sample(pairs, min(len(pairs), self.dice.choice((1, 1, 1, 2)))):
                sign = self.dice.choices(("=", "IS NOT DISTINCT FROM", "<", ">="), (12, 2, 1, 1))[0]
                result.append(Node(f"{{0}} {sign} {{1}}", (one.node, two.node), "truth"))
        if not result or self.dice.chance(0.25):
            # A subquery that reads both sides of a FULL JOIN is documented as not supported.
            scope = Scope((*left.columns, *right.columns), depth=min(depth, 1))
            result.append(self.terms.condition(scope))
        return result

    def _values(self, alias: str) -> Input:
        families = [self.dice.choice(FAMILIES) for _ in range(self.dice.randint(1, 3))]
        rows = [
            Node(f"({', '.join(f'{{{at}}}' for at in range(len(families)))})", tuple(map(self.terms.literal, families)))
            for _ in range(self.dice.randint(1, 4))
        ]
        names = {f"c{at}": family for at, family in enumerate(families)}
        node = Node(f"(VALUES {{0}}) {alias}({', '.join(names)})", (listed(rows, least=1),))
        return Input(node, _columns(alias, names))

    def _generated(self, base: Input) -> Input:
        """A generator over an array: a column, or made of columns."""
        dice, alias, name, place = self.dice, self.dice.name("g"), self.dice.name("e"), self.dice.name("p")
        arrays = [column.node for column in base.columns if column.family == "list"]
        if arrays and dice.chance(0.8):
            array = dice.choice(arrays)
        else:
            parts = tuple(self.terms.atom("integer", Scope(base.columns)) for _ in "12")
            array = Node("array({0}, {1})", parts, theirs="[{0}, {1}]")
        outer = dice.choice(("", "OUTER "))
        columns: tuple[Column, ...] = (Column(sql(f"{alias}.{name}"), "integer"),)
        made, listing, function = f"unnest({{1}}) AS {name}", name, "explode"
        if dice.chance(0.4):
            made = f"CAST(unnest(generate_series(0, len({{1}}) - 1)) AS INT) AS {place}, {made}"
            listing, function = f"{place}, {name}", "posexplode"
            columns = (Column(sql(f"{alias}.{place}"), "integer"), *columns)
        ours = f"{{0}} LATERAL VIEW {outer}{function}({{1}}) {alias} AS {listing}"
        theirs = f"{{0}} {'LEFT ' * bool(outer)}JOIN LATERAL (SELECT {made}) {alias} ON TRUE"
        return Input(Node(ours, (base.node, array), "", theirs), (*base.columns, *columns))


def _aliased(query: Query, alias: str) -> Input:
    return Input(Node(f"({{0}}) {alias}", (query.node,)), _columns(alias, query.columns))


def _columns(alias: str, columns: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(Node(f"{alias}.{name}", role=family), family) for name, family in columns.items())
