"""Lookup: pair a stream with the rows of an arrangement that have the same key; one hop of a delta path.

Algebra: output = stream ⋈ A with multiplied diffs, where A depends on the mode: the rows of the arrangement (`inner`);
these, and a row of NULLs for each missing key (`left`); the keys that it has (`semi`) or lacks (`anti`). The step is
bilinear in the stream and A, so the changes of a join are the sum of such paths over its inputs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import (
    DIFF,
    ERROR,
    HASH,
    SEQUENCE,
    contiguous,
    drop_unit_diffs,
    has_diffs,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.row_errors import filter_project_marked, satisfying
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.runtime.failed_rows import count_failed
from rejoinder.runtime.matching.key_matching import Matching, aligned, totals
from rejoinder.runtime.task import Task, key_columns, needles, valid_keys


def lookup(task: Task, step: Lookup) -> None:
    """Run the step on the task's streams."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if step.mode == "inner":
        stream = needles(stream, step.key, hashed=step.hashed)
        pairs = _matching(task, stream, step).pairs(_carried(stream, step), step.fetched) if stream.num_rows else None
        pairs = _present(pairs, step) if pairs is not None else None
    else:
        pairs = _one_sided(task, stream, step)
    if pairs is None or not pairs.num_rows:
        return
    if step.outputs is not None:
        pairs = filter_project_marked(pairs, step.predicate, step.outputs, (DIFF,) if has_diffs(pairs) else ())
    elif step.predicate is not None:
        pairs = filter_project_marked(pairs, step.predicate, (), tuple(without(pairs, [ERROR]).column_names))
    if step.last:
        pairs = count_failed(task, pairs)
    if pairs.num_rows:
        task.streams[step.output] = pairs


def _carried(stream: pa.Table, step: Lookup) -> tuple[str, ...]:
    """Return the columns of the stream that pairs carry, including the error of rows on which an expression failed."""
    return (*step.carried, ERROR) if ERROR in stream.column_names else step.carried


def _matching(task: Task, stream: pa.Table, step: Lookup) -> Matching:
    runs = task.runs(step.arrangement, after=step.after)
    return Matching(
        stream,
        runs,
        step.key,
        step.arrangement,
        task.max_pairs,
        step.user,
        step.between,
        step.latest,
        step.strict,
        step.near,
    )


def _one_sided(task: Task, stream: pa.Table, step: Lookup) -> pa.Table:
    """Return the result of mode `left`, `semi` or `anti`.

    A pair on which the filter fails is not a match. It is part of the result, marked with its error.
    """
    matchable, unmatchable = _split(stream, step)
    matching = _matching(task, replaced(matchable, SEQUENCE, np.arange(matchable.num_rows)), step)
    pairs, failed = None, None
    if step.mode != "left" and step.filter is None:
        counts = matching.counts(None)
    else:
        pairs = matching.pairs((*_carried(matchable, step), SEQUENCE), step.fetched)
        if pairs is not None and step.filter is not None:
            pairs, failed = satisfying(pairs, step.filter)
        counts = totals(pairs, matchable.num_rows)
    names = [*_carried(matchable, step), *((DIFF,) if has_diffs(stream) else ())]
    if step.mode == "semi":
        result = _rows(take(matchable, np.flatnonzero(counts != 0)), names)
    else:
        without_match = take(matchable, np.flatnonzero(counts == 0)).select(unmatchable.column_names)
        result = _rows(contiguous([without_match, unmatchable]), names)
    if step.mode == "left":
        result = _with_padding(result, None if pairs is None else without(pairs, [SEQUENCE]), step)
    return result if failed is None else contiguous([result, aligned(_present(failed, step), result)])


def _split(stream: pa.Table, step: Lookup) -> tuple[pa.Table, pa.Table]:
    """Return the rows that can have a match, sorted by the hash of their key, and the others."""
    columns = key_columns(stream, step.key)
    can_match = valid_keys(columns, step.key)
    if step.guard is not None:
        passed = project(stream, [("passed", step.guard)]).column("passed").fill_null(False)
        can_match = np.asarray(passed) if can_match is None else can_match & np.asarray(passed)
    if not step.hashed or HASH not in stream.column_names:
        stream = replaced(stream, HASH, hash_rows(columns, stream.num_rows))
    if can_match is None:
        return sorted_by_hash(stream), stream.slice(0, 0)
    return sorted_by_hash(take(stream, np.flatnonzero(can_match))), take(stream, np.flatnonzero(~can_match))


def _rows(table: pa.Table, names: list[str]) -> pa.Table:
    """Return the named columns; without names, the hash, since a table without columns has no number of rows."""
    return drop_unit_diffs(table.select(names or [HASH]))


def _with_padding(unmatched: pa.Table, pairs: pa.Table | None, step: Lookup) -> pa.Table:
    """Return the pairs, and the unmatched rows with NULL in the fetched columns."""
    schema = {output: step.arrangement.schema.field(name).type for name, output in step.fetched}
    if step.present is not None:
        schema[step.present] = pa.bool_()
    padding = without(unmatched, [HASH])
    for name, kind in schema.items():
        padding = padding.append_column(name, pa.nulls(unmatched.num_rows, kind))
    if not padding.num_columns:
        padding = unmatched
    if pairs is None:
        return padding
    pairs = _present(pairs, step)
    if not padding.num_rows:
        return pairs
    names = [name for name in padding.column_names if name not in (DIFF, ERROR)]
    return contiguous([_cast(pairs, padding), padding]) if names != [HASH] else contiguous([pairs, padding])


def _present(pairs: pa.Table, step: Lookup) -> pa.Table:
    """Return pairs with the column that distinguishes them from padding, if the step has one."""
    if step.present is None:
        return pairs
    return replaced(pairs, step.present, pa.array(np.ones(pairs.num_rows, bool)))


def _cast(pairs: pa.Table, like: pa.Table) -> pa.Table:
    """Return pairs with their columns in the order of the padding."""
    names = [name for name in like.column_names if name in pairs.column_names]
    names += [name for name in (DIFF, ERROR) if name in pairs.column_names and name not in names]
    return pa.table({name: single_chunk(pairs.column(name)) for name in names})
