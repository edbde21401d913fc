"""What streams, tables and windowed tables have in common: rows of a query, under a name, of a flow or a test driver.

Everything here becomes SQL text and goes through the one binder, so that a plan is the same however it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rejoinder.api.enriching import enrich_call
from rejoinder.engine.definitions import is_defined
from rejoinder.errors import InvalidSql, UnknownName, near_misses
from rejoinder.plan.catalog import Catalog
from rejoinder.sql.binder import bind
from rejoinder.sql.sink_definition import check_against, make_sink
from rejoinder.sql.statements import CreateSink, CreateView
from rejoinder.sql.texts import name_text as quoted

Length = str | int | timedelta


class Home(Protocol):
    """Where definitions are: a `Flow`, or a `rejoinder.testing.Driver`."""

    @property
    def catalog(self) -> Catalog:
        """All definitions."""
        ...

    def sql(self, text: str) -> Any:
        """Run statements."""
        ...


Self = TypeVar("Self", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """The rows of a query. Immutable: every method gives a new one, and nothing is kept until it has a name.

    `item` stands in FROM: the name of a relation, or a query in parentheses. `name` is what expressions call it.
    """

    home: Home
    item: str
    name: str

    @property
    def query(self) -> str:
        """The SQL text."""
        return self.item[1:-1] if self.item.startswith("(") else f"SELECT * FROM {self.item}"

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return bind(self.query, self.home.catalog).schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def explain(self) -> str:
        """The plan, as EXPLAIN tells it."""
        return str(self.home.sql(f"EXPLAIN {self.query}"))

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

    def _define(self, name: str, form: str | None, options: Mapping[str, object]) -> None:
        """Make a view, and a sink of it if there is a format; what is there already in the same words stays.

        A sink that its definition alone rules out is refused before there is a view.
        """
        if form is None and options:
            raise InvalidSql(
                f"`{name}` has options of a sink, and no format",
                detail=f"options: {', '.join(options)}",
                hint=f'name the format: .to("{name}", "kafka", …)',
            )
        given = {option.rstrip("_"): str(value) for option, value in options.items()}
        sink = None if form is None else make_sink(f"{name}_{form}", name, form, given)
        if sink is not None:
            check_against(sink, self.schema)
            is_defined(self.home.catalog, CreateSink(sink, if_not_exists=True))
        if not is_defined(self.home.catalog, CreateView(name, self.query)):
            self.home.sql(f"CREATE VIEW {quoted(name)} AS {self.query}")
        if sink is not None:
            listed = ", ".join(f"{option} {_text(value)}" for option, value in given.items())
            words = f" OPTIONS ({listed})" if listed else ""
            text = f"CREATE SINK IF NOT EXISTS {quoted(sink.name)} FROM {quoted(name)} USING {sink.format}{words}"
            self.home.sql(text)


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


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
