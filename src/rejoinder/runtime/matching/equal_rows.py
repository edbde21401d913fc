"""Find the rows of a run that equal some rows in all columns; NULL equals NULL.

Cost: O(n log m) for n rows in a run of m, and a comparison of values for each pair of equal hashes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, hashes, payload_names, single_chunk
from rejoinder.kernels.arrow.equality import not_distinct
from rejoinder.kernels.arrow.probe import match


def equal_rows(rows: pa.Table, run: pa.Table) -> tuple[Int64, Int64]:
    """Return the positions of equal rows in both tables, which are sorted by hash; the run may have more columns."""
    left, right = match(hashes(rows), hashes(run))
    same = np.ones(len(left), bool)
    for name in payload_names(rows) if len(left) else []:
        ours = single_chunk(rows.column(name)).take(pa.array(left))
        theirs = single_chunk(run.column(name)).take(pa.array(right))
        same &= not_distinct(ours, theirs)
    return left[same], right[same]
