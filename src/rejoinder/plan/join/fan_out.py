"""Fan-out: how many rows a hop is expected to find for a row, by the statistics of its arrangement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rejoinder.plan.join.hop import Hop

UNKNOWN_FANOUT = 10.0
UNLINKED_FANOUT = 1e6
FILTERED = 0.3
"""The share of rows that are expected to pass the filters of an input."""
FEW = 1_000
"""Arrangements with fewer rows are all alike."""
SIMILAR = 2.0


@dataclass(frozen=True)
class Statistics:
    """Rows and distinct keys of an arrangement."""

    rows: int
    keys: int

    @property
    def fanout(self) -> float:
        """Expected number of rows for a key."""
        return self.rows / max(1, self.keys)


def are_similar(before: Mapping[str, Statistics], after: Mapping[str, Statistics]) -> bool:
    """Whether no arrangement has changed so much that another order of hops may be better: by a factor of two."""
    return before.keys() == after.keys() and all(
        _within(SIMILAR, max(FEW, before[name].rows), max(FEW, after[name].rows))
        and _within(SIMILAR, before[name].fanout, after[name].fanout)
        for name in after
    )


def _within(factor: float, one: float, other: float) -> bool:
    return max(one, other) <= factor * min(one, other)


def expected_fanout(
    hop: Hop, statistics: Statistics | None, primary_key: Collection[str], *, is_filtered: bool
) -> float:
    """The expected number of result rows per row. `statistics` and `primary_key` are those of the arrangement."""
    if hop.latest is not None:
        return 1.0
    expected = _rows_per_key(hop, statistics, primary_key) * (FILTERED if is_filtered else 1.0)
    if hop.mode == "left":
        return max(1.0, expected)
    return expected if hop.mode == "inner" else 0.5


def _rows_per_key(hop: Hop, statistics: Statistics | None, primary_key: Collection[str]) -> float:
    if statistics is not None and statistics.rows:
        return float(statistics.rows) if hop.everywhere else statistics.fanout
    if not hop.key.parts:
        return UNLINKED_FANOUT
    columns = {part.columns[0] for part in hop.arrangement.key.parts if part.is_column}
    return 1.0 if primary_key and columns.issuperset(primary_key) else UNKNOWN_FANOUT
