"""Functions on Arrow arrays that templates call by name: what DuckDB itself cannot compute.

A function takes one chunked array per argument and returns an array of the same length. It loops over no rows. It must
give NULL, not raise, where a row has no result: the template decides whether that fails the row.

Cost: one call of Python per vector of DuckDB (2,048 rows), plus what the function costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.outside import checksums, edit_distance, lenient_json, real_numbers, row_hashes
from rejoinder.kernels.sums import wide_decimals
from rejoinder.kernels.zones.zone_names import zone_names


@dataclass(frozen=True)
class ArrowFunction:
    """A function by the name that templates use, which no other text may contain."""

    name: str
    function: Callable[..., pa.Array]
    result: pa.DataType
    makes_nulls: bool = False
    """Whether a row without NULL may have the result NULL. Such a function sees rows with NULL too."""

    @property
    def duckdb_result(self) -> str:
        """The type of the result, as DuckDB names it."""
        return duckdb_type(self.result)


ARROW_FUNCTIONS = (
    ArrowFunction(wide_decimals.FUNCTION, wide_decimals.calculate, wide_decimals.RESULT),
    ArrowFunction("arrow_crc32", checksums.crc32, pa.int64()),
    ArrowFunction("arrow_json_extract", lenient_json.extract, pa.string(), makes_nulls=True),
    ArrowFunction("arrow_json_last", lenient_json.last, pa.string(), makes_nulls=True),
    ArrowFunction("arrow_json_normal", lenient_json.normal, pa.string(), makes_nulls=True),
    ArrowFunction("arrow_json_keys", lenient_json.keys, pa.list_(pa.string()), makes_nulls=True),
    ArrowFunction("arrow_json_lengths", lenient_json.lengths, pa.int32(), makes_nulls=True),
    ArrowFunction("arrow_levenshtein", edit_distance.levenshtein, pa.int32()),
    ArrowFunction("arrow_murmur3", row_hashes.murmur3, pa.int32()),
    ArrowFunction("arrow_xxhash64", row_hashes.xxhash64, pa.int64()),
    ArrowFunction("arrow_zone_names", zone_names, pa.string(), makes_nulls=True),
    *(ArrowFunction(name, function, pa.float64()) for name, function in real_numbers.FUNCTIONS.items()),
)
