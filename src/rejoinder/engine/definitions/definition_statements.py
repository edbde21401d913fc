"""Apply CREATE, ALTER and DROP statements to a catalog."""

from __future__ import annotations

from dataclasses import fields, replace

import pyarrow as pa

from rejoinder.connectors.registry import sink_side
from rejoinder.connectors.sink_definition import check_against
from rejoinder.engine.definitions.alter_hints import alter_hint
from rejoinder.engine.definitions.dependents import Defined, key_of, with_dependents, without
from rejoinder.engine.definitions.function_definitions import with_function, without_function
from rejoinder.engine.definitions.time_zone_definition import with_time_zone
from rejoinder.engine.status.watermark_status import delay_text
from rejoinder.errors import DefinitionConflict, InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Catalog, Index, Kind, Sink, Source, View
from rejoinder.ir.identities import owner_of
from rejoinder.ir.user_functions import UserFunction
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.secret_options import redacted
from rejoinder.sql.bind.bind_query import bind
from rejoinder.sql.bind.binder import Binder
from rejoinder.sql.bind.emit_clause import defers_emission
from rejoinder.sql.definitions.source_timing import TIMING
from rejoinder.sql.parse.clauses import refuse_duplicate_names, refuse_reserved
from rejoinder.sql.statements.alter_source import AlterSource
from rejoinder.sql.statements.function_statements import CreateFunction
from rejoinder.sql.statements.query_text import same_text
from rejoinder.sql.statements.statement_parser import (
    AlterView,
    CreateIndex,
    CreateSink,
    CreateSource,
    CreateView,
    Drop,
    DropKind,
    RenameView,
    SetTimeZone,
)
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.state.reading.renderings import CHANGE_COLUMNS

Creation = CreateSource | CreateView | CreateIndex | CreateSink | CreateFunction
Definition = Creation | AlterView | AlterSource | RenameView | Drop | SetTimeZone
_KINDS: dict[Kind, DropKind] = {"stream": "STREAM", "table": "TABLE", "changelog": "CHANGELOG"}


def defined(catalog: Catalog, statement: Definition) -> Catalog:
    """Return the catalog after a statement. Raises a `PlanningError`."""
    match statement:
        case CreateSource():
            return _with_source(catalog, statement)
        case CreateView():
            if statement.if_not_exists and catalog.find(statement.name) is not None:
                return catalog
            check_name(statement.name)
            query = bind(statement.query, catalog, names=statement.names, relation=statement.name)
            refuse_duplicate_names(query.schema.names, f"in view `{statement.name}`")
            refuse_reserved(query.schema.names, f"of `{statement.name}`", CHANGE_COLUMNS.names)
            text, options = statement.query.strip(), dict(statement.options)
            view = View(statement.name, text, query.schema, options, statement.names, statement.starting)
            return catalog.with_relation(view)
        case AlterView():
            return catalog.with_options(existing_view(catalog, statement.name).name, statement.options)
        case RenameView() | AlterSource():
            raise AssertionError("it also concerns the state: `Batch` applies it")
        case CreateIndex():
            return _with_index(catalog, statement)
        case CreateSink():
            return _with_sink(catalog, statement)
        case CreateFunction():
            return with_function(catalog, statement)
        case SetTimeZone():
            return with_time_zone(catalog, statement)
        case Drop():
            return _without(catalog, statement)


def is_defined(catalog: Catalog, statement: Definition) -> bool:
    """Return whether the catalog has the same definition, so that a file of definitions can be run repeatedly.

    Raises `DefinitionConflict` if the name has another definition, with or without IF NOT EXISTS.
    """
    if isinstance(statement, Drop | RenameView | AlterSource | SetTimeZone):
        return False
    if isinstance(statement, AlterView):
        return statement.options.items() <= existing_view(catalog, statement.name).options.items()
    known = find_defined(catalog, statement)
    if known is None:
        return False
    if says_same(known, statement):
        return True
    raise DefinitionConflict(
        f"`{known.name}` differs from the definition stored in this state",
        detail=f"stored: {_text(known)}; given: {_text(_as_defined(statement))}",
        hint=f"ALTER VIEW {known.name} SET OPTIONS (…) changes its options"
        if isinstance(known, View) and isinstance(statement, CreateView) and same_text(known.query, statement.query)
        else f"CREATE OR REPLACE VIEW {known.name} … changes it and keeps its state"
        if isinstance(known, View) and isinstance(statement, CreateView)
        else (isinstance(known, Source) and isinstance(statement, CreateSource) and alter_hint(known, statement.source))
        or "DROP it and create it again, or use another state directory",
    )


