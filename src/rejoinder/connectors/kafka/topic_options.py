"""Options of sources on topics, checked: where the topic is, how records are decoded, which part fills which column."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from rejoinder.connectors.kafka.avro_options import check_avro
from rejoinder.connectors.kafka.record_layout import KEY_FORMATS, PARTS, VALUE_FORMATS, Layout, layout_of, listed
from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.formats.avro.framed_records import FURTHER
from rejoinder.ir.catalog import Source
from rejoinder.ir.type_names import is_integer, listed_columns, spark_name

PREFIXES = ("kafka.", FURTHER)  # options of Kafka's own clients, security among them; further Avro schemas by id
_PLACE = ("bootstrap", "topic")
_READING = ("format", "avro_schema", "avro_schema_id", "avro_framing", "key", "key_format", *PARTS)
_PACE = ("startingoffsets", "failondataloss", "maxoffsetspertrigger", "minpartitions")
ALTERABLE = ("bootstrap", "maxoffsetspertrigger", "minpartitions", "failondataloss")
TOPIC_OPTIONS = (*_PLACE, *_READING, *_PACE, "subscribe", "envelope", "time_unit")
_SAME = {"subscribe": "topic", "kafka.bootstrap.servers": "bootstrap"}
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ENTRY = pa.struct([("key", pa.string()), ("value", pa.binary())])


def topic_options(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source on a topic, each under one name. Raises a `PlanningError`."""
    values = {_SAME.get(option, option): value for option, value in options.items()}
    given_options = f"options: {', '.join(values) or 'none'}"
    for option in _PLACE:
        if not values.get(option):
            hint = "add OPTIONS (bootstrap 'host:9092', topic '…')"
            raise InvalidSql(f"`{name}` USING kafka has no {option}", detail=given_options, hint=hint)
    if not _TOPIC.fullmatch(values["topic"]):
        raise Unsupported(
            f"topic '{values['topic']}' of `{name}` is not the name of one topic",
            detail="letters, digits, dots, dashes and underscores",
            hint="make a source for each topic, and UNION ALL them in a view",
        )
    _choice(name, values, "format", VALUE_FORMATS)
    _choice(name, values, "key_format", KEY_FORMATS)
    _choice(name, values, "avro_framing", ("none", "confluent"))
    for option in ("maxoffsetspertrigger", "minpartitions"):
        if option in values and not values[option].isdigit():
            raise InvalidSql(
                f"option `{option}` of `{name}` is '{values[option]}'", detail=given_options, hint="give a number"
            )
    for option in ("partition_by", "partitions"):
        if option in values:
            raise InvalidSql(
                f"option `{option}` of `{name}` says what Kafka knows",
                detail="the partitions of the topic are those of the watermarks",
                hint="leave it out",
            )
    return values


def check_layout(source: Source) -> None:
    """Raise a `PlanningError` if columns cannot be filled as the options say."""
    options = source.options
    columns = listed_columns(source.schema)
    for option in ("key", *PARTS):
        for wanted in listed(options.get(option, "")):
            if wanted.lower() not in [name.lower() for name in source.schema.names]:
                raise UnknownName(
                    f"`{source.name}` has no column `{wanted}`, which option `{option}` names",
                    detail=columns,
                    hint=near_misses(wanted, source.schema.names) or "declare it among the columns",
                )
    layout = layout_of(source)
    problem, hint = _misfit(source, layout)
    if problem:
        raise InvalidSql(f"`{source.name}` {problem}", detail=columns, hint=hint)
    check_avro(source, layout, columns)


def _misfit(source: Source, layout: Layout) -> tuple[str, str]:
    """Return a problem and a hint; empty if there is none."""
    placed = [*layout.key, *layout.parts.values()]
    double = next((name for name in placed if placed.count(name) > 1), None)
    if double is not None:
        return f"takes `{double}` from two parts of a record", "name each column once"
    if layout.key and layout.key_format == "none":
        return "names columns of the key, and key_format is 'none'", "leave one of the two out"
    if source.kind == "table" and layout.key and set(layout.key) != set(source.primary_key):
        return (
            f"has the primary key {', '.join(source.primary_key)}, and takes {', '.join(layout.key)} from the key",
            "a record without a value deletes by its key: make them the same, or set key_format 'none'",
        )
    for name, kind in ((name, source.schema.field(name).type) for name in layout.parts.values()):
        part = next(part for part, column in layout.parts.items() if column == name)
        if not _fits(part, kind):
            return f"cannot take the {part} into `{name}` {spark_name(kind)}", _WANTED[part]
    for what, format_, names in (("key", layout.key_format, layout.key), ("value", layout.value_format, layout.value)):
        if format_ not in ("text", "raw") or (what == "key" and not names):
            continue
        if len(names) != 1:
            count = f"{len(names)} columns" if names else "no column"
            return f"has {count} for a {what} that is one {format_}", f"declare one, or read the {what} as 'json'"
        kind = source.schema.field(names[0]).type
        if format_ == "raw" and not pa.types.is_binary(kind):
            return f"reads the {what} as bytes into `{names[0]}` {spark_name(kind)}", "declare the column as BINARY"
        if format_ == "text" and (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            return f"reads the {what} as text into `{names[0]}` {spark_name(kind)}", "declare the column as STRING"
    return "", ""


_WANTED = {
    "timestamp": "declare it as TIMESTAMP, or as BIGINT for milliseconds",
    "partition": "declare it as INT",
    "offset": "declare it as BIGINT",
    "headers": "declare it as ARRAY<STRUCT<key: STRING, value: BINARY>>",
}


def _fits(part: str, kind: pa.DataType) -> bool:
    if part == "timestamp":
        return bool(pa.types.is_timestamp(kind) or pa.types.is_int64(kind))
    if part == "headers":
        return bool(pa.types.is_list(kind) and kind.value_type == _ENTRY)
    return bool(pa.types.is_int64(kind) if part == "offset" else is_integer(kind))


def _choice(name: str, values: Mapping[str, str], option: str, choices: tuple[str, ...]) -> None:
    if option in values and values[option] not in choices:
        raise InvalidSql(
            f"option `{option}` of `{name}` is '{values[option]}'",
            detail=f"options: {', '.join(values)}",
            hint=near_misses(values[option], choices) or " or ".join(f"'{choice}'" for choice in choices),
        )
