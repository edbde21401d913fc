"""Caps on the input of one epoch: checked in each task of round 0, and over all tasks in round 1.

A task whose own input exceeds a cap stops at that chunk. Spark's tasks do not know each other; their sum is known in
round 1, where their reports meet, before anything is looked up, stored or committed.
"""

from __future__ import annotations

from rejoinder.host.caps import cap_reached, caps
from rejoinder.runtime.task import Report

_REMEDY = (
    "read less per epoch: OPTIONS (maxBytesPerTrigger, maxFilesPerTrigger, for a topic maxOffsetsPerTrigger) of the "
    "source, or insert fewer rows at a time"
)


def check_intake(report: Report, epoch: int, place: str) -> None:
    """Raise `LimitReached` if a report counts more than an epoch may read. `place` says where it was counted."""
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
