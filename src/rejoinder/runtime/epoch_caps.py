"""Caps on what one epoch reads: each task stops at its own sum, and the first bucket at the sum of all tasks.

A task that goes beyond the cap by itself is stopped at the chunk that does. Tasks of Spark do not know each other;
what they read together is known where their reports meet, before anything is looked up, kept or committed.
"""

from __future__ import annotations

from rejoinder.host.caps import cap_reached, caps
from rejoinder.runtime.task import Report

_REMEDY = (
    "read less per epoch: OPTIONS (maxBytesPerTrigger, maxFilesPerTrigger, for a topic maxOffsetsPerTrigger) of the "
    "source, or insert fewer rows at a time"
)


def check_intake(report: Report, epoch: int, place: str) -> None:
    """Raise `LimitReached` if what a report counts is more than an epoch may read. `place` is where it was counted."""
    limits = caps()
    rows, size = sum(report.rows_in.values()), sum(report.bytes_in.values())
    for amount, unit, cap in ((rows, "rows", "max_epoch_rows"), (size, "bytes", "max_epoch_bytes")):
        if amount > getattr(limits, cap):
            counts = report.rows_in if unit == "rows" else report.bytes_in
            source, most = max(counts.items(), key=lambda item: item[1])
            raise cap_reached(
                f"epoch {epoch} reads too many {unit}",
                cap,
                f"{amount:,} {unit} or more, {most:,} of them of `{source}`; counted {place}",
                remedy=_REMEDY,
            )
