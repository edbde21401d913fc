"""Rows on which an expression failed: counted where their path ends, and raised if any are left over in the epoch.

Algebra: nothing is committed while an expression fails on a row of a relation, so there is no such row before an epoch.
The changes of an epoch, over all paths, rounds and buckets, add up to the number of such rows after it. Therefore one
sum is enough: it is zero if and only if every row on which something failed was cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rejoinder.kernels.arrow.columns import ERROR, diffs
from rejoinder.kernels.duckdb.row_errors import error_of, split_marked
from rejoinder.runtime.task import Report, Task


def settled(task: Task, rows: pa.Table) -> pa.Table:
    """Count the rows on which something failed, at the end of their path, and give the others."""
    sound, failed = split_marked(rows)
    if failed is not None:
        counted = pa.table({"error": failed.column(ERROR), "rows": diffs(failed)})
        net = counted.group_by("error", use_threads=False).aggregate([("rows", "sum")])
        for text, count in zip(net.column("error").to_pylist(), net.column("rows_sum").to_pylist(), strict=True):
            task.report.failed[text] = task.report.failed.get(text, 0) + count
    return sound


def raise_failed(reports: Iterable[Report]) -> None:
    """Raise `EvaluationError` if rows on which an expression failed are left over: the first error, by its text."""
    net: dict[str, int] = {}
    for report in reports:
        for text, count in report.failed.items():
            net[text] = net.get(text, 0) + count
    if sum(net.values()):
        raise error_of(min([text for text, count in net.items() if count > 0] or net))
