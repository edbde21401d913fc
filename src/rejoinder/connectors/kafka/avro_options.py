"""Avro schemas in options, checked: their ids, and fields that fit the columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from rejoinder.connectors.kafka.record_layout import Layout
from rejoinder.errors import InvalidSql, TypeMismatch, UnknownName, near_misses
from rejoinder.formats.avro.avro_reader import fields_of
from rejoinder.formats.avro.framed_records import FURTHER, SCHEMA, SCHEMA_ID, is_framed
from rejoinder.formats.related_types import is_related
from rejoinder.ir.catalog import Source
from rejoinder.ir.type_names import spark_name

_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")


def check_schema_id(owner: str, option: str, text: str) -> None:
    """Raise `InvalidSql` for a text that is not an id of a schema registry. `owner` is the source or sink."""
    if not _NUMBER.fullmatch(text) or int(text) >= 1 << 31:
        raise InvalidSql(
            f"option `{option}` of {owner} has the schema id '{text}'",
            detail="the id is in the four bytes before each value, as schema registries write it",
            hint="use the number that the registry gave to the schema",
        )


def check_avro(source: Source, layout: Layout, columns: str) -> None:
    """Raise a `PlanningError` for schemas that cannot be used, do not fit the columns, or match no record."""
    schemas = {
        option: text for option, text in source.options.items() if option == SCHEMA or option.startswith(FURTHER)
    }
    if layout.value_format != "avro":
        _refuse_avro(source, layout)
        return
    if not schemas.get(SCHEMA):
        raise InvalidSql(
            f"the Avro values of `{source.name}` have no schema",
            detail="records do not carry theirs, and Rejoinder does not ask a schema registry",
            hint='add OPTIONS (avro_schema \'{"type": "record", …}\')',
        )
    _check_ids(source, list(schemas))
    fields = {option: _fields(source, option, text) for option, text in schemas.items()}
    for name, kind in _value_columns(source, layout).items():
        _check_column(source, name, kind, fields, columns)


def _refuse_avro(source: Source, layout: Layout) -> None:
    option = next((option for option in source.options if option.startswith("avro_")), None)
    if option is not None:
        raise InvalidSql(
            f"`{source.name}` has {option}, and its values are not Avro",
            detail=f"format '{layout.value_format}'",
            hint="add format 'avro', or leave it out",
        )


def _check_ids(source: Source, schemas: list[str]) -> None:
    """Raise `InvalidSql` unless each schema has its own id if the records have one, and none if they do not."""
    options = source.options
    listed = f"options: {', '.join(options)}"
    if not is_framed(options):
        option = next((option for option in options if option == SCHEMA_ID or option.startswith(FURTHER)), None)
        if option is not None:
            raise InvalidSql(
                f"`{source.name}` has {option}, and its values have no schema id",
                detail=listed,
                hint="add avro_framing 'confluent', or leave it out",
            )
        return
    if SCHEMA_ID not in options:
        raise InvalidSql(
            f"`{source.name}` has avro_framing 'confluent' and no {SCHEMA_ID}",
            detail="each value begins with the id of the schema that it was written with, which is checked",
            hint=f"add {SCHEMA_ID} '…', the number that the registry gave to {SCHEMA}",
        )
    check_schema_id(f"`{source.name}`", SCHEMA_ID, options[SCHEMA_ID])
    for option in schemas:
        if option != SCHEMA:
            check_schema_id(f"`{source.name}`", option, option.removeprefix(FURTHER))
    if f"{FURTHER}{options[SCHEMA_ID]}" in schemas:
        raise InvalidSql(
            f"`{source.name}` has two schemas of id {options[SCHEMA_ID]}",
            detail=f"{SCHEMA} has it by {SCHEMA_ID}; {listed}",
            hint=f"leave {FURTHER}{options[SCHEMA_ID]} out, or correct {SCHEMA_ID}",
        )


def _fields(source: Source, option: str, schema: str) -> Mapping[str, pa.Field]:
    """Return the fields of a schema by their names in lower case."""
    try:
        return {field.name.lower(): field for field in fields_of(schema)}
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise InvalidSql(
            f"the Avro schema of `{source.name}` cannot be used", detail=str(failure), hint=f"correct {option}"
        ) from failure


def _check_column(
    source: Source, name: str, kind: pa.DataType, schemas: Mapping[str, Mapping[str, pa.Field]], columns: str
) -> None:
    """Raise unless a column fits its field in every schema that has one. Only one of them needs all nested fields."""
    fields = {option: schema[name.lower()] for option, schema in schemas.items() if name.lower() in schema}
    if not fields:
        names = list(dict.fromkeys(field.name for schema in schemas.values() for field in schema.values()))
        raise UnknownName(
            f"the Avro schema of `{source.name}` has no field `{name}`",
            detail=f"fields: {', '.join(names)}; {columns}",
            hint=near_misses(name, names) or "declare the columns that the records have",
        )
    is_whole = any(is_related(field.type, kind) for field in fields.values())
    for option, field in fields.items():
        if not is_whole or not is_related(field.type, kind, may_lack_fields=True):
            raise TypeMismatch(
                f"the Avro field `{field.name}` does not fit column `{name}` of `{source.name}`",
                detail=f"declared {spark_name(kind)}, {_schema_name(option)} has {spark_name(field.type)}",
                hint="declare the type that the records have, and cast in the query",
            )


def _schema_name(option: str) -> str:
    return "the schema" if option == SCHEMA else option


def _value_columns(source: Source, layout: Layout) -> dict[str, pa.DataType]:
    """Return the columns that the value fills, including that of op or diff."""
    columns = {name: source.schema.field(name).type for name in layout.value}
    mark = source.diff or source.op
    return columns if mark is None else {**columns, mark: pa.int64() if source.diff else pa.string()}
