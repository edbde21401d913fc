"""Functions, columns and types of other systems that do not exist here, each with a replacement."""

from __future__ import annotations

_LAST = "LATEST(TABLE name, DESCRIPTOR(key), DESCRIPTOR(time)) in FROM gives the last row of each key"
_SESSIONS = "write SESSION(time, gap).start and SESSION(time, gap).end, and GROUP BY SESSION(time, gap)"
_COUNTS = "COUNT(DISTINCT x) is exact"
_FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(("latest_by_offset", "arg_max", "argmax"), _LAST),
    **dict.fromkeys(
        ("earliest_by_offset", "arg_min", "argmin"),
        "MIN_BY(x, time) is the value with the first time of a group",
    ),
    **dict.fromkeys(("session_start", "session_end"), _SESSIONS),
    "group_concat": "LISTAGG(x, ',')",
    **dict.fromkeys(("count_distinct", "approx_distinct"), _COUNTS),
    **dict.fromkeys(
        ("topk", "topkdistinct"), "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3 gives the first rows"
    ),
    **dict.fromkeys(("date_bin", "time_bucket"), "TUMBLE(time, INTERVAL 5 MINUTES).start"),
    **dict.fromkeys(("tumble_rowtime", "hop_rowtime"), "WINDOW_END(TUMBLE(time, size)), or the time column itself"),
    "withwatermark": "declare it with the source: WATERMARK ts DELAY OF INTERVAL 5 SECONDS among the columns; or "
    "FROM IMPOSE_ORDER(TABLE name, DESCRIPTOR(ts), INTERVAL 5 SECONDS)",
}
_COLUMNS: dict[str, str] = {
    "rowtime": "name the event-time column; SHOW SOURCES lists columns",
    "proctime": "a join FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP uses the rows as they are on arrival",
    **dict.fromkeys(("windowstart", "window_start"), "WINDOW_START(TUMBLE(time, size)), or FROM TUMBLE(TABLE …)"),
    **dict.fromkeys(("windowend", "window_end"), "WINDOW_END(TUMBLE(time, size)), or FROM TUMBLE(TABLE …)"),
    "mz_timestamp": "SELECT STREAM … has the columns _epoch and _emit_time",
}
_TYPES: dict[str, str] = {
    "DATETIME": "write TIMESTAMP",
    **dict.fromkeys(("UUID", "JSON", "JSONB", "ENUM", "XML"), "write STRING"),
    "BYTES": "write BINARY",
    "NUMBER": "write DECIMAL(p, s), BIGINT or DOUBLE",
    "INTERVAL": "write BIGINT, in a unit of your choice",
}


def foreign_function(name: str) -> str:
    """Return the replacement of a function of another system; empty if there is none.

    >>> foreign_function("Count_Distinct"), foreign_function("upper")
    ('COUNT(DISTINCT x) is exact', '')
    """
    return _FUNCTIONS.get(name.lower(), "")


def foreign_column(name: str) -> str:
    """Return the replacement of a system column of another system; empty if there is none."""
    return _COLUMNS.get(name.lower(), "")


def foreign_type(name: str) -> str:
    """Return the replacement of a type of another system; empty if there is none."""
    return _TYPES.get(name.upper(), "")
