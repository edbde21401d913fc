"""The groups that an epoch changes: their changed rows, and what they were before."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rejoinder.kernels.arrow.columns import Int64, single_chunk
from rejoinder.kernels.sums.accumulate import taken


@dataclass(frozen=True)
class GroupChange:
    """The changed rows, ordered by group."""

    rows: pa.Table
    group_of: Int64
    """Group number of each row."""
    starts: Int64
    """First row of each group."""
    keys: pa.Table
    """Grouping columns and hash, one row per group."""

    def column(self, name: str) -> pa.Array:
        """Return a column of the rows."""
        return single_chunk(self.rows.column(name))


@dataclass(frozen=True)
class GroupsBefore:
    """The rows of the changed groups before this epoch; `row_of` is that of each group, −1 for a new group."""

    rows: pa.Table
    row_of: Int64

    def column(self, name: str) -> pa.Array:
        """Return a column of the old rows by group, NULL for new groups."""
        return taken(single_chunk(self.rows.column(name)), self.row_of)
