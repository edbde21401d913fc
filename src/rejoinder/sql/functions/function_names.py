"""The functions that can be called, with their arguments: what a mistyped name may have meant.

`tests/unit/sql/functions/test_function_names.py` holds this list to the functions that are compiled.
"""

from __future__ import annotations

import difflib

from rejoinder.sql.functions import math_functions, text_functions
from rejoinder.sql.functions.time import time_functions

FUNCTIONS = (*text_functions.FUNCTIONS, *math_functions.FUNCTIONS, *time_functions.FUNCTIONS)
"""The functions that are one entry each; the others have a form of their own."""

_OTHERS = (
    # aggregates
    *("any_value(x)", "avg(x)", "bool_and(condition)", "bool_or(condition)", "count(x)", "count_if(condition)"),
    *("every(condition)", "max(x)", "mean(x)", "min(x)", "some(condition)", "sum(x)"),
    # conditions
    *("cast(x AS INT)", "try_cast(x AS INT)"),
    *("coalesce(x, y)", "if(condition, x, y)", "ifnull(x, y)", "isnotnull(x)", "isnull(x)"),
    *("nullif(x, y)", "nvl(x, y)", "nvl2(x, y, z)", "zeroifnull(x)"),
    # text
    *("concat(x, y)", "concat_ws(separator, x, y)", "locate(part, text)", "lpad(text, n, pad)", "ltrim(text)"),
    *("position(part, text)", "regexp_like(text, pattern)", "repeat(text, n)", "rpad(text, n, pad)", "rtrim(text)"),
    *("split_part(text, separator, n)", "substr(text, start, n)", "substring(text, start, n)", "trim(text)"),
    # numbers
    *("ceil(x)", "ceiling(x)", "floor(x)", "greatest(x, y)", "least(x, y)", "pmod(x, y)", "round(x, n)"),
    # dates and times
    *("date_add(date, n)", "date_sub(date, n)", "date_trunc('day', time)", "extract(YEAR FROM date)", "to_date(x)"),
    *("timestampadd(DAY, n, time)", "timestampdiff(DAY, start_time, end_time)", "to_timestamp(x)"),
    "unix_timestamp(time)",
    # windows
    *("cumulate(time, step, size)", "session(time, gap)", "session_window(time, '5 minutes')", "window_time(w)"),
    *("hop(time, slide, size)", "hop_end(time, slide, size)", "hop_start(time, slide, size)", "tumble(time, size)"),
    *("tumble_end(time, size)", "tumble_start(time, size)", "validity(time)", "validity_window(time)"),
    *("window(time, '5 minutes')", "window_end(w)", "window_start(w)"),
    # arrays and structs
    *("array(x, y)", "array_contains(list, x)", "array_size(list)", "size(list)", "struct(x, y)"),
)
SIGNATURES: dict[str, str] = {
    **{signature.split("(", 1)[0]: signature for signature in _OTHERS},
    **{name: signature for function in FUNCTIONS for name, signature in function.signatures.items()},
}
"""Signatures by name, in lower case."""


def meant_functions(name: str) -> str:
    """A hint with the functions whose names are close to a name; empty if none is.

    >>> meant_functions("lenght")
    'did you mean `length(text)`?'
    """
    close = difflib.get_close_matches(name.lower(), SIGNATURES, n=2, cutoff=0.7)
    return f"did you mean {' or '.join(f'`{SIGNATURES[match]}`' for match in close)}?" if close else ""
