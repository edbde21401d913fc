"""Levenshtein distances of many pairs of texts at once, in code points.

Cost: the product of the longest lengths, in steps over all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[Any]


def levenshtein(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """The distance of each pair as an INT; NULL if a text is NULL."""
    missing = np.asarray(left.combine_chunks().is_null()) | np.asarray(right.combine_chunks().is_null())
    (first, first_sizes), (second, second_sizes) = _codes(left), _codes(right)
    previous = np.tile(np.arange(second.shape[1] + 1, dtype=np.int32), (len(first), 1))
    result = np.where(first_sizes == 0, second_sizes, 0).astype(np.int32)
    for row in range(first.shape[1]):
        current = np.empty_like(previous)
        current[:, 0] = row + 1
        for column in range(second.shape[1]):
            changed = previous[:, column] + (first[:, row] != second[:, column])
            either = np.minimum(previous[:, column + 1], current[:, column]) + 1
            current[:, column + 1] = np.minimum(changed, either)
        ended = first_sizes == row + 1
        result[ended] = current[ended, second_sizes[ended]]
        previous = current
    return pa.array(result, mask=missing)


def _codes(texts: pa.ChunkedArray) -> tuple[Codes, Codes]:
    """A matrix of code points, a text in a row, and the lengths."""
    values = texts.combine_chunks().fill_null("")
    sizes = np.asarray(pc.utf8_length(values)).astype(np.int64)
    padded = pc.utf8_rpad(values.cast(pa.large_string()), int(sizes.max(initial=0)), " ")
    offsets = np.frombuffer(padded.buffers()[1], np.int64)[padded.offset : padded.offset + len(padded) + 1]
    joined = memoryview(padded.buffers()[2] or b"")[offsets[0] : offsets[-1]]
    codes = np.frombuffer(str(joined, "utf-8").encode("utf-32-le"), np.uint32)
    return codes.reshape(len(values), -1) if len(codes) else np.zeros((len(values), 0), np.uint32), sizes
