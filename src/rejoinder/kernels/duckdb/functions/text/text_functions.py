"""Functions on strings."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call, Literal
from rejoinder.kernels.duckdb.functions.parts import letter_case
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing, listed, places


def _positive(place: int) -> str:
    return f"CASE WHEN {{{place}}} < 0 THEN 0 ELSE {{{place}}} END"


def _trim(verb: str) -> Callable[[Call], str]:
    return lambda call: f"{verb}({{0}}, ' ')" if len(call.parts) == 1 else f"{verb}({{0}}, {{1}})"


def _substring(call: Call) -> str:
    start = call.parts[1]
    if isinstance(start, Literal) and start.value is not None and start.value >= 0:
        return f"substring({{0}}, {max(start.value, 1)}, {_positive(2)})"
    first = "CASE WHEN {1} > 0 THEN {1} - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    first = f"CAST({first} AS BIGINT)"
    # A length that is NULL makes the sum NULL, and CASE keeps it so, which greatest() would not.
    rest = f"(least({first}, 0) + {{2}})"
    taken = f"substring({{0}}, greatest({first}, 0) + 1, CASE WHEN {rest} < 0 THEN 0 ELSE {rest} END)"
    return f"CASE WHEN {{1}} IS NOT NULL THEN {taken} END"


def _pad(verb: str) -> Callable[[Call], str]:
    padded = f"CASE WHEN {{2}} = '' THEN left({{0}}, {_positive(1)}) ELSE {verb}({{0}}, {_positive(1)}, {{2}}) END"
    return lambda call: _capped(call, padded, "{1}")


def _repeat(call: Call) -> str:
    return _capped(call, f"repeat({{0}}, {_positive(1)})", "length({0})::HUGEINT * {1}")


def _capped(call: Call, template: str, length: str) -> str:
    """A template that makes a text; the row fails if its length is more than the option of the call."""
    if not call.operation.options:
        return template
    (most,) = call.operation.options
    message = failing(f"a text would have more than {most} characters; the cap is max_value_length")
    return f"CASE WHEN {length} > {most} THEN {message} ELSE {template} END"


def _length(call: Call) -> str:
    return f"CAST({'octet_length' if pa.types.is_binary(call.parts[0].type) else 'length'}({{0}}) AS INTEGER)"


RENDERINGS: dict[str, Rendering] = {
    "ascii": "ascii({0})",
    "concat": lambda call: f"({places(len(call.parts), separator=' || ')})",
    "concat_ws": listed("concat_ws"),
    "contains": "contains({0}, {1})",
    "endswith": "suffix({0}, {1})",
    "instr": "CAST(instr({0}, {1}) AS INTEGER)",
    "left": f"left({{0}}, {_positive(1)})",
    "length": _length,
    "lower": letter_case.lower("{0}"),
    "lpad": _pad("lpad"),
    "ltrim": _trim("ltrim"),
    "repeat": _repeat,
    "replace": "replace({0}, {1}, {2})",
    # DuckDB reverses what people see as letters, Spark code points.
    "reverse": "array_to_string(list_reverse(string_split({0}, '')), '')",
    "right": f"right({{0}}, {_positive(1)})",
    "rpad": _pad("rpad"),
    "rtrim": _trim("rtrim"),
    "split_part": (
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {{2}} = 0 THEN {failing('SPLIT_PART counts from 1')} "
        "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE split_part({0}, {1}, {2}) END"
    ),
    "startswith": "starts_with({0}, {1})",
    "substring": _substring,
    "translate": "translate({0}, {1}, {2})",
    "trim": _trim("trim"),
    "upper": letter_case.upper("{0}"),
}
