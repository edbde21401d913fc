"""Options of messages, checked: the format of values, and an Avro schema that fits the view."""

from __future__ import annotations

import json

import pyarrow as pa

from rejoinder.connectors.kafka.avro_options import check_schema_id
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.formats.avro.avro_writer import avro_schema, encode_avro
from rejoinder.ir.catalog import Sink
from rejoinder.ir.type_names import listed_columns, spark_name

MESSAGE_OPTIONS = ("value_format", "avro_schema", "avro_schema_id")
VALUE_FORMATS = ("json", "avro", "text", "raw")
CHANGE = pa.schema([("_epoch", pa.int64()), ("_diff", pa.int64())])


def check_messages(sink: Sink, schema: pa.Schema) -> None:
    """Raise a `PlanningError` if values cannot be written as the options say."""
    options = sink.options
    format_ = options.get("value_format", "json")
    other = [name for name in ("avro_schema", "avro_schema_id") if name in options and format_ != "avro"]
    if other:
        raise InvalidSql(
            f"sink `{sink.name}` has {other[0]}, and its values are not Avro",
            detail=f"value_format '{format_}'",
            hint="add value_format 'avro', or leave it out",
        )
    if format_ != "json" and options.get("mode") == "debezium":
        raise Unsupported(
            f"sink `{sink.name}` has mode 'debezium' and value_format '{format_}'",
            detail="envelopes are written as JSON",
            hint="leave value_format out, or choose mode 'upsert' or 'append'",
        )
    if format_ in ("text", "raw"):
        value_column(sink, schema)
    elif format_ == "avro":
        _check_avro(sink, schema)


def value_column(sink: Sink, schema: pa.Schema) -> pa.Field:
    """Return the column that is written as it is: the only one outside the key. Raises `InvalidSql`."""
    format_, key = sink.options["value_format"], sink.options.get("key", "").lower().split(",")
    excluded = {*(name.strip() for name in key), *CHANGE.names}
    candidates = [field for field in schema if field.name.lower() not in excluded]
    kind, wanted = (pa.binary(), "BINARY") if format_ == "raw" else (pa.string(), "STRING")
    if len(candidates) != 1 or candidates[0].type != kind:
        listed = ", ".join(f"{field.name} {spark_name(field.type)}" for field in candidates) or "none"
        raise InvalidSql(
            f"sink `{sink.name}` writes values as {format_}, which is one column of type {wanted}",
            detail=f"columns of `{sink.view}` besides the key: {listed}",
            hint=f"select one {wanted} column besides the key in the view, or write 'json' or 'avro'",
        )
    return candidates[0]


def _check_avro(sink: Sink, schema: pa.Schema) -> None:
    if "avro_schema_id" in sink.options:
        check_schema_id(f"sink `{sink.name}`", "avro_schema_id", sink.options["avro_schema_id"])
    full = written_columns(sink, schema)
    listed = listed_columns(full)
    try:
        encode_avro(full.empty_table(), sink.options.get("avro_schema") or avro_schema(sink.view, full))
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise InvalidSql(
            f"rows of `{sink.view}` cannot be written as Avro by sink `{sink.name}`",
            detail=f"{failure}; {listed}",
            hint="give columns other names or types in the view, or give a schema that fits: avro_schema '…'",
        ) from failure


def written_columns(sink: Sink, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a value: those of the view, and `_epoch` and `_diff` if each change is a message."""
    return schema if sink.options.get("mode", "append") != "append" else pa.schema([*schema, *CHANGE])


def frame_of(sink: Sink) -> bytes:
    """Return the bytes before each value: none, or a zero byte and the id of the schema."""
    number = sink.options.get("avro_schema_id")
    return b"" if number is None else b"\0" + int(number).to_bytes(4, "big")


def tells_changes(sink: Sink) -> bool:
    """Whether a reader of the messages can distinguish an added row from a retracted one."""
    if sink.options.get("mode", "append") != "append":
        return True
    format_ = sink.options.get("value_format", "json")
    if format_ == "avro" and "avro_schema" in sink.options:
        fields = json.loads(sink.options["avro_schema"]).get("fields", ())
        return "_diff" in [field["name"].lower() for field in fields]
    return format_ in ("json", "avro")
