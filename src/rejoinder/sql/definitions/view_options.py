"""Options of a view, checked: how much state it may use.

    CREATE VIEW late OPTIONS (max_state_rows '1000000', max_state_bytes 'none') AS SELECT …
    ALTER VIEW late SET OPTIONS (max_state_rows '2000000')

The limit of the flow applies where a view has none; 'none' means no limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.errors import InvalidSql, UnknownName, near_misses

STATE_ROWS, STATE_BYTES = "max_state_rows", "max_state_bytes"
NONE = "none"


def checked_options(view: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a view. Raises a `PlanningError` that names the wrong one."""
    result = {}
    for option, value in options.items():
        if option not in (STATE_ROWS, STATE_BYTES):
            known = (STATE_ROWS, STATE_BYTES)
            raise UnknownName(
                f"option `{option}` of view `{view}` is not known",
                detail=f"options: {', '.join(options)}",
                hint=near_misses(option, known) or f"one of {', '.join(known)}",
            )
        text = value.strip().lower()
        if text != NONE and not (text.isascii() and text.isdigit() and int(text) > 0):
            raise InvalidSql(
                f"option `{option}` of view `{view}` is `{value}`",
                detail=f"options: {', '.join(options)}",
                hint=f"a positive number, or '{NONE}' for no limit",
            )
        result[option] = text if text == NONE else str(int(text))
    return result
