"""The progress of an epoch: rows, bytes, lag and notices, for monitoring."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rejoinder.engine.time.processing_time import system_clock
from rejoinder.runtime.task import Report
from rejoinder.state.epoch_log import EpochEntry, in_milliseconds, largest

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine
    from rejoinder.engine.epoch import Attempt

LOG = logging.getLogger("rejoinder.epoch")


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


def log_progress(progress: Progress) -> Progress:
    """Log one line for an epoch. The record has the same data as a dict (`progress`), for logs in JSON."""
    LOG.info(
        "epoch %d: %d rows in, %d changes, %.3f s, %d bytes written, state %d bytes, lag %s, %d late",
        progress.epoch,
        sum(progress.rows_in.values()),
        sum(progress.rows_out.values()),
        progress.seconds,
        progress.bytes_written,
        progress.state_bytes,
        "-" if progress.lag_seconds is None else f"{progress.lag_seconds:.3f} s",
        sum(count for counts in progress.late.values() for count in counts.values()),
        extra={"progress": asdict(progress)} if LOG.isEnabledFor(logging.INFO) else None,
    )
    return progress


def shown_rows(totals: Report, hidden: Collection[str]) -> dict[str, int]:
    """Return the number of changes by view, without the `hidden` changelogs of in-memory sources."""
    return {name: rows for name, rows in totals.rows_out.items() if name not in hidden}


def lag_of(totals: Report, now: int) -> float | None:
    """Return the age in seconds of the newest file that was read; None if none was read."""
    newest = max(totals.newest.values(), default=0)
    return max(0, now - newest) / 1000 if newest else None


def entry_of(engine: Engine, epoch: int, now: int, done: Attempt, seconds: float) -> EpochEntry:
    """Return the entry of the epoch log for an epoch that is going to be committed. It took `seconds` so far."""
    parts = in_milliseconds({"rounds": seconds - done.emission_seconds, "emission": done.emission_seconds})
    lag = lag_of(done.totals, engine.clock())
    return EpochEntry(
        epoch,
        now,
        parts if engine.clock is system_clock else {},
        largest(done.totals.rows_in),
        largest(shown_rows(done.totals, engine.dataflow.source_changes)),
        done.written,
        sum(part.bytes for parts in done.version.state.arrangements.values() for part in parts),
        sum(count for counts in done.totals.late.values() for count in counts.values()),
        None if lag is None else round(lag * 1000),
    )
