"""Records of a topic to Arrow: Spark hands over keys and values as bytes, which are decoded here column by column.

A chunk is decoded as a whole. Only if that fails it is halved, again and again, until the records at fault are alone:
they fail the epoch, or go to the rejected relation with topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import MalformedInput, SchemaChanged
from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.formats.avro.framed_records import decode_framed, frame_faults, is_framed, schemas_by_id
from rejoinder.formats.conform import conform
from rejoinder.formats.json.debezium import decode_debezium
from rejoinder.formats.json.json_lines import parse_values
from rejoinder.formats.record_checks import usable
from rejoinder.formats.time_text import timestamps
from rejoinder.formats.unreadable import Reason, Unreadable, plain_reason
from rejoinder.ir.catalog import REJECTED_RECORDS, Source
from rejoinder.ir.record_parts import Layout, layout_of
from rejoinder.kernels.arrow.columns import DIFF, PARTITION, SEQUENCE, diffs, replaced, take, without

# What Spark hands over of each record; headers only if they are asked for.
KEY, VALUE, TIMESTAMP, OFFSET, NUMBER, HEADERS = "key", "value", "timestamp", "offset", "partition", "headers"
Columns = dict[str, pa.Array]
Decode = Callable[[pa.Table], pa.Table]


def read_records(topic: str, records: pa.Table, source: Source) -> Iterator[tuple[bool, pa.Table]]:
    """Yield (True, rows) and, where the source diverts malformed records, (False, rejected records).

    A record without a value is the delete of its key in a table, nothing in a changelog (there it only lets the broker
    forget) nor after an envelope that told the delete, and a row of NULLs in a stream.
    """
    layout = layout_of(source)
    has_value = records.column(VALUE).is_valid()
    odd: list[tuple[pa.Table, str]] = []
    read = _enveloped_rows if source.is_enveloped else _rows
    valued = records.filter(has_value)
    if valued.num_rows and is_framed(source.options) and _value_fields(source, layout):
        valued = _framed(valued, source, odd)
    for table in _sound(valued, lambda part: read(part, source, layout), odd):
        yield True, table
    bare = records.filter(pc.invert(has_value))
    if bare.num_rows and source.kind == "table" and (layout.key or not source.is_enveloped):
        for table in _sound(bare, lambda part: _bare_rows(part, source, layout), odd):
            yield True, replaced(table, DIFF, np.full(table.num_rows, -1, np.int64))
    elif source.kind == "stream":
        for table in _sound(bare, lambda part: _bare_rows(part, source, layout), odd):
            yield True, table
    if odd and not source.diverts:
        raise _malformed(topic, *odd[0], source)
    if odd:
        yield False, _rejected(topic, odd)


def _sound(records: pa.Table, decode: Decode, odd: list[tuple[pa.Table, str]]) -> Iterator[pa.Table]:
    """Decode the records that can be; the others go to `odd`, each with the reason."""
    if not records.num_rows:
        return
    try:
        yield decode(records)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        if records.num_rows == 1:
            odd.append((records, Reason.of(failure)))
            return
        half = records.num_rows // 2
        yield from _sound(records.slice(0, half), decode, odd)
        yield from _sound(records.slice(half), decode, odd)


def _framed(records: pa.Table, source: Source, odd: list[tuple[pa.Table, str]]) -> pa.Table:
    """Leave out records without a declared schema. There may be many of them in a row, too many to halve for each."""
    faults = frame_faults(_single(records, VALUE), schemas_by_id(source.options))
    odd.extend((records.slice(at, 1), reason) for at, reason in faults.items())
    return take(records, np.delete(np.arange(records.num_rows), list(faults))) if faults else records


def _value_fields(source: Source, layout: Layout) -> list[pa.Field]:
    """The columns that the value fills, and the one that says what it does."""
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
    """Rows of Debezium's envelopes, which tell by themselves what happens to each. One record may have two."""
    fields = pa.schema([source.schema.field(name) for name in layout.value])
    decoded = decode_debezium(_single(records, VALUE).cast(pa.string()), source, fields)
    if decoded.odd:
        reason = decoded.odd[0][1]
        raise Unreadable(plain_reason(reason), reason if isinstance(reason, Reason) else "")
    table = _completed(_columns(without(decoded.rows, [DIFF])), take(records, decoded.record), source, layout)
    return replaced(table, DIFF, diffs(decoded.rows))


def _bare_rows(records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    if source.kind == "table" and not layout.key:
        raise Unreadable("the record has no value, and no column is taken from its key")
    values = {name: pa.nulls(records.num_rows, source.schema.field(name).type) for name in layout.value}
    return _completed(values, records, source, layout)


def _completed(values: Columns, records: pa.Table, source: Source, layout: Layout) -> pa.Table:
    """Add what comes from elsewhere than the value, in the declared types, the partition, and the order within it."""
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
    """The columns of the key. Keys that are there are decoded, and put in their places among those that are not."""
    keys = _single(records, KEY)
    fields = [source.schema.field(name) for name in layout.key]
    there = np.asarray(keys.is_valid())
    if not there.any():
        return {field.name: pa.nulls(len(keys), field.type) for field in fields}
    found = _decoded(keys.drop_null(), layout.key_format, fields, source)
    if there.all():
        return found
    places = pa.array(np.cumsum(there) - 1, mask=~there)
    return {name: column.take(places) for name, column in found.items()}


def _part(records: pa.Table, part: str, kind: pa.DataType) -> pa.Array:
    column = _single(records, part)
    if part == TIMESTAMP and pa.types.is_integer(kind):
        return pc.divide(column.cast(pa.int64()), 1000)
    return column


def _decoded(values: pa.Array, format_: str, fields: list[pa.Field], source: Source) -> Columns:
    """Bytes, none of them NULL, as columns. Raises `pa.ArrowInvalid` if one of them cannot be read."""
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


def _rejected(topic: str, odd: list[tuple[pa.Table, str]]) -> pa.Table:
    """Rows of the rejected relation; there is a loop over records at fault only."""
    rows = [(*_place(topic, record), _shown(record), reason) for record, reason in odd]
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), REJECTED_RECORDS, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=REJECTED_RECORDS)


def _shown(record: pa.Table) -> str:
    held = record.column(VALUE)[0].as_py() or record.column(KEY)[0].as_py() or b""
    return bytes(held).decode(errors="replace")


def _malformed(topic: str, record: pa.Table, reason: str, source: Source) -> MalformedInput:
    _, partition, offset = _place(topic, record)
    return MalformedInput(
        f"the record at offset {offset} of partition {partition} of topic `{topic}` cannot be read",
        detail=f"source `{source.name}`: {plain_reason(reason)}",
        values=reason if isinstance(reason, Reason) and reason != reason.plain else None,
        hint=f"set OPTIONS (malformed 'divert') to send such records to `{source.rejected}`, or begin after it: "
        "OPTIONS (startingOffsets '…')",
    )
