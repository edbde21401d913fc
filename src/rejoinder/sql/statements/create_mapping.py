"""Rewrite CREATE MAPPING, Hazelcast's spelling, as CREATE STREAM.

    CREATE MAPPING orders (id BIGINT, ts TIMESTAMP) TYPE File OPTIONS ('path' = 'in/orders', 'format' = 'csv')
    →  CREATE STREAM orders (id BIGINT, ts TIMESTAMP) USING csv OPTIONS (path 'in/orders')

Other options are passed on unchanged; the definition of the source refuses unknown ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.connectors.registry import SOURCES
from rejoinder.errors import InvalidSql, Unsupported, near_misses
from rejoinder.secret_options import redacted_text

TYPES = ("File", "Kafka", "Stream")
_FILES = {name: name for name, side in SOURCES.items() if side.rereads_files} | {"json-flat": "json"}
_RENAMED = {"glob": "pathglobfilter"}
_TOPICS = {"valueformat": "format", "keyformat": "key_format", "auto.offset.reset": "startingoffsets"}
_RECORDS = {"json-flat": "json", "varchar": "text"}


def mapped(name: str, type_: str, outside: str | None, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the format and options of a mapping; `outside` is its EXTERNAL NAME. Raises a `PlanningError`."""
    match type_.lower():
        case "file":
            return _file(name, outside, options)
        case "kafka":
            return "kafka", _kafka(name, outside, options)
        case "stream":
            _refuse_outside(name, type_, outside)
            return "memory", dict(options)
        case _:
            raise Unsupported(
                f"TYPE {type_} of mapping `{name}` is not known",
                detail=f"known: {', '.join(TYPES)}",
                hint=near_misses(type_, TYPES)
                or "File reads a folder of files, Kafka a topic; Stream takes rows that are inserted",
            )


def _file(name: str, outside: str | None, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    _refuse_outside(name, "File", outside)
    renamed = {_RENAMED.get(option, option): value for option, value in options.items()}
    format_ = renamed.pop("format", None)
    if format_ is None or format_.lower() not in _FILES:
        raise InvalidSql(
            f"mapping `{name}` has no format"
            if format_ is None
            else f"format `{format_}` of mapping `{name}` is not known",
            detail=f"known: {', '.join(_FILES)}",
            hint=near_misses(format_ or "", list(_FILES)) or "add 'format' = 'json' to its OPTIONS",
        )
    return _FILES[format_.lower()], renamed


def _kafka(name: str, outside: str | None, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a topic: the external name, and Kafka client properties, recognised by their dots."""
    renamed = {"topic": outside or name}
    for option, value in options.items():
        own = _TOPICS.get(option, f"kafka.{option}" if "." in option else option)
        renamed[own] = _RECORDS.get(value.lower(), value) if own in ("format", "key_format") else value
    return renamed


def _refuse_outside(name: str, type_: str, outside: str | None) -> None:
    if outside is not None:
        raise Unsupported(
            f"EXTERNAL NAME of mapping `{name}` is not supported for TYPE {type_}",
            detail=f"EXTERNAL NAME {redacted_text(outside)}",
            hint="use OPTIONS ('path' = '…')" if type_ == "File" else "remove it",
        )
