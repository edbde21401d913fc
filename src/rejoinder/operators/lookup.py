"""Lookup: pair a stream with the rows of an arrangement that have the same key; one hop of a delta path.

Algebra: output = stream ⋈ arrangement, multiplicities multiplied; bilinear in both, so the changes of a join are the
sum over its inputs of such paths. Cost: binary searches for the smaller of stream and run, per run, plus the pairs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.columns import DIFF, HASH, Int64, diffs, drop_unit_diffs, has_diffs, hashes, single_chunk
from rejoinder.kernels.evaluate import filter_project
from rejoinder.kernels.probe import keep_equal, match
from rejoinder.operators.task import Task, key_columns, needles
from rejoinder.plan.physical import Lookup
from rejoinder.store.run import read_run


def lookup(task: Task, step: Lookup) -> None:
    """Run the step on the task's streams."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    stream = needles(stream, step.key, hashed=step.hashed)
    if not stream.num_rows:
        return
    refs = task.refs(step.arrangement.id, after=step.after)
    pairs = join_runs(stream, [read_run(task.store, ref) for ref in refs], step)
    if pairs is None:
        return
    if step.predicate is not None or step.outputs is not None:
        kept = (DIFF,) if has_diffs(pairs) else ()
        outputs = step.outputs
        if outputs is None:
            pairs = filter_project(pairs, step.predicate, (), keep=tuple(pairs.column_names))
        else:
            pairs = filter_project(pairs, step.predicate, outputs, keep=kept)
    if pairs.num_rows:
        task.streams[step.output] = pairs


def join_runs(stream: pa.Table, runs: list[pa.Table], step: Lookup) -> pa.Table | None:
    """Pair a sorted stream with each run; the result has the carried and the fetched columns and `__diff`."""
    keys = key_columns(stream, step.key)
    stream_hashes = hashes(stream)
    signed = has_diffs(stream) or any(has_diffs(run) for run in runs)
    stream_diffs = diffs(stream) if signed else None
    lefts: list[Int64] = []
    products: list[Int64] = []
    fetched: list[list[pa.Array]] = [[] for _ in step.fetched]
    for run in runs:
        left, right = match(stream_hashes, hashes(run))
        if not len(left):
            continue
        run_keys = key_columns(run, step.arrangement.key)
        if not step.key.exact or any(column.null_count for column in run_keys):
            left, right = keep_equal(left, right, list(zip(keys, run_keys, strict=True)))
        if not len(left):
            continue
        lefts.append(left)
        positions = pa.array(right)
        for arrays, (name, _) in zip(fetched, step.fetched, strict=True):
            arrays.append(single_chunk(run.column(name)).take(positions))
        if stream_diffs is not None:
            here = stream_diffs[left]
            products.append(here * diffs(run)[right] if has_diffs(run) else here)
    if not lefts:
        return None
    rows = pa.array(np.concatenate(lefts))
    columns = {name: single_chunk(stream.column(name)).take(rows) for name in step.carried}
    columns |= {output: pa.chunked_array(arrays) for arrays, (_, output) in zip(fetched, step.fetched, strict=True)}
    if signed:
        columns[DIFF] = pa.array(np.concatenate(products))
    if not columns:
        columns[HASH] = single_chunk(stream.column(HASH)).take(rows)
    return drop_unit_diffs(pa.table(columns))