def find_defined(catalog: Catalog, statement: Creation) -> Defined | None:
    """Return the definition with the name that a statement creates; None if there is none."""
    match statement:
        case CreateIndex(name=name):
            return next((index for index in catalog.indexes if index.name.lower() == name.lower()), None)
        case CreateSink(sink=sink):
            return find_sink(catalog, sink.name)
        case CreateFunction(function=function):
            return catalog.function(function.name)
        case CreateSource(source=source):
            return catalog.find(source.name)
        case CreateView(name=name):
            return catalog.find(name)


def says_same(known: Defined, statement: Creation) -> bool:
    """Return whether a statement creates the known definition, up to white space and the case of words."""
    stored, given = _text(known), _text(_as_defined(statement))
    return stored == given or (isinstance(known, View) and same_text(stored, given))


def has_same(catalog: Catalog, statement: Creation) -> bool:
    """Return whether the catalog has the same definition; False if the name is free or has another one."""
    known = find_defined(catalog, statement)
    return known is not None and says_same(known, statement)


def statement_key(statement: Creation | AlterView | Drop) -> tuple[str, str]:
    """Return the namespace and the lower-case name of a statement's target; see `dependents.Key`."""
    match statement:
        case CreateSource(source=source):
            return ("relation", source.name.lower())
        case CreateSink(sink=sink):
            return ("sink", sink.name.lower())
        case CreateFunction(function=function):
            return ("function", function.name.lower())
        case CreateIndex(name=name):
            return ("index", name.lower())
        case Drop(what="SINK" | "INDEX" | "FUNCTION" as what, name=name):
            return (what.lower(), name.lower())
        case _:
            return ("relation", statement.name.lower())


def as_statement(known: Defined) -> Creation:
    """Return the statement that creates a definition."""
    match known:
        case Source():
            return CreateSource(known)
        case View():
            computed = ("schema", "reading")
            given = {field.name: getattr(known, field.name) for field in fields(known) if field.name not in computed}
            return CreateView(**given)
        case Index():
            return CreateIndex(known.name, known.relation, known.columns)
        case Sink():
            return CreateSink(known)
        case UserFunction():
            return CreateFunction(known)


def existing_view(catalog: Catalog, name: str) -> View:
    """Return the view of that name. Raises `UnknownName`, or `DefinitionConflict` if it is a source."""
    relation = catalog.get(name)
    if isinstance(relation, View):
        return relation
    raise DefinitionConflict(
        f"`{relation.name}` is a {relation.kind}, not a view",
        detail=f"ALTER VIEW {name}",
        hint="DROP it and CREATE it with other options",
    )


def _as_defined(statement: Creation) -> Defined:
    match statement:
        case CreateSink(sink=sink):
            return sink
        case CreateFunction(function=function):
            return function
        case CreateSource(source=source):
            return source
        case CreateView():
            schema, starting = pa.schema([]), statement.starting
            return View(statement.name, statement.query, schema, statement.options, statement.names, starting)
        case CreateIndex():
            return Index(statement.name, statement.relation, statement.columns)


def _text(known: Defined) -> str:
    """Return a definition as text, without its name."""
    match known:
        case Sink():
            listed = ", ".join(f"{name} '{value}'" for name, value in sorted(redacted(known.options).items()))
            return f"SINK FROM {known.view.lower()} USING {known.format} OPTIONS ({listed})"
        case View():
            listed = ", ".join(f"{name} '{value}'" for name, value in sorted(known.options.items()))
            names = f" ({', '.join(known.names)})" if known.names else ""
            starting = f" STARTING AT {known.starting}" if known.starting is not None else ""
            return f"VIEW{names}{f' OPTIONS ({listed})' if listed else ''}{starting} AS {known.query}"
        case Index():
            return f"INDEX ON {known.relation} ({', '.join(known.columns)})"
        case UserFunction():
            return known.text
        case Source():
            marks = {"order": known.order, "op": known.op, "diff": known.diff}
            options = {**redacted(known.options), **{name: value for name, value in marks.items() if value}}
            listed = ", ".join(f"{name} '{value}'" for name, value in sorted(options.items()))
            return f"{_declared(known)} USING {known.format} OPTIONS ({listed})"


