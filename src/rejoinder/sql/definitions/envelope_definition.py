"""Records in envelopes, checked: an envelope says by itself what happens to a row."""

from __future__ import annotations

from rejoinder.errors import InvalidSql
from rejoinder.formats.json.json_fields import UNITS
from rejoinder.ir.catalog import Source

ENVELOPES = ("debezium",)


def check_envelope(source: Source) -> None:
    """Refuse an envelope that is not known, or that does not fit the rest of the definition."""
    given = source.options
    listed = f"options: {', '.join(given) or 'none'}"
    if "time_unit" in given and "envelope" not in given:
        raise InvalidSql(
            f"option `time_unit` of `{source.name}` is for envelopes", detail=listed, hint="add envelope 'debezium'"
        )
    if given.get("time_unit", "milliseconds") not in UNITS:
        hint = " or ".join(f"'{unit}'" for unit in UNITS)
        raise InvalidSql(f"option `time_unit` of `{source.name}` is '{given['time_unit']}'", detail=listed, hint=hint)
    if "envelope" not in given:
        return
    name = f"envelope '{given['envelope']}' of `{source.name}`"
    if given["envelope"] not in ENVELOPES:
        raise InvalidSql(f"{name} is not known", detail=listed, hint="'debezium'")
    value_format = given.get("format", "json") if source.format == "kafka" else source.format
    cases = (
        (value_format != "json", "is around JSON, and this is not", "USING json, or on Kafka format 'json'"),
        (source.kind == "stream", "takes rows back, and a STREAM is append-only", "declare a TABLE or a CHANGELOG"),
        (source.op or source.diff, "says itself what happens to a row", "leave op and diff out"),
    )
    for holds, problem, hint in cases:
        if holds:
            raise InvalidSql(f"{name} {problem}", detail=listed, hint=hint)
