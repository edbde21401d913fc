"""Zones of timestamps: DuckDB and functions see timestamps without one; their types here say that they are UTC."""

from __future__ import annotations

import pyarrow as pa


def without_zones(table: pa.Table) -> pa.Table:
    """Return a table whose timestamps have no zone."""
    for index, field in enumerate(table.schema):
        kind = bare(field.type)
        if kind is not field.type:
            table = table.set_column(index, field.name, typed(table.column(index), kind))
    return table


def bare(kind: pa.DataType) -> pa.DataType:
    """The type without zones; the same object if it has none."""
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit)
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        item = bare(kind.value_type)
        return kind if item is kind.value_type else pa.list_(kind.value_field.with_type(item))
    if pa.types.is_map(kind):
        key, item = bare(kind.key_type), bare(kind.item_type)
        return kind if key is kind.key_type and item is kind.item_type else pa.map_(key, item)
    if pa.types.is_struct(kind):
        types = [bare(field.type) for field in kind]
        if all(new is field.type for new, field in zip(types, kind, strict=True)):
            return kind
        return pa.struct([field.with_type(new) for new, field in zip(types, kind, strict=True)])
    return kind


def in_zone(kind: pa.DataType, zone: str) -> pa.DataType:
    """The type with another zone wherever it has one; the same object if it has none."""
    if pa.types.is_timestamp(kind):
        return kind if kind.tz in (None, zone) else pa.timestamp(kind.unit, tz=zone)
    if pa.types.is_list(kind):
        item = in_zone(kind.value_type, zone)
        return kind if item is kind.value_type else pa.list_(kind.value_field.with_type(item))
    if pa.types.is_map(kind):
        key, item = in_zone(kind.key_type, zone), in_zone(kind.item_type, zone)
        return kind if key is kind.key_type and item is kind.item_type else pa.map_(key, item)
    if pa.types.is_struct(kind):
        types = [in_zone(field.type, zone) for field in kind]
        if all(new is field.type for new, field in zip(types, kind, strict=True)):
            return kind
        return pa.struct([field.with_type(new) for new, field in zip(types, kind, strict=True)])
    return kind


def schema_in_zone(schema: pa.Schema, zone: str) -> pa.Schema:
    """Return a schema whose timestamps are in a zone, by Arrow's name of it."""
    return pa.schema([field.with_type(in_zone(field.type, zone)) for field in schema])


def table_in_zone(table: pa.Table, zone: str) -> pa.Table:
    """Return a table whose timestamps say that they are shown in a zone, by Arrow's name of it; their values stay."""
    for index, field in enumerate(table.schema):
        kind = in_zone(field.type, zone)
        if kind is not field.type:
            table = table.set_column(index, field.name, typed(table.column(index), kind))
    return table


def typed(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast exactly. A zone is only a label, so adding or removing it copies nothing."""
    if values.type == kind:
        return values
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(values))])
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type) and kind.unit == values.type.unit:
        return pa.chunked_array([chunk.view(kind) for chunk in values.chunks], type=kind)
    return values.cast(kind)
