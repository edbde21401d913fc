"""Random GROUP BY: expressions, ROLLUP, CUBE and GROUPING SETS, totals; and the aggregates that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.trees.syntax import NOTHING, Node, listed, sql
from tests.oracle.trees.tree_terms import LITERALS, Column, Dice, Scope, Terms

OF_INTEGER = ("count({0})", "count(DISTINCT {0})", "sum({0})", "sum(DISTINCT {0})", "min({0})", "max({0})")
OF_OTHERS = {"truth": ("bool_and({0})", "bool_or({0})"), "float": ("sum({0})", "min({0})", "max({0})")}


@dataclass(frozen=True)
class Grouping:
    """GROUP BY, what can be selected beside aggregates, and HAVING for DuckDB alone."""

    node: Node
    keys: tuple[Column, ...]
    is_by_set: bool = False

    def scope(self, aggregates: Sequence[Column], outer: Sequence[Column], depth: int) -> Scope:
        """What SELECT and HAVING can use. A subquery can name keys that are columns, but no aggregate."""
        plain = tuple(key for key in self.keys if not key.node.parts)
        return Scope((*self.keys, *aggregates), tuple(outer), plain, depth)


@dataclass
class Groups:
    """Makes groups and aggregates."""

    dice: Dice
    terms: Terms

    def grouping(self, scope: Scope) -> Grouping:
        """One to three keys, in one set or several."""
        dice = self.dice
        columns = [column for column in scope.own if column.family in LITERALS]
        if not columns:
            return Grouping(NOTHING, ())
        keys = dice.sample(columns, min(len(columns), dice.choice((1, 1, 2, 2, 3))))
        if dice.chance(0.25):
            return Grouping(self._sets(keys), tuple(keys), is_by_set=True)
        if dice.chance(0.25):
            family = dice.choice(("integer", "text"))
            made = self.terms.value(family, Scope(scope.own, depth=min(scope.depth, 1)))
            if made.parts:
                keys = [*keys[1:], Column(made, family)]
        return Grouping(listed([key.node for key in keys], prefix=" GROUP BY ", least=len(keys)), tuple(keys))

    def _sets(self, keys: Sequence[Column]) -> Node:
        texts = [key.node.text() for key in keys]
        match self.dice.weighed(rollup=2, cube=1, sets=2, beside=1):
            case "rollup":
                return sql(f" GROUP BY ROLLUP({', '.join(texts)})")
            case "cube":
                return sql(f" GROUP BY CUBE({', '.join(texts)})")
            case "beside" if len(texts) > 1:
                return sql(f" GROUP BY {texts[0]}, ROLLUP({', '.join(texts[1:])})")
            case _:
                sets = [self.dice.sample(texts, self.dice.randint(0, len(texts))) for _ in range(2)]
                together = ", ".join(f"({', '.join(names)})" for names in (texts, *sets))
                return sql(f" GROUP BY GROUPING SETS ({together})")

    def aggregate(self, scope: Scope) -> Column:
        """An aggregate of a random family."""
        family = self.dice.weighed(integer=6, text=2, float=2, date=1, truth=1, ratio=1)
        return Column(self.of_family(family, scope), family)

    def of_family(self, family: str, scope: Scope) -> Node:
        """An aggregate with a result of this family. Its argument has own columns, or else it is of the outer query."""
        dice = self.dice
        inner = Scope(scope.own, depth=min(scope.depth, 1))
        if family == "integer":
            template = dice.choice(OF_INTEGER)
            if dice.chance(0.3):
                call = sql("count(*)")
            elif template.startswith("count") and (other := dice.choice(scope.own)).family in LITERALS:
                call = Node(template, (other.node,))
            else:
                call = Node(template, (self._argument(family, scope, inner),))
        elif family == "ratio":
            call = Node("avg({0})", (self._argument("integer", scope, inner),))
        else:
            template = dice.choice((*OF_OTHERS.get(family, ()), *(("min({0})", "max({0})") * (family != "truth"))))
            call = Node(template, (self._argument(family, scope, inner),))
        if dice.chance(0.12):
            call = Node("{0} FILTER (WHERE {1})", (call, self.terms.condition(Scope(scope.own, depth=0))))
        return Node("{0}", (call,), family)

    def _argument(self, family: str, scope: Scope, inner: Scope) -> Node:
        if family == "integer" and scope.outer and self.dice.chance(0.2):
            own = self.terms.column(family, Scope(scope.own))
            other = self.terms.column(family, Scope(scope.outer))
            if own is not None and other is not None:
                return Node("(({0} + {1}) % 5)", (own, other))
        return self.terms.value(family, inner)
