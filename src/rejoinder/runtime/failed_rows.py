"""Rows on which an expression failed: counted where their path ends. The epoch fails if their sum is not zero.

Algebra: no epoch is committed in which an expression fails on a row of a relation, so before an epoch there is no such
row. The changes of an epoch, over all paths, rounds and buckets, add up to the number of such rows after it. Therefore
one sum is enough: it is zero if and only if every row on which an expression failed was cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rejoinder.kernels.arrow.columns import ERROR, diffs
from rejoinder.kernels.duckdb.row_errors import error_of, split_marked
from rejoinder.runtime.task import Report, Task


def count_failed(task: Task, rows: pa.Table) -> pa.Table:
    """Count the rows on which an expression failed, at the end of their path; return the others."""
    sound, failed = split_marked(rows)
    if failed is not None:
        counts = pa.table({"error": failed.column(ERROR), "rows": diffs(failed)})
        net = counts.group_by("error", use_threads=False).aggregate([("rows", "sum")])
        for text, count in zip(net.column("error").to_pylist(), net.column("rows_sum").to_pylist(), strict=True):
            task.report.failed[text] = task.report.failed.get(text, 0) + count
    return sound


def raise_failed(reports: Iterable[Report]) -> None:
    """Raise `EvaluationError` if rows on which an expression failed remain: the first error in order of its text."""
    net: dict[str, int] = {}
    for report in reports:
        for text, count in report.failed.items():
            net[text] = net.get(text, 0) + count
    if sum(net.values()):
        raise error_of(min([text for text, count in net.items() if count > 0] or net))
