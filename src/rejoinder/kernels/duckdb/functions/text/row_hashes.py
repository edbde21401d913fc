"""Hashes of rows: each argument is hashed with the hash of those before it as the seed; NULL leaves it as it is."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound


def _value(place: int, kind: pa.DataType) -> str:
    """An argument as one of the types that the functions know."""
    text = f"{{{place}}}"
    if pa.types.is_floating(kind) or pa.types.is_binary(kind) or pa.types.is_int64(kind):
        return text
    if pa.types.is_string(kind):
        return f"encode({text})"
    if pa.types.is_timestamp(kind):
        return f"epoch_us({text})"
    if pa.types.is_decimal(kind):
        return f"CAST(replace(CAST({text} AS VARCHAR), '.', '') AS BIGINT)"
    if pa.types.is_date(kind):
        return f"CAST({text} - DATE '1970-01-01' AS INTEGER)"
    return f"CAST({text} AS INTEGER)"


def _hash(function: str, seed: str) -> Callable[[Call], str]:
    def rendering(call: Call) -> str:
        bindings: list[Callable[[str], str]] = []
        total = seed
        for place, part in enumerate(call.parts):
            hashed = f"{function}({_value(place, part.type)}, {total})"
            total, wrap = bound(f"CASE WHEN {{{place}}} IS NULL THEN {total} ELSE {hashed} END")
            bindings.append(wrap)
        for wrap in reversed(bindings):
            total = wrap(total)
        return total

    return rendering


RENDERINGS: dict[str, Rendering] = {
    "hash": _hash("arrow_murmur3", "CAST(42 AS INTEGER)"),
    "xxhash64": _hash("arrow_xxhash64", "CAST(42 AS BIGINT)"),
}
