"""Make a sink from its definition, and check that its options fit its format and its view."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.connectors.registry import SINK_FORMATS, SINKS, sink_side
from rejoinder.connectors.sink_key import key_of
from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Sink
from rejoinder.secret_options import refuse_clear

_EVERY_SINK = ("from", "mode", "key")


def make_sink(name: str, view: str, format_: str, options: Mapping[str, str]) -> Sink:
    """Check a definition by itself and make the sink. Raises a `PlanningError` that names the wrong option."""
    values = {option.lower(): str(value) for option, value in options.items()}
    owner = f"sink `{name}`"
    refuse_clear(owner, values)  # before any check that quotes a value
    listed = f"options: {', '.join(values) or 'none'}"
    side = SINKS.get(format_)
    if side is None:
        raise Unsupported(
            f"format `{format_}` of {owner} is not known",
            detail=f"known: {', '.join(SINK_FORMATS)}",
            hint=near_misses(format_, SINK_FORMATS)
            or "hand the changes to a function: flow.foreach_epoch(view, function)",
        )
    names = (*side.needs, *side.takes, *_EVERY_SINK)
    for option in values:
        is_passed_on = side.prefix is not None and option.startswith(side.prefix)
        if option not in names and not is_passed_on:
            hint = near_misses(option, names) or f"one of {', '.join(names)}"
            raise UnknownName(f"option `{option}` of {owner} is not known", detail=listed, hint=hint)
    missing = [option for option in side.needs if not values.get(option)]
    if missing:
        text = ", ".join(f"{option} '…'" for option in missing)
        raise InvalidSql(f"{owner} USING {format_} has no {missing[0]}", detail=listed, hint=f"add OPTIONS ({text})")
    for option, choices in {"from": ("start", "now"), "mode": side.modes, **side.choices}.items():
        if option in values and values[option] not in choices:
            raise InvalidSql(
                f"option `{option}` of {owner} is '{values[option]}'",
                detail=listed,
                hint=" or ".join(f"'{choice}'" for choice in choices),
            )
    mode = values.get("mode", side.modes[0])
    if mode in side.keyed_modes and not values.get("key"):
        raise InvalidSql(
            f"{owner} has mode '{mode}' and no key",
            detail=f"`{view}` may have equal rows, or several for one value: it has no key of its own",
            hint="name the columns that identify a row, as in key 'id' or key 'id, day'",
        )
    return Sink(name, view, format_, values)


def declared_sink(view: str, format_: str, name: str | None, options: Mapping[str, object]) -> Sink:
    """Make the sink of a call in Python. The default name is `<view>_<format>`.

    An option that is a Python keyword has an underscore: `from_="now"`.
    """
    texts = {option.rstrip("_"): str(value) for option, value in options.items()}
    return make_sink(name or f"{view.replace('.', '_')}_{format_}", view, format_.lower(), texts)


def check_against(sink: Sink, schema: pa.Schema) -> None:
    """Raise a `PlanningError` if a sink does not fit its view: an unknown key column, a type it cannot write."""
    key_of(sink, schema)
    sink_side(sink).check(sink, schema)
