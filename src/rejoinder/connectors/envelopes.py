"""Check the options of enveloped records: an envelope itself says what happens to a row."""

from __future__ import annotations

from rejoinder.errors import InvalidSql
from rejoinder.formats.json.json_fields import UNITS
from rejoinder.ir.catalog import Source

ENVELOPES = ("debezium",)


def check_envelope(source: Source, *, is_json: bool) -> None:
    """Raise `InvalidSql` for an unknown envelope, or one that does not fit the rest of the definition.

    `is_json`: the records are JSON.
    """
    options = source.options
    listed = f"options: {', '.join(options) or 'none'}"
    if "time_unit" in options and "envelope" not in options:
        raise InvalidSql(
            f"option `time_unit` of `{source.name}` is for envelopes", detail=listed, hint="add envelope 'debezium'"
        )
    if options.get("time_unit", "milliseconds") not in UNITS:
        hint = " or ".join(f"'{unit}'" for unit in UNITS)
        raise InvalidSql(f"option `time_unit` of `{source.name}` is '{options['time_unit']}'", detail=listed, hint=hint)
    if "envelope" not in options:
        return
    name = f"envelope '{options['envelope']}' of `{source.name}`"
    if options["envelope"] not in ENVELOPES:
        raise InvalidSql(f"{name} is not known", detail=listed, hint="'debezium'")
    cases = (
        (not is_json, "is around JSON, and this is not", "USING json, or on Kafka format 'json'"),
        (source.kind == "stream", "retracts rows, and a STREAM is append-only", "declare a TABLE or a CHANGELOG"),
        (source.op or source.diff, "says itself what happens to a row", "leave op and diff out"),
    )
    for is_wrong, problem, hint in cases:
        if is_wrong:
            raise InvalidSql(f"{name} {problem}", detail=listed, hint=hint)
