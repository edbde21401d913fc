"""Functions of DOUBLE that DuckDB does not have, by NumPy. Cost: some 20 ns per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa


def by_numpy(function: Callable[..., Any]) -> Callable[..., pa.Array]:
    """The function of Arrow arrays that a function of NumPy arrays of DOUBLE makes; NULL where an argument is."""

    def calculate(*columns: pa.ChunkedArray) -> pa.Array:
        arrays = [column.combine_chunks() for column in columns]
        missing = np.zeros(len(arrays[0]), bool)
        for array in arrays:
            missing |= np.asarray(array.is_null())
        with np.errstate(all="ignore"):
            values = function(*(np.asarray(array.fill_null(0.0)) for array in arrays))
        return pa.array(values, pa.float64(), mask=missing)

    return calculate


FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "arrow_expm1": by_numpy(np.expm1),
    "arrow_hypot": by_numpy(np.hypot),
    "arrow_log1p": by_numpy(np.log1p),
}
"""By the names under which templates call them."""
