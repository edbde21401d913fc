"""Random values and conditions, in SQL whose answer does not depend on the dialect.

Integers stay small (`% 5`), so that they meet, and so that no sum overflows. Doubles are multiples of 0.25, so that
the order of a sum does not matter; a quotient (`ratio`) is only compared, never added.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tests.oracle.trees.syntax import Node, listed, sql

TYPES = {
    "integer": "BIGINT",
    "text": "STRING",
    "float": "DOUBLE",
    "ratio": "DOUBLE",
    "date": "DATE",
    "truth": "BOOLEAN",
    "list": "ARRAY<INT>",
}
LITERALS = {
    "integer": ("0", "1", "2", "3", "-1"),
    "text": ("''", "'a'", "'b'", "'ab'"),
    "float": tuple(f"CAST({text} AS DOUBLE)" for text in ("0.5", "-1.5", "2", "0.25")),
    "ratio": ("CAST(0.5 AS DOUBLE)", "CAST(2 AS DOUBLE)"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'", "DATE '2024-03-01'"),
    "truth": ("TRUE", "FALSE"),
}
FAMILIES = ("integer", "integer", "integer", "text", "text", "float", "date", "truth")
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=")


class Dice(random.Random):
    """Random choices, and names that are used once."""

    names = 0

    def name(self, letter: str) -> str:
        """A new name."""
        self.names += 1
        return f"{letter}{self.names}"

    def chance(self, likelihood: float) -> bool:
        """True so often."""
        return self.random() < likelihood

    def weighed(self, **weights: float) -> str:
        """One of the words, by weight."""
        return self.choices(list(weights), list(weights.values()))[0]


@dataclass(frozen=True)
class Column:
    """A value that can be named in an expression."""

    node: Node
    family: str


@dataclass(frozen=True)
class Scope:
    """What an expression can use: own columns, those of outer queries, and own ones that subqueries can use.

    `depth` is how much deeper expressions and subqueries may nest.
    """

    own: tuple[Column, ...]
    outer: tuple[Column, ...] = ()
    shared: tuple[Column, ...] | None = None
    depth: int = 2

    @property
    def for_subquery(self) -> tuple[Column, ...]:
        """The outer columns of a subquery that stands here; the nearest come last."""
        return (*self.outer, *(self.own if self.shared is None else self.shared))

    def deeper(self) -> Scope:
        """The same, one level down."""
        return replace(self, depth=self.depth - 1)


class Subqueries(Protocol):
    """Makes the queries that stand in expressions."""

    def of_one_row(self, family: str, outer: Sequence[Column], depth: int) -> Node:
        """A query with at most one row, of one column."""

    def of_rows(self, families: Sequence[str], outer: Sequence[Column], depth: int) -> Node:
        """A query with columns of these families."""


@dataclass
class Terms:
    """Makes expressions."""

    dice: Dice
    subqueries: Subqueries

    def column(self, family: str, scope: Scope) -> Node | None:
        """A column of a family; now and then one of an outer query."""
        own = [column.node for column in scope.own if column.family == family]
        outer = [column.node for column in scope.outer if column.family == family]
        if outer and (not own or self.dice.chance(0.25)):
            return self.dice.choice(outer)
        return self.dice.choice(own) if own else None

    def literal(self, family: str) -> Node:
        """A constant, or NULL."""
        if family not in LITERALS or self.dice.chance(0.1):
            null = f"CAST(NULL AS {TYPES[family]})"
            return Node(null, role=family, theirs=null.replace("ARRAY<INT>", "INTEGER[]"))
        return Node(self.dice.choice(LITERALS[family]), role=family)

    def atom(self, family: str, scope: Scope) -> Node:
        """A column, or a constant if there is none."""
        return self.column(family, scope) or self.literal(family)

    def value(self, family: str, scope: Scope) -> Node:
        """An expression of a family."""
        dice = self.dice
        if scope.depth <= 0 or dice.chance(0.65):
            return self.literal(family) if dice.chance(0.1) else self.atom(family, scope)
        inner = scope.deeper()
        shape = dice.weighed(own=4, coalesce=1, case=2, subquery=3)
        if shape == "subquery":
            return self._made("({0})", family, self.subqueries.of_one_row(family, scope.for_subquery, inner.depth))
        if shape == "case":
            parts = (self.condition(inner), self.value(family, inner), self.value(family, inner))
            return self._made("CASE WHEN {0} THEN {1} ELSE {2} END", family, *parts)
        if shape == "coalesce":
            return self._made("COALESCE({0}, {1})", family, self.value(family, inner), self.atom(family, inner))
        return self._own(family, inner)

    def _own(self, family: str, scope: Scope) -> Node:
        """An operation of the family itself."""
        dice = self.dice
        match family:
            case "truth":
                return self.condition(scope)
            case "integer":
                shape = dice.randrange(6)
                if shape == 0:
                    return self._made("length({0})", family, self.value("text", scope))
                if shape == 1:
                    node = Node("({0} DIV 2)", (self.value(family, scope),), family, "({0} // 2)")
                    return replace(node, smaller=_smaller(family))
                if shape == 2:
                    return self._made("CAST({0} AS INT)", family, self.value("truth", scope))
                if shape == 3:
                    word = dice.choice(("greatest", "least", "nullif"))
                    return self._made(f"{word}({{0}}, {{1}})", family, *self._two(family, scope))
                sign = dice.choice("+-*")
                return self._made(f"(({{0}} {sign} {{1}}) % 5)", family, *self._two(family, scope))
            case "text":
                if dice.chance(0.5):
                    return self._made("upper({0})", family, self.value(family, scope))
                return self._made("substr({0} || {1}, 1, 2)", family, *self._two(family, scope))
            case "float":
                return self._made(f"({{0}} {dice.choice('+-')} {{1}})", family, *self._two(family, scope))
            case "date":
                return self._made("CAST({0} + INTERVAL 1 DAY AS DATE)", family, self.value(family, scope))
            case _:
                return self.atom(family, scope)

    def condition(self, scope: Scope) -> Node:
        """A predicate; NULL where SQL says so."""
        dice = self.dice
        inner = scope.deeper()
        shapes = {"compare": 8.0, "null": 1.0, "listed": 1.0, "between": 1.0, "distinct": 1.0, "like": 0.5}
        if scope.depth > 0:
            shapes |= {"both": 1.5, "either": 2.0, "negated": 1.0, "exists": 1.5, "inside": 1.5, "quantified": 1.0}
        family = dice.choice([column.family for column in scope.own] or FAMILIES)
        family = family if family in LITERALS else "integer"
        match dice.weighed(**shapes):
            case "null":
                return self._made(f"{{0}} IS {dice.choice(('', 'NOT '))}NULL", "truth", self.value(family, inner))
            case "listed":
                constants = listed([self.literal(family) for _ in range(dice.randint(1, 3))], least=1)
                return self._made(f"{{0}} {self._maybe_not()}IN ({{1}})", "truth", self.value(family, inner), constants)
            case "between":
                return self._made(
                    "{0} BETWEEN {1} AND {2}",
                    "truth",
                    self.value(family, inner),
                    *(self.atom(family, inner) for _ in "12"),
                )
            case "distinct":
                word = dice.choice(("", "NOT "))
                return self._made(f"({{0}} IS {word}DISTINCT FROM {{1}})", "truth", *self._two(family, inner))
            case "like":
                pattern = sql(dice.choice(("'a%'", "'%b'", "'_'", "'%'")))
                return self._made(f"{{0}} {self._maybe_not()}LIKE {{1}}", "truth", self.value("text", inner), pattern)
            case "both":
                return self._made("({0} AND {1})", "truth", self.condition(inner), self.condition(inner))
            case "either":
                return self._made("({0} OR {1})", "truth", self.condition(inner), self.condition(inner))
            case "negated":
                return self._made("(NOT {0})", "truth", self.condition(inner))
            case "exists":
                families = [dice.choice(FAMILIES)]
                rows = self.subqueries.of_rows(families, scope.for_subquery, inner.depth)
                return self._made(f"{self._maybe_not()}EXISTS ({{0}})", "truth", rows)
            case "inside":
                return self._inside(family, scope, inner)
            case "quantified":
                rows = self.subqueries.of_rows([family], scope.for_subquery, inner.depth)
                words = f"{dice.choice(COMPARISONS)} {dice.choice(('ANY', 'ALL'))}"
                return self._made(f"({{0}} {words} ({{1}}))", "truth", self.value(family, inner), rows)
            case _:
                return self.comparison(family, inner)

    def _inside(self, family: str, scope: Scope, inner: Scope) -> Node:
        """[NOT] IN (subquery), of one column or two."""
        if self.dice.chance(0.85):
            rows = self.subqueries.of_rows([family], scope.for_subquery, inner.depth)
            return self._made(f"({{0}} {self._maybe_not()}IN ({{1}}))", "truth", self.value(family, inner), rows)
        second = self.dice.choice(FAMILIES)
        rows = self.subqueries.of_rows([family, second], (), inner.depth)  # DuckDB does not correlate pairs
        pair = (self.atom(family, inner), self.atom(second, inner))
        return self._made(f"(({{0}}, {{1}}) {self._maybe_not()}IN ({{2}}))", "truth", *pair, rows)

    def comparison(self, family: str, scope: Scope) -> Node:
        """Two values compared."""
        return self._made(f"({{0}} {self.dice.choice(COMPARISONS)} {{1}})", "truth", *self._two(family, scope))

    def _two(self, family: str, scope: Scope) -> tuple[Node, Node]:
        """Two values; a column beside itself is rarely interesting."""
        first, second = self.value(family, scope), self.value(family, scope)
        return first, self.literal(family) if first == second else second

    def _maybe_not(self) -> str:
        return self.dice.choice(("", "NOT "))

    def _made(self, template: str, family: str, *parts: Node) -> Node:
        return Node(template, parts, family, smaller=_smaller(family))


def _smaller(family: str) -> tuple[str, ...]:
    return LITERALS.get(family, ())[:2]
