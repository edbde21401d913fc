"""ALTER STREAM, TABLE or CHANGELOG on a source: its new definition, and what happens to rows of the past.

Rows that were read keep their values. An added column is NULL in them, or its DEFAULT; a wider type has the same
values; a dropped column loses its values, which the statement must allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.connectors.files.options import CSV_OPTIONS
from rejoinder.errors import DefinitionConflict, InvalidSql, RejoinderError, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Catalog, Source, View
from rejoinder.ir.evolution.column_changes import ColumnChange, added, cast, changed_schema, new_names
from rejoinder.ir.evolution.former_definition import with_former
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.sql.bind.computed_columns import constant_value, reads_columns
from rejoinder.sql.bind.watermark_delay import delay_of
from rejoinder.sql.definitions.source_definition import checked_source, with_new_options
from rejoinder.sql.statements.alter_source import (
    Action,
    AddColumn,
    AlterSource,
    DropColumn,
    RenameColumn,
    SetDelay,
    SetSourceOptions,
    WidenColumn,
)
from rejoinder.sql.types.spark_types import spark_name

_ORDERED_WIDTHS = ((pa.int8(), pa.int16(), pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


@dataclass(frozen=True)
class FilesRead:
    """The identity of a source that is read, and the number of files that it has read."""

    identity: str
    files: int


@dataclass(frozen=True)
class Alteration:
    """A source after ALTER, and what that does to the columns of its rows."""

    source: Source
    changes: tuple[ColumnChange, ...] = ()


def existing_source(catalog: Catalog, statement: AlterSource) -> Source:
    """Return the source that a statement alters. Raises `UnknownName`, or `DefinitionConflict` for another kind."""
    relation = catalog.get(statement.name)
    if isinstance(relation, View):
        raise DefinitionConflict(
            f"`{relation.name}` is a view, not a source",
            detail=f"ALTER {(statement.kind or 'source').upper()} {statement.name}",
            hint=f"ALTER VIEW {relation.name} AS … changes it",
        )
    if statement.kind is not None and relation.kind != statement.kind:
        raise DefinitionConflict(
            f"`{relation.name}` is a {relation.kind}, not a {statement.kind}",
            detail=f"ALTER {statement.kind.upper()} {statement.name}",
            hint=f"ALTER {relation.kind.upper()} {relation.name} …",
        )
    return relation


def alteration(source: Source, statement: AlterSource, zone: str, read: FilesRead | None) -> Alteration:
    """Return what a statement does to a source. `read` is what it has read; None: no row yet.

    Raises a `PlanningError` if the definition would be wrong, or if values would be lost without a word that allows it.
    """
    result = _applied(source, statement.action, zone, is_fed=read is not None)
    if result.source == source:
        return Alteration(source)
    new = checked_source(result.source)
    is_read_otherwise = bool(result.changes) or _parsing(new.options) != _parsing(source.options)
    if read is not None and is_read_otherwise:
        new = with_former(new, source, read.identity, read.files, result.changes)
    return replace(result, source=new)


def _applied(source: Source, action: Action, zone: str, *, is_fed: bool) -> Alteration:
    match action:
        case AddColumn():
            return _with_column(source, action, zone)
        case DropColumn():
            return _without_column(source, action, is_fed=is_fed)
        case RenameColumn():
            return _with_name(source, action)
        case WidenColumn():
            return _with_type(source, action)
        case SetDelay(column=column, delay=delay):
            return Alteration(_with_delay(source, column, delay))
        case SetSourceOptions(options=options):
            return Alteration(with_new_options(source, options))


def _parsing(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those that only say where and how fast records are read."""
    return {name: value for name, value in options.items() if name in (*CSV_OPTIONS, "malformed")}


def _with_column(source: Source, action: AddColumn, zone: str) -> Alteration:
    if action.column.lower() in map(str.lower, source.schema.names):
        raise DefinitionConflict(
            f"`{source.name}` has a column `{action.column}` already",
            detail=_listed(source),
            hint=f"choose another name; ALTER COLUMN {action.column} TYPE … widens its type",
        )
    value = pa.nulls(1, action.type)
    if action.default is not None:
        expression = constant_value(source.name, action.column, action.default, action.type, zone)
        try:
            rows = project(pa.table({"": [0]}), [(action.column, expression)])
            value = rows.column(0).combine_chunks().cast(action.type)
        except (RejoinderError, pa.ArrowException) as failure:
            raise InvalidSql(
                f"the default of column `{action.column}` is not a value of its type",
                detail=f"DEFAULT {action.default}, and the column is of type {spark_name(action.type)}",
                hint="write a constant of that type",
            ) from failure
    changes = (added(action.column, value if isinstance(value, pa.Array) else value.combine_chunks()),)
    return Alteration(replace(source, schema=changed_schema(source.schema, changes)), changes)


