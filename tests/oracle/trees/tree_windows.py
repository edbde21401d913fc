"""Random window functions. Where a function depends on the order of rows, that order is total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracle.trees.syntax import Node, listed, sql
from tests.oracle.trees.tree_terms import LITERALS, Column, Dice, Scope, Terms

BY_ROW = {
    "integer": ("row_number()", "ntile(2)", "lag({0})", "lead({0}, 2)", "lag({0}, 1, -1)", "nth_value({0}, 2)"),
    "text": ("lag({0})", "lead({0}, 1, 'z')", "first_value({0})", "last_value({0})"),
    "date": ("lead({0})", "first_value({0})"),
}
BY_VALUE = {
    "integer": ("rank()", "dense_rank()", "sum({0})", "count({0})", "count(*)", "min({0})", "max({0})"),
    "ratio": ("percent_rank()", "cume_dist()"),
    "float": ("sum({0})", "min({0})", "max({0})"),
    "text": ("min({0})", "max({0})"),
    "date": ("max({0})",),
}
RANKS = ("row_number()", "rank()", "dense_rank()")
FRAMES = (
    "",
    "",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
FRAMED = ("sum(", "count(", "min(", "max(", "first_value(", "last_value(", "nth_value(")


@dataclass
class Windows:
    """Makes calls of window functions over the rows of a query."""

    dice: Dice
    terms: Terms

    def of_family(self, family: str, rows: Sequence[Column]) -> Node | None:
        """A call with a result of this family; None if no function has one. `rows` together order the rows in full."""
        is_by_row = self.dice.chance(0.5)
        templates = (BY_ROW if is_by_row else BY_VALUE).get(family)
        return self._call(self.dice.choice(templates), family, rows, is_total=is_by_row) if templates else None

    def rank(self, rows: Sequence[Column]) -> Node:
        """A rank, for QUALIFY."""
        template = self.dice.choice(RANKS)
        return self._call(template, "integer", rows, is_total=template == "row_number()")

    def _call(self, template: str, family: str, rows: Sequence[Column], *, is_total: bool) -> Node:
        frame = self.dice.choice(FRAMES) if template.startswith(FRAMED) else ""
        is_total = is_total or frame.startswith("ROWS")
        keys = [column for column in rows if column.family in LITERALS]
        partition = [self.dice.choice(keys).node for _ in range(self.dice.choice((0, 1, 1, 2)))]
        texts = [self.dice.choice(keys).node.text() for _ in range(self.dice.choice((1, 1, 2)))]
        texts += [text for column in rows if is_total and (text := column.node.text()) not in texts]
        # A shorter order would not be total any more, so it is plain text, which is never shrunk.
        order = sql(" ORDER BY " + ", ".join(f"{text} {self._direction()}" for text in texts))
        argument = self.terms.column(family, Scope(tuple(rows))) or self.terms.literal(family)
        call = f"{template} OVER ({{1}}{{2}} {frame})"
        return Node(call, (argument, listed(partition, prefix="PARTITION BY "), order), family)

    def _direction(self) -> str:
        return self.dice.choice(("NULLS FIRST", "NULLS FIRST", "NULLS LAST", "DESC NULLS LAST", "DESC NULLS FIRST"))
