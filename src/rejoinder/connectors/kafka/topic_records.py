"""Decode records of a topic: Spark passes keys and values as bytes, which are decoded here column by column.

A chunk is decoded as a whole. If that fails, it is bisected until each malformed record is isolated. Malformed records
fail the epoch, or go to the rejected relation with topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.connectors.kafka.record_layout import REJECTED_RECORDS, Layout, layout_of
from rejoinder.errors import MalformedInput, SchemaChanged
from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.formats.avro.framed_records import decode_framed, frame_faults, is_framed, schemas_by_id
from rejoinder.formats.conform import conform
from rejoinder.formats.json.debezium import decode_debezium
from rejoinder.formats.json.json_lines import parse_values
from rejoinder.formats.record_checks import usable
from rejoinder.formats.time_text import timestamps
from rejoinder.formats.unreadable import Reason, Unreadable, plain_reason
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import DIFF, PARTITION, SEQUENCE, diffs, replaced, take, without

# Spark's columns of a record; also `headers`, if the source declares them.
KEY, VALUE, TIMESTAMP, OFFSET, NUMBER = "key", "value", "timestamp", "offset", "partition"
Columns = dict[str, pa.Array]
Decode = Callable[[pa.Table], pa.Table]


def read_records(topic: str, records: pa.Table, source: Source) -> Iterator[tuple[bool, pa.Table]]:
    """Yield (True, rows) and, if the source diverts malformed records, (False, rejected records).

    A record without a value deletes its key in a table, and is a row of NULLs in a stream. It means nothing in a
    changelog, where it only lets the broker compact the topic, nor after an envelope with the delete.
    """
    layout = layout_of(source)
    has_value = records.column(VALUE).is_valid()
    malformed: list[tuple[pa.Table, str]] = []
    read = _enveloped_rows if source.is_enveloped else _rows
    valued = records.filter(has_value)
    if valued.num_rows and is_framed(source.options) and _value_fields(source, layout):
        valued = _framed(valued, source, malformed)
    for table in _bisect(valued, lambda part: read(part, source, layout), malformed):
        yield True, table
    without_value = records.filter(pc.invert(has_value))
    if without_value.num_rows and source.kind == "table" and (layout.key or not source.is_enveloped):
        for table in _bisect(without_value, lambda part: _rows_without_value(part, source, layout), malformed):
            yield True, replaced(table, DIFF, np.full(table.num_rows, -1, np.int64))
    elif source.kind == "stream":
        for table in _bisect(without_value, lambda part: _rows_without_value(part, source, layout), malformed):
            yield True, table
    if malformed and not source.diverts:
        raise _malformed(topic, *malformed[0], source)
    if malformed:
        yield False, _rejected(topic, malformed)


def _bisect(records: pa.Table, decode: Decode, malformed: list[tuple[pa.Table, str]]) -> Iterator[pa.Table]:
    """Yield the decoded records; append malformed ones, with the reason, to `malformed`."""
    if not records.num_rows:
        return
    try:
        yield decode(records)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        if records.num_rows == 1:
            malformed.append((records, Reason.of(failure)))
            return
        half = records.num_rows // 2
        yield from _bisect(records.slice(0, half), decode, malformed)
        yield from _bisect(records.slice(half), decode, malformed)


def _framed(records: pa.Table, source: Source, malformed: list[tuple[pa.Table, str]]) -> pa.Table:
    """Leave out records without a declared schema. There may be many of them in a row, too many to halve for each."""
    faults = frame_faults(_single(records, VALUE), schemas_by_id(source.options))
    malformed.extend((records.slice(position, 1), reason) for position, reason in faults.items())
    return take(records, np.delete(np.arange(records.num_rows), list(faults))) if faults else records


def _value_fields(source: Source, layout: Layout) -> list[pa.Field]:
    """Return the columns that are decoded from the value, including op or diff."""
    fields = [source.schema.field(name) for name in layout.value]
    mark = source.diff or source.op
    if mark is not None and mark not in source.schema.names:
        fields.append(pa.field(mark, pa.int64() if source.diff else pa.string()))
    return fields


def _rows(records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    fields = _value_fields(source, layout)
    values = _decoded(_single(records, VALUE), layout.value_format, fields, source) if fields else {}
    return _completed(values, records, source, layout)


def _enveloped_rows(records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    """Return the rows of Debezium envelopes, with `__diff`. A record may have two rows."""
    fields = pa.schema([source.schema.field(name) for name in layout.value])
    decoded = decode_debezium(_single(records, VALUE).cast(pa.string()), source, fields)
    if decoded.malformed:
        reason = decoded.malformed[0][1]
        raise Unreadable(plain_reason(reason), reason if isinstance(reason, Reason) else "")
    table = _completed(_columns(without(decoded.rows, [DIFF])), take(records, decoded.record), source, layout)
    return replaced(table, DIFF, diffs(decoded.rows))


def _rows_without_value(records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    if source.kind == "table" and not layout.key:
        raise Unreadable("the record has no value, and no column is read from its key")
    values = {name: pa.nulls(records.num_rows, source.schema.field(name).type) for name in layout.value}
    return _completed(values, records, source, layout)


def _completed(values: Columns, records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    """Return rows with the declared columns, adding those from other parts of the record, the partition and offset."""
    columns = {**values, **(_keys(records, source, layout) if layout.key else {})}
    for part, name in layout.parts.items():
        columns[name] = _part(records, part, source.schema.field(name).type)
    try:
        table = conform(pa.table(columns), source.schema, "the record", source.name)
    except (SchemaChanged, MalformedInput) as misfit:
        raise Unreadable(f"{misfit.fact}: {misfit.detail}", misfit.values or "") from None
    mark = source.diff or source.op or ""
    for name, column in values.items():
        if name.lower() == mark.lower():
            table = table.append_column(mark, column)
    table = table.append_column(PARTITION, records.column(NUMBER))
    return usable(table if source.kind != "table" else table.append_column(SEQUENCE, records.column(OFFSET)), source)


def _keys(records: pa.Table, source: Source, layout: Layout) -> Columns:
    """Return the columns that are decoded from the key; NULL for records without a key."""
    keys = _single(records, KEY)
    fields = [source.schema.field(name) for name in layout.key]
    has_key = np.asarray(keys.is_valid())
    if not has_key.any():
        return {field.name: pa.nulls(len(keys), field.type) for field in fields}
    decoded = _decoded(keys.drop_null(), layout.key_format, fields, source)
    if has_key.all():
        return decoded
    positions = pa.array(np.cumsum(has_key) - 1, mask=~has_key)
    return {name: column.take(positions) for name, column in decoded.items()}


def _part(records: pa.Table, part: str, kind: pa.DataType) -> pa.Array:
    column = _single(records, part)
    if part == TIMESTAMP and pa.types.is_integer(kind):
        return pc.divide(column.cast(pa.int64()), 1000)
    return column


def _decoded(values: pa.Array, format_: str, fields: list[pa.Field], source: Source) -> Columns:
    """Decode bytes without NULL into columns. Raises `pa.ArrowInvalid` if one of them is malformed."""
    if format_ == "raw":
        return {fields[0].name: values}
    if format_ == "text":
        return {fields[0].name: _from_text(values.cast(pa.string()), fields[0].type)}
    if format_ == "avro":
        if is_framed(source.options):
            return _columns(decode_framed(values, schemas_by_id(source.options), fields))
        return _columns(decode_avro(values, source.options["avro_schema"]))
    return _columns(parse_values(values, pa.schema(fields)))


def _columns(table: pa.Table) -> Columns:
    return dict(zip(table.column_names, table.columns, strict=True))


def _from_text(text: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return timestamps(text, kind)
    return text if pa.types.is_string(kind) else text.cast(kind)


def _single(records: pa.Table, name: str) -> pa.Array:
    column = records.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _place(topic: str, record: pa.Table) -> tuple[str, int, int]:
    return topic, record.column(NUMBER)[0].as_py(), record.column(OFFSET)[0].as_py()


def _rejected(topic: str, malformed: list[tuple[pa.Table, str]]) -> pa.Table:
    """Return rows of the rejected relation. Loops over malformed records only."""
    rows = [(*_place(topic, record), _shown(record), reason) for record, reason in malformed]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), REJECTED_RECORDS, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=REJECTED_RECORDS)


def _shown(record: pa.Table) -> str:
    content = record.column(VALUE)[0].as_py() or record.column(KEY)[0].as_py() or b""
    return bytes(content).decode(errors="replace")


def _malformed(topic: str, record: pa.Table, reason: str, source: Source) -> MalformedInput:
    _, partition, offset = _place(topic, record)
    return MalformedInput(
        f"the record at offset {offset} of partition {partition} of topic `{topic}` cannot be read",
        detail=f"source `{source.name}`: {plain_reason(reason)}",
        values=reason if isinstance(reason, Reason) and reason != reason.plain else None,
        hint=f"set OPTIONS (malformed 'divert') to send such records to `{source.rejected}`, or start after it: "
        "OPTIONS (startingOffsets '…')",
    )
