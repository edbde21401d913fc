"""The common part of relations, streams and tables in Python: schema, plan, renderings, and definition as a view.

Every query becomes SQL text and is bound by the same binder, so its plan does not depend on how it was written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from rejoinder.connectors.sink_definition import check_against, declared_sink
from rejoinder.engine.definitions.definition_statements import has_same
from rejoinder.errors import InvalidSql
from rejoinder.ir.catalog import Catalog
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.statements.query_text import whole_relation
from rejoinder.sql.statements.statement_parser import CreateSink, CreateView

if TYPE_CHECKING:
    from rejoinder.api.relations.relation import Relation


class Home(Protocol):
    """Has definitions: a `Flow`, or a `rejoinder.testing.Driver`."""

    @property
    def catalog(self) -> Catalog:
        """All definitions."""
        ...

    def sql(self, text: str) -> Any:
        """Run statements."""
        ...


class Selection(ABC):
    """The rows that a SQL text selects. Immutable: methods return a new one. No state is kept until it is a view.

    `name` is the alias of the rows in expressions. `home` is None for a text that belongs to no flow.
    """

    name: str
    home: Home | None

    @property
    @abstractmethod
    def query(self) -> str:
        """The SQL text."""

    @abstractmethod
    def relation(self) -> Relation:
        """Return these rows as a relation, which has all kinds of joins, windows, groups and EMIT."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.query}>"

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        catalog, name = self._home.catalog, whole_relation(self.query)
        return bind(self.query, catalog).schema if name is None else readable(catalog, name).schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def explain(self) -> str:
        """Return the plan, as EXPLAIN does."""
        return str(self._home.sql(f"EXPLAIN {self.query}"))

    def table(self) -> Any:
        """Return the rows now, as SELECT TABLE does: a DataFrame, or from a test driver a list, which `str` prints."""
        return self._rendered("TABLE")

    def stream(self) -> Any:
        """Return the changes, as SELECT STREAM does: a DataFrame, or from a test driver a list, which `str` prints."""
        return self._rendered("STREAM")

    def tvr(self) -> Any:
        """Return the snapshots, as SELECT TVR does: a list, which `str` formats as tables."""
        return self._rendered("TVR")

    def _rendered(self, word: str) -> Any:
        query = self.query if self.query.startswith("SELECT ") else f"SELECT * FROM ({self.query})"
        return self._home.sql(f"SELECT {word} {query.removeprefix('SELECT ')}")

    @property
    def _home(self) -> Home:
        if self.home is None:
            raise InvalidSql(
                f"`{self.name or self.query}` belongs to no flow",
                detail="it is only text, so its names cannot be resolved",
                hint='Relation.of(flow, "orders"), or flow.relation("orders")',
            )
        return self.home

    def _define(self, name: str, form: str | None, options: Mapping[str, object]) -> None:
        """Create a view, and a sink of it if there is a format. Equal definitions that exist already stay.

        An invalid sink raises before the view is created.
        """
        if form is None and options:
            raise InvalidSql(
                f"`{name}` has options of a sink, and no format",
                detail=f"options: {', '.join(options)}",
                hint=f'name the format: .to("{name}", "kafka", …)',
            )
        home = self._home
        sink = None if form is None else declared_sink(name, form, None, options)
        if sink is not None:
            check_against(sink, self.schema)
        texts = []
        if not has_same(home.catalog, CreateView(name, self.query)):
            texts.append(f"CREATE VIEW {quoted(name)} AS {self.query}")
        if sink is not None and not has_same(home.catalog, CreateSink(sink)):
            listed = ", ".join(f"{option} {_text(value)}" for option, value in sink.options.items())
            words = f" OPTIONS ({listed})" if listed else ""
            texts.append(f"CREATE SINK {quoted(sink.name)} FROM {quoted(name)} USING {sink.format}{words}")
        if texts:
            home.sql(";\n".join(texts))


def refuse_other_home(left: Selection, right: Selection) -> None:
    """Raise `InvalidSql` if two sides belong to different flows, which have separate definitions."""
    if left.home is not right.home and left.home is not None and right.home is not None:
        raise InvalidSql(
            f"`{left.name}` and `{right.name}` belong to different flows",
            detail="names are resolved in one flow",
            hint="read both from one flow, or from one test driver",
        )


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
