"""The catalog: sources, views, indexes and sinks of a flow, as immutable data that the manifest stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from rejoinder.errors import DefinitionConflict, UnknownName, near_misses
from rejoinder.ir.evolution.former_definition import FormerDefinition
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import RelationId, SideOutput, SourceRows, ViewRows
from rejoinder.ir.schema_text import schema_from_json, schema_to_json
from rejoinder.ir.source_reading import EVERYTHING, Reading
from rejoinder.ir.user_functions import UserFunction

Kind = Literal["stream", "table", "changelog"]
MOST_PARTITIONS = 10_000
REJECTED_SCHEMA = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("text", pa.string()), ("reason", pa.string())]
)

UTC = "UTC"
INTERNAL = "internal"
"""The format of relations that Rejoinder feeds itself: side outputs, replayed changes, inputs of the core API."""
LATE_SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("row", pa.string()),
        ("column", pa.string()),
        ("watermark", pa.string()),
        ("behind", pa.int64()),
        ("undo", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Source:
    """A source: where its rows are read from, and how a record changes the relation."""

    name: str
    kind: Kind
    schema: pa.Schema
    primary_key: tuple[str, ...] = ()
    order: str | None = None
    """For a table: the column by which the newest record of a key is chosen; None: by arrival."""
    op: str | None = None
    """The column that says whether a record inserts or deletes."""
    diff: str | None = None
    """The column with the diff of a record."""
    format: str = "memory"
    options: Mapping[str, str] = field(default_factory=dict)
    watermarks: Mapping[str, int | None] = field(default_factory=dict)
    """Event-time columns and their delays; None: only explicit watermarks."""
    mark_at: int | None = None
    """The position of the `op` or `diff` column among the declared columns; None if it is not declared."""
    computed: tuple[tuple[str, str], ...] = ()
    """Computed columns and their SQL text."""
    outputs: tuple[tuple[str, Expression], ...] = field(default=(), compare=False)
    """Computed columns and their bound expressions; empty until the flow is planned."""
    incomplete: bool = field(default=False, compare=False)
    """Whether rows that no view needed were dropped. Then other rows are not kept for later views either."""
    time_zone: str = field(default=UTC, compare=False)
    """The zone of texts without an offset: that of the flow. UTC until the flow is planned."""
    side_output: SideOutput | None = None
    """The side output that it stands for; None for a source that is defined."""
    history: tuple[FormerDefinition, ...] = ()
    """Its definitions before each ALTER, oldest first, by which older files are read again."""

    @property
    def recorded(self) -> Source:
        """Return the source without its computed columns."""
        names = {name for name, _ in self.computed}
        if not names:
            return self
        return replace(self, schema=pa.schema([f for f in self.schema if f.name not in names]), computed=(), outputs=())

    def with_columns(self, names: Collection[str]) -> Source:
        """Return the source with some of its columns."""
        return replace(self, schema=pa.schema([f for f in self.schema if f.name in names]))

    @property
    def relation(self) -> RelationId:
        """The relation with all its rows."""
        return self.side_output or SourceRows(self.name)

    @property
    def rejected(self) -> SideOutput:
        """The relation of the records that could not be read."""
        return SideOutput(self.name, "rejected")

    @property
    def is_internal(self) -> bool:
        """Return whether Rejoinder feeds it itself, without a connector."""
        return self.format == INTERNAL

    @property
    def is_enveloped(self) -> bool:
        """Return whether records are rows in Debezium's envelope."""
        return self.options.get("envelope") == "debezium"

    @property
    def changes(self) -> SideOutput:
        """The changelog of a source that keeps its changes."""
        return SideOutput(self.name, "changes")

    @property
    def partitions(self) -> int:
        """Return the declared number of partitions, which are numbered from 0; 0 if it is not declared."""
        return int(self.options.get("partitions", 0))

    @property
    def partition_by(self) -> str | None:
        """Return the column with the partition of a row."""
        return self.options.get("partition_by")

    @property
    def has_explicit_watermarks(self) -> bool:
        """Return whether it has an event-time column without a delay, whose watermark is always explicit."""
        return None in self.watermarks.values()

    @property
    def idle_after(self) -> int | None:
        """Return after how many milliseconds without rows a partition is idle; None: never."""
        return -(-int(self.options["idle_after"]) // 1000) if "idle_after" in self.options else None

    @property
    def max_ahead(self) -> int | None:
        """Return by how many microseconds an event time may be ahead of the clock; None: by any amount."""
        return int(self.options["max_ahead"]) if "max_ahead" in self.options else None

    @property
    def retains_all(self) -> bool:
        """Return whether all its rows are kept, even if no view needs them."""
        return self.options.get("retain") == "all"

    @property
    def retained(self) -> int | None:
        """Return how far behind the watermark rows are kept even if no view needs them, in the unit of event time."""
        text = self.options.get("retain")
        return None if text is None or text == "all" else int(text)

    @property
    def rejects(self) -> bool:
        """Return whether records can go to the rejected relation."""
        return self.diverts or self.max_ahead is not None

    @property
    def diverts(self) -> bool:
        """Return whether malformed records go to the rejected relation instead of failing the epoch."""
        return self.options.get("malformed", "fail") == "divert"


@dataclass(frozen=True)
class View:
    """A named query."""

    name: str
    query: str
    """Its text, bound again whenever the flow is planned."""
    schema: pa.Schema
    options: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """The column list of `CREATE VIEW v (a, b) AS …`."""
    starting: str | None = None
    """Its STARTING AT, from where incomplete sources are read; without it such a view is refused."""
    reading: Reading = EVERYTHING
    """How it reads its sources; decided when it is created."""

    @property
    def relation(self) -> ViewRows:
        """The relation with its rows."""
        return ViewRows(self.name)


@dataclass(frozen=True)
class Index:
    """An arrangement that the user created, kept even if no view uses it."""

    name: str
    relation: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Sink:
    """A sink: where the changes of a view are written. Secret options are references (`rejoinder.secret_options`)."""

    name: str
    view: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


Relation = Source | View


@dataclass(frozen=True)
class Catalog:
    """All definitions, in order of creation. Names are case-insensitive, as in Spark."""

    relations: tuple[Relation, ...] = ()
    indexes: tuple[Index, ...] = ()
    sinks: tuple[Sink, ...] = ()
    functions: tuple[UserFunction, ...] = ()
    time_zone: str = UTC
    """The zone in which a TIMESTAMP is shown, read and cast, under the name that DuckDB knows."""

    def find(self, name: str) -> Relation | None:
        """Return the relation of that name; None if there is none."""
        return next((r for r in self.relations if r.name.lower() == name.lower()), None)

    def get(self, name: str) -> Relation:
        """Return the relation of that name. Raises `UnknownName`, which lists near misses."""
        relation = self.find(name)
        if relation is None:
            names = [other.name for other in self.relations]
            raise UnknownName(
                f"there is no relation `{name}`",
                detail=f"known: {', '.join(names) or 'none yet'}",
                hint=near_misses(name, names) or "create it with CREATE STREAM, TABLE, CHANGELOG or VIEW",
            )
        return relation

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return the sources, in order of creation."""
        return tuple(r for r in self.relations if isinstance(r, Source))

    @property
    def views(self) -> tuple[View, ...]:
        """Return the views, in order of creation. A view comes after the relations that it reads."""
        return tuple(r for r in self.relations if isinstance(r, View))

    def with_relation(self, relation: Relation) -> Catalog:
        """Add a relation. Raises `DefinitionConflict` if the name is taken."""
        if self.find(relation.name) is not None:
            raise DefinitionConflict(
                f"`{relation.name}` is already defined",
                detail=f"relations: {', '.join(other.name for other in self.relations)}",
                hint="DROP it first, or choose another name",
            )
        return replace(self, relations=(*self.relations, relation))

    def with_options(self, name: str, options: Mapping[str, str]) -> Catalog:
        """Set options of a view; others keep their values."""
        view = self.get(name)
        return self.with_changed(replace(view, options={**view.options, **options}))

    def with_reading(self, name: str, reading: Reading) -> Catalog:
        """Set how a view reads its sources."""
        view = self.get(name)
        assert isinstance(view, View)
        return self.with_changed(replace(view, reading=reading))

    def with_changed(self, relation: Relation) -> Catalog:
        """Put a relation in the place of the one of its name."""
        return replace(self, relations=tuple(relation if r.name == relation.name else r for r in self.relations))

    def with_incomplete(self, name: str) -> Catalog:
        """Mark a source as incomplete."""
        source = self.get(name)
        assert isinstance(source, Source)
        return self.with_changed(replace(source, incomplete=True))

    def with_index(self, index: Index) -> Catalog:
        """Add an index. Raises `DefinitionConflict` if the name is taken."""
        _refuse_taken("index", index.name, self.indexes)
        return replace(self, indexes=(*self.indexes, index))

    def with_sink(self, sink: Sink) -> Catalog:
        """Add a sink. Raises `DefinitionConflict` if the name is taken."""
        _refuse_taken("sink", sink.name, self.sinks)
        return replace(self, sinks=(*self.sinks, sink))

    def with_function(self, function: UserFunction) -> Catalog:
        """Add a function. Raises `DefinitionConflict` if the name is taken."""
        if self.function(function.name) is not None:
            raise DefinitionConflict(
                f"function `{function.name}` is already defined",
                detail=f"functions: {', '.join(other.name for other in self.functions)}",
                hint="DROP FUNCTION it first, or choose another name",
            )
        return replace(self, functions=(*self.functions, function))

    def function(self, name: str) -> UserFunction | None:
        """Return the declared function of that name; None if there is none."""
        return next((function for function in self.functions if function.name.lower() == name.lower()), None)

    def without_relation(self, name: str) -> Catalog:
        """Remove a relation and its indexes."""
        kept = tuple(r for r in self.relations if r.name.lower() != name.lower())
        indexes = tuple(i for i in self.indexes if i.relation.lower() != name.lower())
        return replace(self, relations=kept, indexes=indexes)

    def without_index(self, name: str) -> Catalog:
        """Remove an index."""
        return replace(self, indexes=tuple(i for i in self.indexes if i.name.lower() != name.lower()))

    def without_sink(self, name: str) -> Catalog:
        """Remove a sink."""
        return replace(self, sinks=tuple(s for s in self.sinks if s.name.lower() != name.lower()))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {
            "relations": [_relation_to_json(r) for r in self.relations],
            "indexes": [{"name": i.name, "relation": i.relation, "columns": list(i.columns)} for i in self.indexes],
            "sinks": [
                {"name": s.name, "view": s.view, "format": s.format, "options": dict(s.options)} for s in self.sinks
            ],
            **({"functions": [function.to_json() for function in self.functions]} if self.functions else {}),
            **({"time_zone": self.time_zone} if self.time_zone != UTC else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Catalog:
        """Read what `to_json` returned."""
        indexes = tuple(Index(i["name"], i["relation"], tuple(i["columns"])) for i in data["indexes"])
        sinks = tuple(Sink(s["name"], s["view"], s["format"], dict(s["options"])) for s in data.get("sinks", ()))
        functions = tuple(map(UserFunction.from_json, data.get("functions", ())))
        relations = tuple(_relation_from_json(r) for r in data["relations"])
        return cls(relations, indexes, sinks, functions, data.get("time_zone", UTC))


def _refuse_taken(kind: str, name: str, existing: Sequence[Index | Sink]) -> None:
    names = [other.name for other in existing]
    if name.lower() in map(str.lower, names):
        raise DefinitionConflict(
            f"{kind} `{name}` is already defined",
            detail=f"defined: {', '.join(names)}",
            hint=f"DROP {kind.upper()} it first, or choose another name",
        )


def _relation_to_json(relation: Relation) -> dict[str, Any]:
    columns = schema_to_json(relation.schema)
    if isinstance(relation, View):
        rest: dict[str, Any] = {"options": dict(relation.options)} if relation.options else {}
        if relation.names:
            rest["names"] = list(relation.names)
        if relation.starting is not None:
            rest["starting"] = relation.starting
        if relation.reading != EVERYTHING:
            rest["reading"] = relation.reading.to_json()
        return {"view": relation.name, "query": relation.query, "columns": columns, **rest}
    return {
        "source": relation.name,
        "kind": relation.kind,
        "columns": columns,
        "primary_key": list(relation.primary_key),
        "order": relation.order,
        "op": relation.op,
        "diff": relation.diff,
        "format": relation.format,
        "options": dict(relation.options),
        "watermarks": dict(relation.watermarks),
        "mark_at": relation.mark_at,
        **({"computed": [list(pair) for pair in relation.computed]} if relation.computed else {}),
        **({"incomplete": True} if relation.incomplete else {}),
        **({"history": [former.to_json() for former in relation.history]} if relation.history else {}),
    }


def _relation_from_json(data: Mapping[str, Any]) -> Relation:
    schema = schema_from_json(data["columns"])
    if "view" in data:
        options, names = dict(data.get("options", {})), tuple(data.get("names", ()))
        reading = Reading.from_json(data["reading"]) if "reading" in data else EVERYTHING
        return View(data["view"], data["query"], schema, options, names, data.get("starting"), reading)
    return Source(
        data["source"],
        data["kind"],
        schema,
        tuple(data["primary_key"]),
        data["order"],
        data["op"],
        data["diff"],
        data["format"],
        dict(data["options"]),
        dict(data["watermarks"]),
        data.get("mark_at"),
        tuple((name, text) for name, text in data.get("computed", ())),
        incomplete=data.get("incomplete", False),
        history=tuple(map(FormerDefinition.from_json, data.get("history", ()))),
    )