def _declared(source: Source) -> str:
    """Return the kind, columns, key and watermarks of a source as text."""
    key = f", PRIMARY KEY ({', '.join(source.primary_key)})" if source.primary_key else ""
    for column, delay in source.watermarks.items():
        text = delay_text(delay, source.schema.field(column).type)
        key += f", WATERMARK {column}" + (f" DELAY OF {text}" if text is not None else "")
    return f"{source.kind.upper()} ({_columns(source)}{key})"


def check_name(name: str) -> None:
    """Raise `InvalidSql` for a name that is ambiguous, cannot be quoted in SQL, or cannot be shown in a message."""
    odd = any(ord(c) < 32 or c in "`\"'/\\.#" for c in name) or name != name.strip()
    if not name or len(name) > 128 or odd:
        raise InvalidSql(
            f"{name[:140]!r} is not a name for a relation",
            detail="a name has 1 to 128 characters: no quotes, slashes, dots, `#`, line breaks or spaces around it",
            hint="choose another name",
        )


def _with_source(catalog: Catalog, statement: CreateSource) -> Catalog:
    source = statement.source
    known = catalog.find(source.name)
    if statement.if_not_exists and isinstance(known, Source):
        stored, given = ((s.schema, s.kind, dict(s.watermarks), s.computed, _timing(s)) for s in (known, source))
        if stored != given:
            raise DefinitionConflict(
                f"`{source.name}` exists with other columns or watermarks, or of another kind",
                detail=f"stored: {_declared(known)}{_timing(known)}; given: {_declared(source)}{_timing(source)}",
                hint="DROP it first, or choose another name",
            )
        return catalog
    check_name(source.name)
    return catalog.with_relation(source)


def _timing(source: Source) -> str:
    """Return the options of a source about partitions, time and late rows as text."""
    options = [f"{option} '{source.options[option]}'" for option in (*TIMING, "late") if option in source.options]
    return f" OPTIONS ({', '.join(options)})" if options else ""


def _columns(source: Source) -> str:
    texts = dict(source.computed)
    return ", ".join(
        f"{field.name} AS {texts[field.name]}" if field.name in texts else f"{field.name} {spark_name(field.type)}"
        for field in source.schema
    )


def _with_index(catalog: Catalog, statement: CreateIndex) -> Catalog:
    relation = catalog.get(statement.relation)
    if isinstance(relation, View) and defers_emission(relation.query):
        raise Unsupported(
            f"an index on `{relation.name}`, which has an EMIT clause, is not supported",
            detail=f"{relation.name}: {relation.query}",
            hint="create the index on a relation that the view reads",
        )
    columns = []
    for name in statement.columns:
        column = next((n for n in relation.schema.names if n.lower() == name.lower()), None)
        if column is None:
            listed = ", ".join(relation.schema.names)
            raise UnknownName(
                f"`{relation.name}` has no column `{name}`",
                detail=f"columns: {listed}",
                hint=near_misses(name, relation.schema.names) or "an index is on columns, not on expressions",
            )
        columns.append(column)
    refuse_duplicate_names(columns, f"in index `{statement.name}`")
    if statement.if_not_exists and any(i.name.lower() == statement.name.lower() for i in catalog.indexes):
        return catalog
    check_name(statement.name)
    return catalog.with_index(Index(statement.name, relation.name, tuple(columns)))


def drop_statement(catalog: Catalog, name: str, *, cascade: bool = False) -> Drop:
    """Return the statement that drops a relation, sink or index of this name. Raises `UnknownName`."""
    sinks = [sink.name for sink in catalog.sinks]
    indexes = [index.name for index in catalog.indexes]
    relation = catalog.find(name)
    if relation is not None:
        return Drop("VIEW" if isinstance(relation, View) else _KINDS[relation.kind], relation.name, False, cascade)
    if name.lower() in [sink.lower() for sink in sinks]:
        return Drop("SINK", name, False, cascade)
    if name.lower() in [index.lower() for index in indexes]:
        return Drop("INDEX", name, False, cascade)
    known = [*(other.name for other in catalog.relations), *sinks, *indexes]
    raise UnknownName(
        f"there is no relation, sink or index `{name}`",
        detail=f"known: {', '.join(known) or 'none yet'}",
        hint=near_misses(name, known) or "SHOW TABLES, SHOW VIEWS and SHOW SINKS list them",
    )


