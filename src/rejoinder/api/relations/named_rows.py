"""What streams, tables and windowed tables have in common: rows of a query under a name."""

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
    """The rows of a query that are of a kind: what can be done with them depends on it.

    `item` stands in FROM: the name of a relation, or a query in parentheses. `name` is what expressions call it.
    """

    home: Home
    item: str
    name: str

    @property
    def query(self) -> str:
        """The SQL text."""
        return self.item[1:-1] if self.item.startswith("(") else f"SELECT * FROM {self.item}"

    def relation(self) -> Relation:
        """The same rows as a relation: every join of SQL, also as of a time, windows, groups and EMIT.

        What comes of it is a relation; as a view it can be read as a stream or a table again.
        """
        return Relation(self.name, self.item, home=self.home)

    def alias(self: Self, name: str) -> Self:
        """The same rows under another name, as a join with themselves needs."""
        return replace(self, name=name)

    def filter(self: Self, condition: str) -> Self:
        """The rows for which a SQL condition is true."""
        return self._of(f"SELECT * FROM {self._from} WHERE {condition}")

    @property
    def _from(self) -> str:
        return f"{self.item} AS {quoted(self.name)}"

    def _of(self: Self, query: str) -> Self:
        return replace(self, item=f"({query})")

    def _selected(self: Self, columns: tuple[str, ...], kept: tuple[str, ...]) -> Self:
        """Other columns; those in `kept` are what makes these rows what they are."""
        made = self._of(f"SELECT {', '.join(columns)} FROM {self._from}")
        for name in kept:
            made.column(name, f"{type(self).__name__} `{self.name}` is by it, and it has to be selected")
        return made

    def column(self, name: str, why: str = "") -> str:
        """The name of a column as it is declared. Raises `UnknownName`."""
        found = next((known for known in self.columns if known.lower() == name.lower()), None)
        if found is None:
            raise UnknownName(
                f"`{self.name}` has no column `{name}`",
                detail=f"{why + '; ' if why else ''}columns: {', '.join(self.columns)}",
                hint=near_misses(name, self.columns) or "take one of these",
            )
        return found

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
        """The rows with what a Python function answers about each; arguments as for `Relation.enrich`."""
        call = enrich_call(
            self.item, function, columns, concurrency=concurrency, timeout=timeout, retries=retries, batch=batch
        )
        return self._of(f"SELECT * FROM {call} AS {quoted(self.name)}")


def length_text(length: Length) -> str:
    """A length of time as SQL takes it; a number is one of the unit that the column counts in.

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
