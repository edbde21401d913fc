"""Options of a source about partitions and time, checked: `partition_by`, `partitions`, `idle_after`, `max_ahead`."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import MOST_PARTITIONS
from rejoinder.sql.bind.emit_clause import Clause, interval_microseconds
from rejoinder.sql.types.spark_types import is_integer, spark_name

TIMING = ("partition_by", "partitions", "idle_after", "max_ahead")
RETAIN = "retain"


def checked_timing(
    name: str, options: Mapping[str, str], schema: pa.Schema, watermarks: Mapping[str, int | None]
) -> dict[str, str]:
    """Return the options, with columns as declared and lengths of time in microseconds. Raises a `PlanningError`."""
    result = dict(options)
    timing = [option for option in TIMING if option in options]
    if timing and not watermarks:
        raise InvalidSql(
            f"option `{timing[0]}` of `{name}` is about watermarks, and none is declared",
            detail=f"columns: {', '.join(schema.names)}",
            hint="add WATERMARK column DELAY OF INTERVAL 5 SECONDS to the columns",
        )
    if "partition_by" in options:
        result["partition_by"] = _partition_by(name, options["partition_by"], schema)
    if "partitions" in options:
        by = result.get("partition_by")
        result["partitions"] = _partitions(name, options["partitions"], schema, by)
        if by is None and int(options["partitions"]) > 1 and any(delay is not None for delay in watermarks.values()):
            raise InvalidSql(
                f"`{name}` declares {options['partitions']} partitions, and no column names that of a row",
                detail="all its rows would be of partition 0, and the others would block its watermark forever",
                hint="add partition_by 'column' to the options, or leave `partitions` out",
            )
    if "idle_after" in options:
        result["idle_after"] = str(_length(options["idle_after"], "idle_after", least=1))
    if "max_ahead" in options:
        if not any(is_clock_time(schema.field(column).type) for column in watermarks):
            listed = ", ".join(f"{column} {spark_name(schema.field(column).type)}" for column in watermarks)
            raise Unsupported(
                f"option `max_ahead` of `{name}` compares times with the clock, and an integer has no fixed unit",
                detail=f"event-time columns: {listed}",
                hint="make the column a TIMESTAMP, as in TIMESTAMP_MILLIS(n), or leave the option out",
            )
        result["max_ahead"] = str(_length(options["max_ahead"], "max_ahead", least=0))
    if "retain" in options:
        result["retain"] = _retained(name, options["retain"], schema, watermarks)
    return result


def _retained(name: str, text: str, schema: pa.Schema, watermarks: Mapping[str, int | None]) -> str:
    """Return RETAIN as `all`, or as a length: in microseconds, or a number where event times are integers."""
    if text.strip().lower() == "all":
        return "all"
    if not watermarks:
        raise InvalidSql(
            f"RETAIN {text} of `{name}` is about event times, and no watermark is declared",
            detail=f"columns: {', '.join(schema.names)}",
            hint="RETAIN ALL; or add WATERMARK column DELAY OF INTERVAL 5 SECONDS to the columns",
        )
    if any(is_clock_time(schema.field(column).type) for column in watermarks):
        return str(_length(text, "RETAIN", least=0))
    if not text.strip().isdigit():
        raise InvalidSql(
            f"RETAIN {text} of `{name}` does not fit its event time, which is an integer",
            hint="RETAIN ALL, or a number such as RETAIN 1000",
        )
    return text.strip()


def is_clock_time(kind: pa.DataType) -> bool:
    """Whether values of a type can be compared with the clock."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _partition_by(name: str, wanted: str, schema: pa.Schema) -> str:
    declared: str | None = next((column for column in schema.names if column.lower() == wanted.lower()), None)
    if declared is None:
        raise UnknownName(
            f"`{name}` has no column `{wanted}` to take the partition from",
            detail=f"columns: {', '.join(schema.names)}",
            hint=near_misses(wanted, schema.names) or "declare it among the columns",
        )
    kind = schema.field(declared).type
    if not (is_integer(kind) or pa.types.is_string(kind)):
        raise InvalidSql(
            f"partition_by `{declared}` of `{name}` is of type {spark_name(kind)}",
            detail="a partition is named by a number or a text",
            hint="use an integer or STRING column",
        )
    return declared


def _partitions(name: str, text: str, schema: pa.Schema, by: str | None) -> str:
    if not text.isdigit() or not 0 < int(text) <= MOST_PARTITIONS:
        raise InvalidSql(
            f"option `partitions` of `{name}` is `{text}`",
            detail=f"it says how many there are, from 1 to {MOST_PARTITIONS:,}; they are numbered from 0",
            hint="as in OPTIONS (partitions '3')",
        )
    if by is not None and not is_integer(schema.field(by).type):
        raise InvalidSql(
            f"`{name}` declares {text} partitions by number, and `{by}` names them by text",
            detail=f"partition_by '{by}', which is of type {spark_name(schema.field(by).type)}",
            hint="leave `partitions` out: a partition is known once it has sent a row",
        )
    return text


def _length(text: str, option: str, *, least: int) -> int:
    words = text.strip()
    clause = Clause("every", words if words.upper().startswith("INTERVAL") else f"INTERVAL {words}")
    return interval_microseconds(clause, option, least=least)
