"""A sink's definition, checked: options that fit its format, keys that the view has, no secret in clear.

A new format is a row of `FORMATS`, and a target in `engine/sinks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Sink
from rejoinder.secret_options import refuse_clear
from rejoinder.sql.definitions.message_definition import MESSAGE_OPTIONS, VALUE_FORMATS, check_messages
from rejoinder.sql.types.spark_types import spark_name

PYTHON = "python"


@dataclass(frozen=True)
class SinkFormat:
    """The options of a format: those it needs, others, a prefix of options that it passes on; and its modes."""

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    prefix: str | None = None
    modes: tuple[str, ...] = ("append",)
    keyed_modes: tuple[str, ...] = ()


FORMATS: dict[str, SinkFormat] = {
    "console": SinkFormat(takes=("limit",)),
    "csv": SinkFormat(needs=("path",), takes=("guard",)),
    "delta": SinkFormat(needs=("path",), modes=("append", "upsert"), keyed_modes=("upsert",)),
    "jdbc": SinkFormat(
        needs=("url", "dbtable"),
        takes=("user", "password", "driver", "batchsize"),
        modes=("append", "upsert"),
        keyed_modes=("upsert",),
    ),
    "json": SinkFormat(needs=("path",)),
    "kafka": SinkFormat(
        needs=("bootstrap", "topic"),
        takes=MESSAGE_OPTIONS,
        prefix="kafka.",
        modes=("append", "upsert", "debezium"),
        keyed_modes=("upsert", "debezium"),
    ),
    "parquet": SinkFormat(needs=("path",)),
    PYTHON: SinkFormat(),
}
_COMMON = ("from", "mode", "key")


def make_sink(name: str, view: str, format_: str, options: Mapping[str, str]) -> Sink:
    """Check a definition by itself and make the sink. Raises `PlanningError`s that name the option at fault."""
    given = {option.lower(): str(value) for option, value in options.items()}
    owner = f"sink `{name}`"
    refuse_clear(owner, given)  # before any check that quotes a value
    listed = f"options: {', '.join(given) or 'none'}"
    offered = [known for known in FORMATS if known != PYTHON]
    if format_ not in FORMATS:
        raise Unsupported(
            f"format `{format_}` of {owner} is not known",
            detail=f"known: {', '.join(offered)}",
            hint=near_misses(format_, offered) or "hand the changes to a function: flow.foreach_epoch(view, function)",
        )
    known = FORMATS[format_]
    names = (*known.needs, *known.takes, *_COMMON)
    for option in given:
        passes = known.prefix is not None and option.startswith(known.prefix)
        if option not in names and not passes:
            hint = near_misses(option, names) or f"one of {', '.join(names)}"
            raise UnknownName(f"option `{option}` of {owner} is not known", detail=listed, hint=hint)
    missing = [option for option in known.needs if not given.get(option)]
    if missing:
        text = ", ".join(f"{option} '…'" for option in missing)
        raise InvalidSql(f"{owner} USING {format_} has no {missing[0]}", detail=listed, hint=f"add OPTIONS ({text})")
    _check_choice(owner, given, "from", ("start", "now"))
    _check_choice(owner, given, "mode", known.modes)
    _check_choice(owner, given, "value_format", VALUE_FORMATS)
    _check_choice(owner, given, "guard", ("true", "false"))
    mode = given.get("mode", known.modes[0])
    if mode in known.keyed_modes and not given.get("key"):
        raise InvalidSql(
            f"{owner} has mode '{mode}' and no key",
            detail=f"`{view}` may hold equal rows, or many for one value: it has no key of its own",
            hint="name the columns that tell its rows apart, as in key 'id' or key 'id, day'",
        )
    return Sink(name, view, format_, given)


def _check_choice(owner: str, given: Mapping[str, str], option: str, choices: tuple[str, ...]) -> None:
    if option in given and given[option] not in choices:
        raise InvalidSql(
            f"option `{option}` of {owner} is '{given[option]}'",
            detail=f"options: {', '.join(given)}",
            hint=" or ".join(f"'{choice}'" for choice in choices),
        )


def key_of(sink: Sink, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of option `key`, in the case in which the view has them. Raises `UnknownName`.

    >>> key_of(Sink("s", "v", "delta", {"key": "ID, day"}), pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    ('id', 'day')
    """
    known = {name.lower(): name for name in schema.names}
    wanted = [name.strip() for name in sink.options.get("key", "").split(",") if name.strip()]
    for name in wanted:
        if name.lower() not in known:
            raise UnknownName(
                f"`{sink.view}` has no column `{name}`, which is in the key of sink `{sink.name}`",
                detail=_columns(schema),
                hint=near_misses(name, schema.names) or "a key is made of columns of the view",
            )
    return tuple(known[name.lower()] for name in wanted)


def _columns(schema: pa.Schema) -> str:
    return f"columns: {', '.join(f'{field.name} {spark_name(field.type)}' for field in schema)}"


def check_against(sink: Sink, schema: pa.Schema) -> None:
    """Refuse what does not fit the view: a key that is not there, columns that the format cannot hold."""
    key_of(sink, schema)
    if sink.format == "kafka":
        check_messages(sink, schema)
    nested = [field for field in schema if pa.types.is_nested(field.type) or pa.types.is_binary(field.type)]
    if sink.format == "csv" and nested:
        raise Unsupported(
            f"column `{nested[0].name}` of `{sink.view}` cannot be written as CSV",
            detail=f"it is of type {spark_name(nested[0].type)}",
            hint="write parquet or json, or select its parts in the view",
        )
