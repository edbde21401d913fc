"""Windows of time, and steps from a time to a bound (`ir.monotone`).

Timestamps are counted in microseconds. Integers count in a unit of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering

MAX_COUNT = (1 << 62) - 1
"""The largest integer that is taken for a time."""


def _number(call: Call) -> str:
    return "epoch_us({0})" if pa.types.is_timestamp(call.parts[0].type) else "{0}"


def _time(call: Call, number: str) -> str:
    return f"make_timestamp({number})" if pa.types.is_timestamp(call.parts[0].type) else f"({number})"


def _last_start(call: Call, slide: int, offset: int = 0) -> str:
    """The number of the last start, one every `slide` from an offset, that is not after the time."""
    number = _number(call)
    since = f"{number} % {slide} + {2 * slide - offset % slide}" if offset else f"{number} % {slide} + {slide}"
    return f"{number} - ({since}) % {slide}"


def _tumble_start(call: Call) -> str:
    size, *offset = _sizes(call)
    return _time(call, _last_start(call, size, *offset))


def _tumble_end(call: Call) -> str:
    size, *offset = _sizes(call)
    return _time(call, f"{_last_start(call, size, *offset)} + {size}")


def _hop_starts(call: Call) -> str:
    size, slide, keeps_nulls, *offset = _sizes(call)
    numbers = f"range({_last_start(call, slide, *offset)}, {_number(call)} - {size}, -{slide})"
    starts = f"list_transform({numbers}, lambda number: {_time(call, 'number')})"
    return f"CASE WHEN {{0}} IS NULL THEN {'[NULL]' if keeps_nulls else '[]'} ELSE {starts} END"


def _cumulate_ends(call: Call) -> str:
    size, step = _sizes(call)
    numbers = f"range({_last_start(call, step)} + {step}, {_last_start(call, size)} + {size} + 1, {step})"
    ends = f"list_transform({numbers}, lambda number: {_time(call, 'number')})"
    return f"CASE WHEN {{0}} IS NULL THEN [NULL] ELSE {ends} END"


def _time_bound(call: Call) -> str:
    """A time as a number, after steps; within (-2^62, 2^62), since other numbers count as no time."""
    text, kind = "{0}", call.parts[0].type
    if pa.types.is_struct(kind):
        text, kind = f"struct_extract({text}, 'start')", kind.field("start").type
    if pa.types.is_timestamp(kind):
        text = f"epoch_us({text})"
    elif pa.types.is_date32(kind):
        text = f"({text} - DATE '1970-01-01')"
    text = f"CAST({text} AS HUGEINT)"
    for plus, width, unit in _steps(call):
        sum_ = f"({text} + {plus})"
        if width == 1:
            text = f"({sum_} * {unit})" if unit > 1 else sum_
        else:  # DuckDB's // goes towards zero: subtract the rest before
            text = f"(({sum_} - ({sum_} % {width} + {width}) % {width}) // {width} * {unit})"
    return f"CAST(greatest(least({text}, {MAX_COUNT}), {-MAX_COUNT - 1}) AS BIGINT)"


def _steps(call: Call) -> Iterator[tuple[int, int, int]]:
    numbers = _sizes(call)
    return zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)


def _sizes(call: Call) -> list[int]:
    return [int(option) for option in call.operation.options]


RENDERINGS: dict[str, Rendering] = {
    "cumulate_ends": _cumulate_ends,
    "hop_starts": _hop_starts,
    "relabel": "{0}",
    "time_bound": _time_bound,
    "tumble_end": _tumble_end,
    "tumble_start": _tumble_start,
    "window": "CASE WHEN {0} IS NOT NULL THEN {'start': {0}, 'end': {1}} END",
    "window_end": "struct_extract({0}, 'end')",
    "window_start": "struct_extract({0}, 'start')",
    "window_time": f"CASE WHEN {{0}} BETWEEN -{MAX_COUNT} AND {MAX_COUNT} THEN {{0}} END",
}