def find_sink(catalog: Catalog, name: str) -> Sink | None:
    """Return the sink of that name; None if there is none."""
    return next((sink for sink in catalog.sinks if sink.name.lower() == name.lower()), None)


def _with_sink(catalog: Catalog, statement: CreateSink) -> Catalog:
    sink = statement.sink
    if statement.if_not_exists and find_sink(catalog, sink.name) is not None:
        return catalog
    check_name(sink.name)
    view = readable(catalog, sink.view)
    if isinstance(view, Source) and not view.is_internal:
        raise Unsupported(
            f"sink `{sink.name}` would read `{view.name}`, which is a source",
            detail="a sink takes the changes of a view",
            hint=f"CREATE VIEW … AS SELECT * FROM {view.name}, and a sink from that",
        )
    check_against(sink, view.schema)
    if isinstance(view, View) and not sink_side(sink).tells_changes(sink) and not Binder(catalog).is_stream(view.name):
        raise Unsupported(
            f"rows of `{view.name}` can be retracted, and the messages of sink `{sink.name}` would not show that",
            detail=f"{view.name}: {view.query}",
            hint="write them by key, mode 'upsert'; or as 'json' or 'avro' with `_diff` among the fields",
        )
    return catalog.with_sink(replace(sink, view=view.name))


def _without_sink(catalog: Catalog, statement: Drop) -> Catalog:
    known = [sink.name for sink in catalog.sinks]
    if find_sink(catalog, statement.name) is None and not statement.if_exists:
        raise UnknownName(
            f"there is no sink `{statement.name}`",
            detail=f"sinks: {', '.join(known) or 'none'}",
            hint=near_misses(statement.name, known) or "SHOW SINKS lists them",
        )
    return catalog.without_sink(statement.name)


def _without(catalog: Catalog, statement: Drop) -> Catalog:
    if statement.what == "SINK":
        return _without_sink(catalog, statement)
    if statement.what == "FUNCTION":
        return without_function(catalog, statement)
    if statement.what == "INDEX":
        known = [index.name for index in catalog.indexes]
        if statement.name.lower() not in [name.lower() for name in known]:
            if statement.if_exists:
                return catalog
            raise UnknownName(
                f"there is no index `{statement.name}`",
                detail=f"indexes: {', '.join(known) or 'none'}",
                hint=near_misses(statement.name, known) or "SHOW ARRANGEMENTS shows what is kept",
            )
        return catalog.without_index(statement.name)
    if statement.if_exists and catalog.find(statement.name) is None:
        return catalog
    relation = catalog.get(statement.name)
    kind = "VIEW" if isinstance(relation, View) else relation.kind.upper()
    what = kind if statement.what == "MAPPING" and kind != "VIEW" else statement.what
    if kind != what:
        raise DefinitionConflict(
            f"`{relation.name}` is a {kind.lower()}, not a {statement.what.lower()}",
            detail=f"DROP {statement.what} {statement.name}",
            hint=f"DROP {kind} {relation.name}",
        )
    if statement.cascade:
        return without(catalog, map(key_of, with_dependents(catalog, relation)))
    fed = [sink.name for sink in catalog.sinks if owner_of(sink.view) == relation.name]
    if fed:
        raise DefinitionConflict(
            f"`{relation.name}` is read by sink `{fed[0]}`",
            detail=f"sinks of `{relation.name}`: {', '.join(fed)}",
            hint=f"DROP SINK {fed[0]} first, or DROP {kind} {relation.name} CASCADE",
        )
    for reader in with_dependents(catalog, relation):
        if isinstance(reader, View) and reader is not relation:
            raise DefinitionConflict(
                f"`{relation.name}` is read by view `{reader.name}`",
                detail=f"{reader.name}: {reader.query}",
                hint=f"DROP VIEW {reader.name} first, or DROP {kind} {relation.name} CASCADE",
            )
    return catalog.without_relation(relation.name)
