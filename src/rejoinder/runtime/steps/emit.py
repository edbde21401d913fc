"""Emit: write changes to the changelog of a view, and compact old ones."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.kernels.arrow.columns import HASH, SEQUENCE, replaced, without
from rejoinder.kernels.arrow.consolidate import consolidate_groups, row_hashes
from rejoinder.kernels.arrow.sorting import LAST_HASH, order_by_hash
from rejoinder.plan.physical.steps import Emit
from rejoinder.runtime.task import Task
from rejoinder.store.runs.run import write_run
from rejoinder.store.runs.spine import Compaction, Spine, insert, level_of, maintain

CHANGELOG_FAN = 16


def emit(task: Task, step: Emit) -> None:
    """Write a stream's net change to the view's changelog."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    write_changes(task, step.view, without(stream, [HASH, SEQUENCE]))


def write_changes(task: Task, view: str, changes: pa.Table) -> None:
    """Write net changes to the changelog of a view, sorted by row hash so that readers can read ranges in parallel."""
    keys = row_hashes(changes)
    table = consolidate_groups(replaced(changes, HASH, keys), keys, order_by_hash(keys))
    if not table.num_rows:
        return
    level = level_of(table.num_rows, CHANGELOG_FAN)
    ref = write_run(task.store, table, epoch=task.epoch, level=level, bounds=(0, LAST_HASH))
    task.report.emitted.setdefault(view, []).append(ref)
    task.report.rows_out[view] = task.report.rows_out.get(view, 0) + table.num_rows


def insert_changelog_runs(task: Task) -> None:
    """In the last round: insert the new changelog runs of this bucket into their spines and compact old epochs."""
    compaction = Compaction(CHANGELOG_FAN, changelog=True, since=task.epoch - task.history)
    for view, refs in task.report.emitted.items():
        spine = task.before.get(view, Spine())
        for ref in refs:
            spine = insert(spine, ref)
        task.report.changelogs[view] = maintain(task.store, spine, compaction, epoch=task.epoch, bounds=(0, LAST_HASH))
    task.report.emitted.clear()
