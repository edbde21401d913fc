"""The two sides of a join: their key columns, further conditions, and the columns of the result.

The key of a join has the same type on both sides. By default, the result has all columns of the left side and the
columns of the right side that are not in the key. If both sides have a column name, the right one becomes
`<name>_<column>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.api.relations.named_rows import Rows
from rejoinder.api.relations.selection import refuse_other_home
from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.ir.logical import Query
from rejoinder.sql.bind.bind_query import bind
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
        """Return the pairing of `on`, or the default. Raises a `PlanningError` if the keys do not match."""
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
                f"the join of `{left.name}` and `{right.name}` has no key",
                detail="a join needs equal keys",
                hint='name the columns: on="column", or on={"expression of the left side": "column of the right"}',
            )
        pairing = cls(left, right, tuple((expression, right.column(name)) for expression, name in pairs))
        pairing._check_types()
        return pairing

    def _check_types(self) -> None:
        for (expression, name), kind in zip(self.pairs, self._left_types(), strict=True):
            right_kind = self.right.schema.field(name).type
            if kind != right_kind:
                raise TypeMismatch(
                    f"`{self.left.name}` and `{self.right.name}` have keys of different types",
                    detail=f"{expression} is {spark_name(kind)}, {self.right.name}.{name} is {spark_name(right_kind)}",
                    hint=f'CAST it: on={{"CAST({expression} AS {spark_name(right_kind)})": "{name}"}}',
                )

    def _left_types(self) -> list[pa.DataType]:
        types = {name.lower(): self.left.schema.field(name).type for name in self.left.columns}
        return [types.get(e.lower()) or self.bound(e).schema.field("value").type for e, _ in self.pairs]

    def bound(self, expression: str) -> Query:
        """Bind an expression over the left side, as the only column `value` of a query."""
        text = f"SELECT {expression} AS value FROM {self.left.item} AS {quoted(self.left.name)}"
        return bind(text, self.left.home.catalog)

    def joined(
        self, kind: str, *, select: Select = None, conditions: Sequence[str] = (), at_arrival: bool = False
    ) -> str:
        """Return the SQL text of the join, with further conditions."""
        left, right = self.names
        tests = [f"{self.of_left(expression)} = {right}.{quoted(name)}" for expression, name in self.pairs]
        tests += conditions
        columns = ", ".join(select if select is not None else self._columns(coalesced=kind == "FULL"))
        item, first = self.right.item, ""
        if at_arrival:
            if item.startswith("("):  # FOR SYSTEM_TIME needs a name
                name = quoted(self.right.name + AT_ARRIVAL)
                item, first = name, f"WITH {name} AS {item} "
            item += " FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"
        words = f"{kind} JOIN".strip()
        return (
            f"{first}SELECT {columns} FROM {self.left.item} AS {left} "
            f"{words} {item} AS {right} ON {' AND '.join(tests)}"
        )

    def of_left(self, expression: str) -> str:
        """Return an expression of the left side with qualified columns."""
        if expression.lower() in {name.lower() for name in self.left.columns}:
            return f"{self.names[0]}.{quoted(expression)}"
        return qualified(expression, self.left.name, self.left.columns)

    @property
    def names(self) -> tuple[str, str]:
        """The quoted names of both sides."""
        return quoted(self.left.name), quoted(self.right.name)

    def _columns(self, *, coalesced: bool) -> list[str]:
        """Return all columns; the key once, coalesced from both sides if `coalesced`."""
        left, right = self.names
        right_keys = {expression.lower(): name for expression, name in self.pairs}
        result = []
        for name in self.left.columns:
            text = f"{left}.{quoted(name)}"
            if coalesced and name.lower() in right_keys:
                text = f"COALESCE({text}, {right}.{quoted(right_keys[name.lower()])}) AS {quoted(name)}"
            result.append(text)
        left_names = {name.lower() for name in self.left.columns}
        dropped = {name.lower() for expression, name in self.pairs if coalesced or expression.lower() == name.lower()}
        for name in self.right.columns:
            if name.lower() in dropped:
                continue
            text = f"{right}.{quoted(name)}"
            if name.lower() in left_names:
                text += f" AS {quoted(f'{self.right.name}_{name}')}"
            result.append(text)
        return result


def refuse_one_sided(left: Rows, right: Rows, query: str, key: Sequence[str]) -> None:
    """Raise `InvalidSql` if an outer join takes its key from one side: rows of the other side would have no key.

    Columns of a bound query are named by their side, as in `3.id`.
    """
    outputs = {name.lower(): expression for name, expression in bind(query, left.home.catalog).outputs}
    for name in key:
        output = outputs.get(name.lower())
        if output is not None and len({column.partition(".")[0] for column in output.columns}) < 2:
            left_name, right_name, column = quoted(left.name), quoted(right.name), quoted(name)
            raise InvalidSql(
                f"result key `{name}` comes from only one side of the outer join",
                detail=f"`{name}` is {output.text}, which is NULL for rows that only the other side has",
                hint=f'select it from both sides: "COALESCE({left_name}.{column}, {right_name}.…) AS {column}"',
            )


def refuse_join(left: Rows, method: str, right: object, *supported: str) -> Unsupported:
    """Return the error for a combination of sides that a join method does not support."""
    names = {"Stream": "a stream", "Table": "a table", "WindowedTable": "a windowed table"}
    left_type, right_type = type(left).__name__, type(right).__name__
    return Unsupported(
        f"{method} of {names[left_type]} with {names.get(right_type, right_type)} is not supported",
        detail=f"{left_type} `{left.name}`.{method}({right_type})",
        hint=f"{_reason(left_type, right_type, supported)}; relation() has every join of SQL",
    )


def _reason(left_type: str, right_type: str, supported: Sequence[str]) -> str:
    if right_type not in ("Stream", "Table", "WindowedTable"):
        return "the other side is a Stream, a Table or a WindowedTable"
    if right_type == "Stream":
        return "rows of a stream arrive once: turn it into a table first, with to_table(key) or group_by(…)"
    if left_type == "Stream":
        return "rows of a stream are joined with a table at arrival, and always have a result: use left_join"
    return f"these two support {', '.join(supported)}"