def _without_column(source: Source, action: DropColumn, *, is_fed: bool) -> Alteration:
    column = _column(source, action.column)
    if column in dict(source.computed):
        is_fed = False
    users = {
        "its primary key": source.primary_key,
        "`order`": (source.order,),
        "a watermark": tuple(source.watermarks),
        "`partition_by`": (source.partition_by,),
    }
    used = next((name for name, columns in users.items() if column in columns), None)
    used = used or next((f"`{name}`, which is computed," for name in reads_columns(source, column)), None)
    if used is not None:
        raise Unsupported(
            f"column `{column}` of `{source.name}` cannot be dropped: {used} needs it",
            detail=_listed(source),
            hint="create another source, and replace the views that read this one",
        )
    if is_fed and not action.is_purged:
        raise DefinitionConflict(
            f"dropping column `{column}` of `{source.name}` would lose its values in the rows that were read",
            detail=_listed(source),
            hint=f"ALTER {source.kind.upper()} {source.name} DROP COLUMN {column} PURGE allows that",
        )
    changes = (ColumnChange("drop", column),)
    computed = tuple((name, text) for name, text in source.computed if name != column)
    recorded = list(source.recorded.schema.names)
    mark_at = source.mark_at
    if mark_at is not None and column in recorded and recorded.index(column) < mark_at:
        mark_at -= 1
    schema = changed_schema(source.schema, changes)
    return Alteration(replace(source, schema=schema, computed=computed, mark_at=mark_at), changes)


def _with_name(source: Source, action: RenameColumn) -> Alteration:
    column, new = _column(source, action.column), action.new_name
    taken = next((name for name in source.schema.names if name.lower() == new.lower() and name != column), None)
    if taken is not None:
        raise DefinitionConflict(
            f"`{source.name}` has a column `{taken}` already", detail=_listed(source), hint="choose another name"
        )
    reader = next(reads_columns(source, column), None)
    if reader is not None:
        raise Unsupported(
            f"column `{column}` of `{source.name}` cannot be renamed: `{reader}` is computed from it",
            detail=_listed(source),
            hint="rename it in a view: SELECT … AS …",
        )
    changes = (ColumnChange("rename", column, new),)
    names = new_names(changes, source.schema.names)
    options = {**source.options}
    if source.partition_by is not None:
        options["partition_by"] = names[source.partition_by]
    renamed = replace(
        source,
        schema=changed_schema(source.schema, changes),
        primary_key=tuple(names[name] for name in source.primary_key),
        order=None if source.order is None else names[source.order],
        watermarks={names[name]: delay for name, delay in source.watermarks.items()},
        computed=tuple((names[name], text) for name, text in source.computed),
        options=options,
    )
    return Alteration(renamed, changes)


def _with_type(source: Source, action: WidenColumn) -> Alteration:
    column = _column(source, action.column)
    old = source.schema.field(column).type
    if column in dict(source.computed):
        raise Unsupported(
            f"column `{column}` of `{source.name}` is computed: its type follows from its expression",
            detail=_listed(source),
            hint="CAST it in a view",
        )
    if old == action.type:
        return Alteration(source)
    if not is_wider(old, action.type):
        raise Unsupported(
            f"the type of column `{column}` of `{source.name}` cannot become {spark_name(action.type)}",
            detail=f"it is {spark_name(old)}, and rows of the past must keep their values",
            hint="wider types: TINYINT, SMALLINT, INT, BIGINT; FLOAT, DOUBLE; more digits of a DECIMAL before the "
            "point. Otherwise CAST in a view",
        )
    changes = (cast(column, action.type),)
    return Alteration(replace(source, schema=changed_schema(source.schema, changes)), changes)


def is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a type has all values of another one, with the same hashes.

    >>> is_wider(pa.int32(), pa.int64()), is_wider(pa.int64(), pa.int32())
    (True, False)
    """
    if pa.types.is_decimal128(old) and pa.types.is_decimal128(new):
        return bool(new.scale == old.scale and new.precision > old.precision)
    widths = next((widths for widths in _ORDERED_WIDTHS if old in widths), ())
    return new in widths and widths.index(new) > widths.index(old)


def _with_delay(source: Source, wanted: str, text: str) -> Source:
    column = next((name for name in source.watermarks if name.lower() == wanted.lower()), None)
    if column is None:
        raise UnknownName(
            f"`{source.name}` has no watermark of `{wanted}`",
            detail=f"event-time columns: {', '.join(source.watermarks) or 'none'}",
            hint=near_misses(wanted, source.watermarks) or "create another source for another event time",
        )
    delay = delay_of(source.name, column, source.schema, text)
    if (delay is None) != (source.watermarks[column] is None):
        raise Unsupported(
            f"the watermark of `{source.name}`.`{column}` cannot become {'explicit' if delay is None else 'automatic'}",
            detail=f"SET WATERMARK {wanted}{f' DELAY OF {text}' if text else ''}",
            hint="give another delay, or create another source",
        )
    return replace(source, watermarks={**source.watermarks, column: delay})


def _column(source: Source, wanted: str) -> str:
    name: str | None = next((name for name in source.schema.names if name.lower() == wanted.lower()), None)
    if name is None:
        raise UnknownName(
            f"`{source.name}` has no column `{wanted}`",
            detail=_listed(source),
            hint=near_misses(wanted, source.schema.names) or "name one of these",
        )
    return name


def _listed(source: Source) -> str:
    return f"columns: {', '.join(f'{field.name} {spark_name(field.type)}' for field in source.schema)}"
