"""The progress of an epoch: rows, bytes, lag and notices, for monitoring."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from rejoinder.runtime.task import Report


@dataclass(frozen=True)
class Progress:
    """The progress of an epoch. `rows_out` counts changes as written, before they are netted over buckets.

    `lag_seconds` is the age of the newest file that the epoch read, at the commit; None if it read no file. `late` is
    the number of late rows, by view and source. `notices` report irregularities: a clock that is not trusted, files of
    old versions that could not be deleted, a column that is NULL in every record of a file (once for each column).
    """

    epoch: int
    seconds: float
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    bytes_written: int
    state_bytes: int
    lag_seconds: float | None = None
    late: dict[str, dict[str, int]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def shown_rows(totals: Report, hidden: Collection[str]) -> dict[str, int]:
    """Return the number of changes by view, without the `hidden` changelogs of in-memory sources."""
    return {name: rows for name, rows in totals.rows_out.items() if name not in hidden}


def lag_of(totals: Report, now: int) -> float | None:
    """Return the age in seconds of the newest file that was read; None if none was read."""
    newest = max(totals.newest.values(), default=0)
    return max(0, now - newest) / 1000 if newest else None
