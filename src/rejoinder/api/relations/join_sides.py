"""How two sides are joined: by which columns, under which further conditions, and with which columns in the result.

The key of a join has the same type on both sides. Where no columns are named, the result has all of the left side, and
of the right side those that are not the key; of two columns with one name the right one is called `<name>_<column>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.api.relations.named_rows import Rows
from rejoinder.api.relations.selection import refuse_other_home
from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.ir.logical import Query
from rejoinder.sql.bind.binder import bind
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.statements.query_text import qualified
from rejoinder.sql.types.spark_types import spark_name

On = str | Sequence[str] | Mapping[str, str]
"""Columns that both sides have, or {expression of the left side: column of the right side}."""

Select = Sequence[str] | None

AT_ARRIVAL = "#arrival"


@dataclass(frozen=True)
class Pairing:
    """A left and a right side, and pairs of an expression of the left one and a column of the right one."""

    left: Rows
    right: Rows
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, left: Rows, right: Rows, on: On | None, default: Sequence[tuple[str, str]] = ()) -> Pairing:
        """The pairing that `on` says, or the default. Raises a `PlanningError` for keys that do not fit together."""
        refuse_other_home(left, right)
        if left.name.lower() == right.name.lower():
            raise InvalidSql(
                f"both sides of the join are called `{left.name}`",
                detail="expressions could not tell their columns apart",
                hint=f'give one of them another name: .alias("other_{right.name}")',
            )
        if on is None:
            pairs = list(default)
        elif isinstance(on, Mapping):
            pairs = list(on.items())
        else:
            pairs = [(name, name) for name in ([on] if isinstance(on, str) else on)]
        if not pairs:
            raise InvalidSql(
                f"`{left.name}` and `{right.name}` are joined by nothing",
                detail="a join is one on equal keys",
                hint='name the columns: on="column", or on={"expression of the left side": "column of the right"}',
            )
        made = cls(left, right, tuple((expression, right.column(name)) for expression, name in pairs))
        made._check_types()
        return made

    def _check_types(self) -> None:
        for (expression, name), kind in zip(self.pairs, self._left_types(), strict=True):
            there = self.right.schema.field(name).type
            if kind != there:
                raise TypeMismatch(
                    f"`{self.left.name}` and `{self.right.name}` have keys of different types",
                    detail=f"{expression} is {spark_name(kind)}, {self.right.name}.{name} is {spark_name(there)}",
                    hint=f'CAST it: on={{"CAST({expression} AS {spark_name(there)})": "{name}"}}',
                )

    def _left_types(self) -> list[pa.DataType]:
        known = {name.lower(): self.left.schema.field(name).type for name in self.left.columns}
        return [known.get(e.lower()) or self.bound(e).schema.field("value").type for e, _ in self.pairs]

    def bound(self, expression: str) -> Query:
        """An expression over the left side as the one column, `value`, of a query."""
        text = f"SELECT {expression} AS value FROM {self.left.item} AS {quoted(self.left.name)}"
        return bind(text, self.left.home.catalog)

    def joined(
        self, kind: str, *, select: Select = None, conditions: Sequence[str] = (), at_arrival: bool = False
    ) -> str:
        """The text of the join, under further conditions."""
        left, right = self.names
        tests = [f"{self.of_left(expression)} = {right}.{quoted(name)}" for expression, name in self.pairs]
        tests += conditions
        columns = ", ".join(select if select is not None else self._columns(coalesced=kind == "FULL"))
        item, first = self.right.item, ""
        if at_arrival:
            if item.startswith("("):  # only a name can be read as of a time
                name = quoted(self.right.name + AT_ARRIVAL)
                item, first = name, f"WITH {name} AS {item} "
            item += " FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
        words = f"{kind} JOIN".strip()
        return (
            f"{first}SELECT {columns} FROM {self.left.item} AS {left} "
            f"{words} {item} AS {right} ON {' AND '.join(tests)}"
        )

    def of_left(self, expression: str) -> str:
        """An expression of the left side as the join says it."""
        known = {name.lower() for name in self.left.columns}
        if expression.lower() in known:
            return f"{self.names[0]}.{quoted(expression)}"
        return qualified(expression, self.left.name, self.left.columns)

    @property
    def names(self) -> tuple[str, str]:
        """What the join calls the sides."""
        return quoted(self.left.name), quoted(self.right.name)

    def _columns(self, *, coalesced: bool) -> list[str]:
        """All columns; the key once, from whichever side has it."""
        left, right = self.names
        theirs = {expression.lower(): name for expression, name in self.pairs}
        result = []
        for name in self.left.columns:
            text = f"{left}.{quoted(name)}"
            if coalesced and name.lower() in theirs:
                text = f"COALESCE({text}, {right}.{quoted(theirs[name.lower()])}) AS {quoted(name)}"
            result.append(text)
        ours = {name.lower() for name in self.left.columns}
        dropped = {name.lower() for expression, name in self.pairs if coalesced or expression.lower() == name.lower()}
        for name in self.right.columns:
            if name.lower() in dropped:
                continue
            text = f"{right}.{quoted(name)}"
            if name.lower() in ours:
                text += f" AS {quoted(f'{self.right.name}_{name}')}"
            result.append(text)
        return result


def refuse_one_sided(left: Rows, right: Rows, query: str, key: Sequence[str]) -> None:
    """Refuse an outer join that takes the key from one side: rows that only the other side has would have none.

    Columns of a bound query are called by their side, as in `3.id`.
    """
    outputs = {name.lower(): expression for name, expression in bind(query, left.home.catalog).outputs}
    for name in key:
        found = outputs.get(name.lower())
        if found is not None and len({column.partition(".")[0] for column in found.columns}) < 2:
            here, there = quoted(left.name), quoted(right.name)
            raise InvalidSql(
                f"`{name}`, by which the result is, comes from one side of the outer join",
                detail=f"`{name}` is {found.text}, which is NULL for rows that the other side alone has",
                hint=f'select it from whichever has it: "COALESCE({here}.{quoted(name)}, {there}.…) AS {quoted(name)}"',
            )


def refuse_join(left: Rows, method: str, right: object, *offered: str) -> Unsupported:
    """The error for a join that the matrix of joins does not have."""
    names = {"Stream": "a stream", "Table": "a table", "WindowedTable": "a windowed table"}
    here, there = type(left).__name__, type(right).__name__
    return Unsupported(
        f"{method} of {names[here]} with {names.get(there, there)} is not supported",
        detail=f"{here} `{left.name}`.{method}({there})",
        hint=f"{_reason(here, there, offered)}; relation() has every join of SQL",
    )


def _reason(here: str, there: str, offered: Sequence[str]) -> str:
    if there not in ("Stream", "Table", "WindowedTable"):
        return "the other side is a Stream, a Table or a WindowedTable"
    if there == "Stream":
        return "rows of a stream come once: turn it into a table first, with to_table(key) or group_by(…)"
    if here == "Stream":
        return "rows of a stream meet a table when they come, and are never without a result: use left_join"
    return f"between these two there is {', '.join(offered)}"
