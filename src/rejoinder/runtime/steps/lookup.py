"""Lookup: pair a stream with the rows of an arrangement that have the same key; one hop of a delta path.

Algebra: output = stream ⋈ A, multiplicities multiplied, where A is what the mode makes of the arrangement: its rows
(`inner`); its rows, and one row of NULLs for each key that it lacks (`left`); the keys that it has (`semi`) or lacks
(`anti`). Bilinear in the stream and in A, so the changes of a join are the sum over its inputs of such paths.
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
from rejoinder.plan.physical.steps import Lookup
from rejoinder.runtime.failed_rows import settled
from rejoinder.runtime.matching.key_matching import Matching, aligned, totals
from rejoinder.runtime.task import Task, key_columns, needles, valid_keys


def lookup(task: Task, step: Lookup) -> None:
    """Run the step on the task's streams."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return
    if step.mode == "inner":
        stream = needles(stream, step.key, hashed=step.hashed)
        found = _matching(task, stream, step).pairs(_carried(stream, step), step.fetched) if stream.num_rows else None
        found = _present(found, step) if found is not None else None
    else:
        found = _one_sided(task, stream, step)
    if found is None or not found.num_rows:
        return
    if step.outputs is not None:
        found = filter_project_marked(found, step.predicate, step.outputs, (DIFF,) if has_diffs(found) else ())
    elif step.predicate is not None:
        found = filter_project_marked(found, step.predicate, (), tuple(without(found, [ERROR]).column_names))
    if step.last:
        found = settled(task, found)
    if found.num_rows:
        task.streams[step.output] = found


def _carried(stream: pa.Table, step: Lookup) -> tuple[str, ...]:
    """The columns of the stream that pairs have: a row on which something failed stays marked."""
    return (*step.carried, ERROR) if ERROR in stream.column_names else step.carried


def _matching(task: Task, stream: pa.Table, step: Lookup) -> Matching:
    runs = task.runs(step.arrangement.id, after=step.after)
    return Matching(
        stream,
        runs,
        step.key,
        step.arrangement,
        task.max_pairs,
        step.output.split("/")[0],
        step.between,
        step.latest,
        step.strict,
        step.near,
    )


def _one_sided(task: Task, stream: pa.Table, step: Lookup) -> pa.Table:
    """Rows with a partner and rows without one, and what the mode makes of them.

    A pair on which the filter fails is no partner. It goes on beside the others, marked.
    """
    able, unable = _split(stream, step)
    matching = _matching(task, replaced(able, SEQUENCE, np.arange(able.num_rows)), step)
    pairs, failed = None, None
    if step.mode != "left" and step.filter is None:
        counts = matching.counts(None)
    else:
        pairs = matching.pairs((*_carried(able, step), SEQUENCE), step.fetched)
        if pairs is not None and step.filter is not None:
            pairs, failed = satisfying(pairs, step.filter)
        counts = totals(pairs, able.num_rows)
    names = [*_carried(able, step), *((DIFF,) if has_diffs(stream) else ())]
    if step.mode == "semi":
        result = _rows(take(able, np.flatnonzero(counts != 0)), names)
    else:
        alone = contiguous([take(able, np.flatnonzero(counts == 0)).select(unable.column_names), unable])
        result = _rows(alone, names)
    if step.mode == "left":
        result = _with_padding(result, None if pairs is None else without(pairs, [SEQUENCE]), step)
    return result if failed is None else contiguous([result, aligned(_present(failed, step), result)])


def _split(stream: pa.Table, step: Lookup) -> tuple[pa.Table, pa.Table]:
    """The rows that can have a partner, sorted by the hash of their key, and the others."""
    columns = key_columns(stream, step.key)
    able = valid_keys(columns, step.key)
    if step.guard is not None:
        passed = project(stream, [("passed", step.guard)]).column("passed").fill_null(False)
        able = np.asarray(passed) if able is None else able & np.asarray(passed)
    if not step.hashed or HASH not in stream.column_names:
        stream = replaced(stream, HASH, hash_rows(columns, stream.num_rows))
    if able is None:
        return sorted_by_hash(stream), stream.slice(0, 0)
    return sorted_by_hash(take(stream, np.flatnonzero(able))), take(stream, np.flatnonzero(~able))


def _rows(table: pa.Table, names: list[str]) -> pa.Table:
    """Some columns; with none of them, the rows still have to be counted."""
    return drop_unit_diffs(table.select(names or [HASH]))


def _with_padding(alone: pa.Table, pairs: pa.Table | None, step: Lookup) -> pa.Table:
    schema = {output: step.arrangement.schema.field(name).type for name, output in step.fetched}
    if step.present is not None:
        schema[step.present] = pa.bool_()
    padding = without(alone, [HASH])
    for name, kind in schema.items():
        padding = padding.append_column(name, pa.nulls(alone.num_rows, kind))
    if not padding.num_columns:
        padding = alone
    if pairs is None:
        return padding
    pairs = _present(pairs, step)
    if not padding.num_rows:
        return pairs
    names = [name for name in padding.column_names if name not in (DIFF, ERROR)]
    return contiguous([_cast(pairs, padding), padding]) if names != [HASH] else contiguous([pairs, padding])


def _present(pairs: pa.Table, step: Lookup) -> pa.Table:
    """Pairs, with the column that tells them from padding if somebody asks for it."""
    if step.present is None:
        return pairs
    return replaced(pairs, step.present, pa.array(np.ones(pairs.num_rows, bool)))


def _cast(pairs: pa.Table, like: pa.Table) -> pa.Table:
    """Columns of pairs in the order of the padding's."""
    names = [name for name in like.column_names if name in pairs.column_names]
    names += [name for name in (DIFF, ERROR) if name in pairs.column_names and name not in names]
    return pa.table({name: single_chunk(pairs.column(name)) for name in names})
