"""The common part of streams, tables and windowed tables: the rows of a query with a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from rejoinder.api.relations.enrich_arguments import enrich_call
from rejoinder.api.relations.relation import Relation
from rejoinder.api.relations.selection import Home, Selection
from rejoinder.errors import InvalidSql, UnknownName, near_misses
from rejoinder.sql.statements.query_text import name_text as quoted

Length = str | int | timedelta
Self = TypeVar("Self", bound="Rows")


@dataclass(frozen=True)
class Rows(Selection):
    """The rows of a query of one kind, which determines the supported operations.

    `item` is the FROM item: the name of a relation, or a query in parentheses. `name` is its alias in expressions.
    """

    home: Home
    item: str
    name: str

    @property
    def query(self) -> str:
        """The SQL text."""
        return self.item[1:-1] if self.item.startswith("(") else f"SELECT * FROM {self.item}"

    def relation(self) -> Relation:
        """Return the same rows as a relation, with every join of SQL, also as of a time, windows, groups and EMIT.

        Its results are relations. As a view, a result can be read as a stream or a table again.
        """
        return Relation(self.name, self.item, home=self.home)

    def alias(self: Self, name: str) -> Self:
        """Return the same rows with another name, as a self-join needs."""
        return replace(self, name=name)

    def filter(self: Self, condition: str) -> Self:
        """Keep the rows for which a SQL condition is true."""
        return self._of(f"SELECT * FROM {self._from} WHERE {condition}")

    @property
    def _from(self) -> str:
        return f"{self.item} AS {quoted(self.name)}"

    def _of(self: Self, query: str) -> Self:
        return replace(self, item=f"({query})")

    def _selected(self: Self, columns: tuple[str, ...], kept: tuple[str, ...]) -> Self:
        """Select other columns. Raises `UnknownName` if a column in `kept` is not among them."""
        result = self._of(f"SELECT {', '.join(columns)} FROM {self._from}")
        for name in kept:
            result.column(name, f"it is part of the key of {type(self).__name__} `{self.name}`, and must be selected")
        return result

    def column(self, name: str, reason: str = "") -> str:
        """Return the name of a column as it is declared. Raises `UnknownName` with the reason why it is needed."""
        declared = next((column for column in self.columns if column.lower() == name.lower()), None)
        if declared is None:
            raise UnknownName(
                f"`{self.name}` has no column `{name}`",
                detail=f"{reason + '; ' if reason else ''}columns: {', '.join(self.columns)}",
                hint=near_misses(name, self.columns) or "use one of these",
            )
        return declared

    def enrich(
        self: Self,
        function: Callable[..., object] | str,
        *,
        columns: Mapping[str, str],
        concurrency: int = 16,
        timeout: float | None = None,
        retries: int = 0,
        batch: int | None = None,
    ) -> Self:
        """Add columns that a Python function computes for each row; arguments as for `Relation.enrich`."""
        call = enrich_call(
            self.item, function, columns, concurrency=concurrency, timeout=timeout, retries=retries, batch=batch
        )
        return self._of(f"SELECT * FROM {call} AS {quoted(self.name)}")


def length_text(length: Length) -> str:
    """Return a length of time as SQL text; a number is in the unit of the column. Raises `InvalidSql` if it is empty.

    >>> length_text("10 minutes"), length_text(timedelta(seconds=1.5)), length_text(3)
    ('INTERVAL 10 minutes', 'INTERVAL 1500000 MICROSECONDS', '3')
    """
    if isinstance(length, timedelta):
        return f"INTERVAL {length // timedelta(microseconds=1)} MICROSECONDS"
    text = str(length).strip()
    if not text:
        raise InvalidSql("a length of time is missing", hint='as in "10 minutes", or timedelta(minutes=10)')
    bare = text.lstrip("-")
    return text if bare.isdigit() or text.upper().startswith("INTERVAL") else f"INTERVAL {text}"
