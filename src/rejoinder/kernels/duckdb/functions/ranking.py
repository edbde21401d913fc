"""What window functions need besides the values that `kernels.windows` computes: sort keys, and ranks as results.

A sort key is DuckDB's own: bytes that compare as the values do, one value after the other, so that the key of the first
values is a prefix. State on disk depends on these bytes, and `tests/unit/kernels/duckdb` pins them.
"""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering


def _sort_key(call: Call) -> str:
    if not call.parts:
        return "''::BLOB"
    words = "".join(f"{{{at}}}, '{order}', " for at, order in enumerate(call.operation.options))
    # Short keys of fixed width would be integers; a text at the end makes them bytes, and is cut off again.
    key = f"create_sort_key({words}'', 'ASC NULLS FIRST')"
    return f"({key})[1:octet_length({key}) - 2]"


def _ntile(call: Call) -> str:
    """The bucket of row {0} of {1}: the first {1} % k buckets have one row more than the others."""
    (buckets,) = call.operation.options
    row, size, extra = "({0} - 1)", f"({{1}} // {buckets})", f"({{1}} % {buckets})"
    larger = f"{extra} * ({size} + 1)"
    within = f"WHEN {row} < {larger} THEN {row} // ({size} + 1) ELSE {extra} + ({row} - {larger}) // {size}"
    return f"CAST(CASE {within} END + 1 AS INTEGER)"


def _shard(call: Call) -> str:
    """One of so many shards, which depends on the values alone."""
    parts = "".join(f"{{{at}}}, 'ASC NULLS FIRST', " for at in range(len(call.parts)))
    return f"CAST(md5_number(create_sort_key({parts}'', 'ASC NULLS FIRST')) % {call.operation.options[0]} AS INTEGER)"


RENDERINGS: dict[str, Rendering] = {
    "cume_dist": "({0}::DOUBLE / {1}::DOUBLE)",
    "ntile": _ntile,
    "percent_rank": "CASE WHEN {1} > 1 THEN ({0} - 1)::DOUBLE / ({1} - 1)::DOUBLE ELSE 0.0::DOUBLE END",
    "rank": "CAST({0} AS INTEGER)",
    "shard": _shard,
    "sort_key": _sort_key,
    "value_of_row": lambda call: f"CASE WHEN {{0}} = {call.operation.options[0]} THEN {{1}} END",
}
