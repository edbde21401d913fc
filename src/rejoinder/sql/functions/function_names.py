"""The functions that can be called, with their arguments: what a mistyped name may have meant.

`tests/unit/sql/functions/test_function_names.py` holds this list to the functions that are compiled.
"""

from __future__ import annotations

import difflib

_SIGNATURES = (
    # aggregates
    *("any_value(x)", "avg(x)", "bool_and(condition)", "bool_or(condition)", "count(x)", "count_if(condition)"),
    *("every(condition)", "max(x)", "mean(x)", "min(x)", "some(condition)", "sum(x)"),
    # conditions
    *("cast(x AS INT)", "try_cast(x AS INT)"),
    *("coalesce(x, y)", "if(condition, x, y)", "ifnull(x, y)", "isnan(x)", "isnotnull(x)", "isnull(x)"),
    *("nullif(x, y)", "nvl(x, y)", "nvl2(x, y, z)", "zeroifnull(x)"),
    # text
    *("ascii(text)", "char_length(text)", "character_length(text)", "concat(x, y)", "concat_ws(separator, x, y)"),
    *("contains(text, part)", "endswith(text, part)", "instr(text, part)", "lcase(text)", "left(text, n)"),
    *("len(text)", "length(text)", "locate(part, text)", "lower(text)", "lpad(text, n, pad)", "ltrim(text)"),
    *("position(part, text)", "regexp_like(text, pattern)", "repeat(text, n)", "replace(text, part, other)"),
    *("reverse(text)", "right(text, n)", "rpad(text, n, pad)", "rtrim(text)", "split_part(text, separator, n)"),
    *("startswith(text, part)", "substr(text, start, n)", "substring(text, start, n)"),
    *("translate(text, letters, others)", "trim(text)", "ucase(text)", "upper(text)"),
    # numbers
    *("abs(x)", "ceil(x)", "ceiling(x)", "floor(x)", "greatest(x, y)", "least(x, y)", "pmod(x, y)", "round(x, n)"),
    *("sign(x)", "signum(x)", "sqrt(x)"),
    # dates and times
    *("add_months(date, n)", "date_add(date, n)", "date_diff(end_date, start_date)", "date_from_unix_date(n)"),
    *("date_sub(date, n)", "date_trunc('day', time)", "datediff(end_date, start_date)", "day(date)"),
    *(
        "dayofmonth(date)",
        "dayofweek(date)",
        "dayofyear(date)",
        "extract(YEAR FROM date)",
        "hour(time)",
        "last_day(date)",
    ),
    *("make_date(y, m, d)", "minute(time)", "month(date)", "quarter(date)", "second(time)"),
    *("timestampadd(DAY, n, time)", "timestampdiff(DAY, start_time, end_time)", "timestamp_micros(n)"),
    *("timestamp_millis(n)", "timestamp_seconds(n)", "to_date(x)", "to_timestamp(x)", "unix_date(date)"),
    *("unix_micros(time)", "unix_millis(time)", "unix_seconds(time)", "unix_timestamp(time)", "weekday(date)"),
    *("weekofyear(date)", "year(date)"),
    # windows
    *("hop(time, slide, size)", "hop_end(time, slide, size)", "hop_start(time, slide, size)", "tumble(time, size)"),
    *("tumble_end(time, size)", "tumble_start(time, size)", "validity(time)", "validity_window(time)"),
    *("window(time, '5 minutes')", "window_end(w)", "window_start(w)"),
    # arrays and structs
    *("array(x, y)", "array_contains(list, x)", "array_size(list)", "size(list)", "struct(x, y)"),
)
SIGNATURES: dict[str, str] = {signature.split("(", 1)[0]: signature for signature in _SIGNATURES}
"""Signatures by name, in lower case."""


def meant_functions(name: str) -> str:
    """A hint with the functions whose names are close to a name; empty if none is.

    >>> meant_functions("lenght")
    'did you mean `length(text)`?'
    """
    close = difflib.get_close_matches(name.lower(), SIGNATURES, n=2, cutoff=0.7)
    return f"did you mean {' or '.join(f'`{SIGNATURES[match]}`' for match in close)}?" if close else ""
