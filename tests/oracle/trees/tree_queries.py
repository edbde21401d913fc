"""Random queries of every form: SELECT with all its clauses, set operations, WITH, PIVOT, UNPIVOT, first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.oracle.trees.syntax import NOTHING, Node, listed, optional, sql
from tests.oracle.trees.tree_groups import Grouping, Groups
from tests.oracle.trees.tree_inputs import Input, Inputs, Query, Relation
from tests.oracle.trees.tree_terms import FAMILIES, LITERALS, Column, Dice, Scope, Terms
from tests.oracle.trees.tree_windows import Windows

SET_OPERATIONS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


@dataclass
class Trees:
    """Makes query trees over known relations."""

    dice: Dice
    known: list[Relation]
    terms: Terms = field(init=False)
    inputs: Inputs = field(init=False)
    groups: Groups = field(init=False)
    windows: Windows = field(init=False)

    def __post_init__(self) -> None:
        self.terms = Terms(self.dice, self)
        self.inputs = Inputs(self.dice, self.terms, self, self.known)
        self.groups = Groups(self.dice, self.terms)
        self.windows = Windows(self.dice, self.terms)

    def query(self, families: Sequence[str] | None, outer: Sequence[Column], depth: int) -> Query:
        """A query of any form."""
        shape = self.dice.weighed(select=12, operation=3, named=1.5, first=2, pivot=0.5, unpivot=0.5)
        if depth <= 0 and shape != "first":
            shape = "select"
        match shape:
            case "operation":
                return self._operation(families, outer, depth)
            case "named" if not outer:
                return self._named(families, depth)
            case "first":
                return self._first_rows(self._select(families, outer, depth), self.dice.randint(1, 4))
            case "pivot" if families is None and not outer:
                return self._pivot(depth)
            case "unpivot" if families is None and not outer:
                return self._unpivot(depth)
            case _:
                return self._select(families, outer, depth)

    def of_rows(self, families: Sequence[str], outer: Sequence[Column], depth: int) -> Node:
        """A query in an expression."""
        return self.query(families, outer, depth).node

    def of_one_row(self, family: str, outer: Sequence[Column], depth: int) -> Node:
        """A scalar subquery: a total, or the first row."""
        if family == "list" or self.dice.chance(0.3):
            return self._first_rows(self._select([family], outer, depth), 1).node
        return self._select([family], outer, depth, style="total").node

    def _select(
        self, families: Sequence[str] | None, outer: Sequence[Column], depth: int, style: str | None = None
    ) -> Query:
        if families is None:
            families = [self.dice.choice(FAMILIES) for _ in range(self.dice.choice((1, 2, 2, 3, 4)))]
        source = self.inputs.joined(outer, depth)
        scope = Scope(source.columns, tuple(outer), depth=depth)
        where = [self.terms.condition(scope) for _ in range(self.dice.choice((0, 0, 1, 1, 2)))]
        if outer and self.dice.chance(0.7) and (link := self._link(source, outer)) is not None:
            where.append(link)
        style = style or self.dice.weighed(plain=5, grouped=3, total=0.7, windows=2)
        match style:
            case "grouped" | "total":
                return self._grouped(families, source, where, scope, is_total=style == "total")
            case "windows" if any(column.family in LITERALS for column in source.columns):
                return self._windowed(families, source, where, scope)
        values = [self.terms.value(family, scope) for family in families]
        distinct = optional(sql("DISTINCT ")) if self.dice.chance(0.15) else NOTHING
        return _made(families, distinct, values, source.node, where)

    def _link(self, source: Input, outer: Sequence[Column]) -> Node | None:
        """A condition that correlates; the nearest query most often."""
        pairs = [(a, b) for a in source.columns for b in outer if a.family == b.family and a.family in LITERALS]
        if not pairs:
            return None
        one, two = self.dice.choice(pairs[-6:] if self.dice.chance(0.6) else pairs)
        sign = self.dice.choices(("=", "<", "<>", "IS NOT DISTINCT FROM"), (12, 2, 1, 1))[0]
        return Node(f"{{0}} {sign} {{1}}", (one.node, two.node), "truth")

    def _grouped(
        self, families: Sequence[str], source: Input, where: list[Node], scope: Scope, *, is_total: bool
    ) -> Query:
        grouping = Grouping(NOTHING, ()) if is_total else self.groups.grouping(scope)
        aggregates = [Column(self.groups.of_family(family, scope), family) for family in families if family in LITERALS]
        aggregates.append(self.groups.aggregate(scope))
        inner = grouping.scope(aggregates, scope.outer, scope.depth)
        values = []
        for family, aggregate in zip(families, [*aggregates, *aggregates], strict=False):
            exact = [column.node for column in (*grouping.keys, aggregate) if column.family == family]
            if grouping.keys and not grouping.is_by_set and self.dice.chance(0.06):
                rows = (*grouping.keys, *aggregates)
                values.append(self.windows.of_family(family, rows) or self.terms.value(family, inner))
            else:
                is_exact = exact and self.dice.chance(0.7)
                values.append(self.dice.choice(exact) if is_exact else self.terms.value(family, inner))
        conditions = [self.terms.condition(inner)] if self.dice.chance(0.25) else []
        if is_total and not any(column.node.text() in value.text() for column in aggregates for value in values):
            values[0] = aggregates[0].node  # without an aggregate it is not a total, and can have many rows
        having: Node = listed(conditions, " AND ", prefix=" HAVING ")
        if grouping.is_by_set:
            # Over no rows Spark has no group () beside other sets, and DuckDB has one.
            rest = listed(conditions, " AND ", prefix=" AND ")
            having = Node(" HAVING TRUE{0}", (rest,), theirs=" HAVING count(*) > 0{0}")
        distinct = optional(sql("DISTINCT ")) if self.dice.chance(0.05) else NOTHING
        return _made(families, distinct, values, source.node, where, grouping.node, having)

    def _windowed(self, families: Sequence[str], source: Input, where: list[Node], scope: Scope) -> Query:
        """Window functions over the rows of FROM; all columns of FROM together order them in full."""
        rows = tuple(column for column in source.columns if column.family in LITERALS)
        inner = Scope(rows, scope.outer, depth=min(1, scope.depth))
        values = []
        for family in families:
            call = self.windows.of_family(family, rows) if self.dice.chance(0.7) else None
            values.append(call or self.terms.value(family, inner))
        qualify: Node = NOTHING
        if self.dice.chance(0.4):
            bound = f"{{0}} {self.dice.choice(('<=', '=', '<', '>'))} {self.dice.randint(1, 3)}"
            qualify = listed([Node(bound, (self.windows.rank(rows),), "truth")], prefix=" QUALIFY ")
        return _made(families, NOTHING, values, source.node, where, qualify=qualify)

    def _operation(self, families: Sequence[str] | None, outer: Sequence[Column], depth: int) -> Query:
        first = self.query(families, outer, depth - 1)
        second = self.query(list(first.columns.values()), outer, depth - 1)
        words = self.dice.choice(SET_OPERATIONS)
        names = ", ".join(f"{name} AS c{at}" for at, name in enumerate(first.columns))
        one, two = self.dice.name("u"), self.dice.name("u")
        text = f"(SELECT {names} FROM ({{0}}) {one}) {words} (SELECT * FROM ({{1}}) {two})"
        return _query(Node(text, (first.node, second.node)), list(first.columns.values()))

    def _named(self, families: Sequence[str] | None, depth: int) -> Query:
        """A query behind a WITH, which it may use any number of times."""
        named = self.query(None, (), depth - 1)
        name = self.dice.name("w")
        self.known.append(Relation(name, named.columns))
        self.known.append(Relation(name, named.columns))
        query = self.query(families, (), depth - 1)
        del self.known[-2:]
        return _query(
            Node(f"WITH {name} AS ({{0}}) SELECT * FROM ({{1}}) {self.dice.name('u')}", (named.node, query.node)),
            list(query.columns.values()),
        )

    def _first_rows(self, query: Query, count: int) -> Query:
        """ORDER BY all columns, so that only equal rows tie."""
        names = list(query.columns)
        self.dice.shuffle(names)
        order = ", ".join(
            f"{name} {self.dice.choice(('NULLS FIRST', 'DESC NULLS LAST', 'NULLS LAST'))}" for name in names
        )
        offset = f" OFFSET {self.dice.randint(0, 2)}" if self.dice.chance(0.3) else ""
        alias = self.dice.name("o")
        text = f"SELECT * FROM ({{0}}) {alias} ORDER BY {order} LIMIT {count}{offset}"
        return _query(Node(text, (query.node,)), list(query.columns.values()))

    def _pivot(self, depth: int) -> Query:
        """One column per listed value. DuckDB has other names and counts: there it is written out."""
        base = self.query(["integer", "integer", self.dice.choice(("text", "integer", "date"))], (), depth - 1)
        call = self.dice.choice(("sum(c1)", "count(c1)", "max(c1)"))
        values = (0, 1, 2)[: self.dice.randint(1, 3)]
        names = ", ".join(f"p{v} AS c{v + 1}" for v in values)
        wanted = ", ".join(f"{v} AS p{v}" for v in values)
        ours = f"SELECT c2 AS c0, {names} FROM ({{0}}) PIVOT ({call} FOR c0 IN ({wanted}))"
        cell = "CASE WHEN count(*) FILTER (WHERE c0 = {0}) > 0 THEN {1} FILTER (WHERE c0 = {0}) END AS c{2}"
        cells = ", ".join(cell.format(v, call, v + 1) for v in values)
        theirs = f"SELECT c2 AS c0, {cells} FROM (SELECT * FROM ({{0}}) q) q2 GROUP BY c2"
        families = [base.columns["c2"], *("integer" for _ in values)]
        return _query(Node(ours, (base.node,), "", theirs), families)

    def _unpivot(self, depth: int) -> Query:
        """One row per listed column."""
        base = self.query(["text", "integer", "integer"], (), depth - 1)
        nulls = self.dice.chance(0.5)
        words = "INCLUDE NULLS " if nulls else ""
        ours = f"SELECT c0, n AS c1, v AS c2 FROM ({{0}}) UNPIVOT {words}(v FOR n IN (c1, c2 AS second))"
        keep = "" if nulls else " WHERE {} IS NOT NULL"
        arms = [
            f"SELECT c0, '{label}' AS c1, {name} AS c2 FROM q{keep.format(name)}"
            for name, label in (("c1", "c1"), ("c2", "second"))
        ]
        theirs = f"SELECT * FROM (WITH q AS ({{0}}) {' UNION ALL '.join(arms)}) z"
        return _query(Node(ours, (base.node,), "", theirs), ["text", "text", "integer"])


def _made(
    families: Sequence[str],
    distinct: Node,
    values: Sequence[Node],
    source: Node,
    where: Sequence[Node],
    group: Node = NOTHING,
    having: Node = NOTHING,
    qualify: Node = NOTHING,
) -> Query:
    outputs = listed([Node(f"{{0}} AS c{at}", (value,)) for at, value in enumerate(values)], least=1)
    parts = (distinct, outputs, source, listed(where, " AND ", prefix=" WHERE "), group, having, qualify)
    return _query(Node("SELECT {0}{1} FROM {2}{3}{4}{5}{6}", parts), families)


def _query(node: Node, families: Sequence[str]) -> Query:
    columns: Mapping[str, str] = {f"c{at}": family for at, family in enumerate(families)}
    return Query(Node(node.template, node.parts, f"query {','.join(families)}", node.theirs), columns)
