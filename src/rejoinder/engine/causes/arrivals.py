"""When rows of a relation arrived and were retracted, as far as changelogs and arrangements tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.change_replay import changelog_name, has_history
from rejoinder.formats.text.plain_rows import Row, python_rows, sort_key
from rejoinder.ir.catalog import Source, View
from rejoinder.ir.identities import SourceRows
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, diffs
from rejoinder.state.reading.changelog_reader import history_start, read_changes
from rejoinder.store.runs.run import read_run

Key = tuple[tuple[int, str, object], ...]


@dataclass(frozen=True)
class Arrival:
    """The last epoch in which a row was inserted, and the epoch after that in which it was retracted."""

    epoch: int | None = None
    is_exact: bool = True
    """Otherwise, the row was there at or before the end of the epoch."""
    until: int | None = None


UNKNOWN = Arrival()


def row_key(row: Row) -> Key:
    """Return a value that is equal for equal rows."""
    return tuple(sort_key(row))


def arrivals(engine: Engine, relation: Source | View, rows: pa.Table, epoch: int) -> dict[Key, Arrival]:
    """Return the arrivals of rows that a relation had at an epoch, by `row_key`. Cost: one pass over its changes."""
    name = changelog_name(relation)
    if has_history(relation) and name in engine.dataflow.views:
        return _from_changelog(engine, relation, name, rows, epoch)
    return _from_arrangement(engine, relation, rows)


def _from_changelog(
    engine: Engine, relation: Source | View, name: str, rows: pa.Table, epoch: int
) -> dict[Key, Arrival]:
    manifest = engine.version.manifest
    assert manifest is not None, "an epoch is committed"
    changes = read_changes(engine.store, manifest, name, relation.schema, after=-2, until=manifest.epoch)
    changes = like_rows(changes, rows).select([*rows.column_names, EPOCH, DIFF]).sort_by(EPOCH)
    first = max(history_start(manifest, name) or -1, manifest.extra["created"].get(name, -1))
    result: dict[Key, Arrival] = {}
    for change in python_rows(changes):
        number, diff = change.pop(EPOCH), change.pop(DIFF)
        key = row_key(change)
        if diff > 0 and number <= epoch:
            result[key] = Arrival(max(number, first), number > first)
        elif diff < 0 and number > epoch and key in result and result[key].until is None:
            before = result[key]
            result[key] = Arrival(before.epoch, before.is_exact, number)
    return result


def _from_arrangement(engine: Engine, relation: Source | View, rows: pa.Table) -> dict[Key, Arrival]:
    """Return the epochs of the runs that hold the rows. A compacted run spans several epochs."""
    version = engine.version
    names = [
        arrangement.id
        for arrangement in version.dataflow.arrangements
        if isinstance(arrangement.relation, SourceRows)
        and arrangement.relation.source == relation.name
        and set(relation.schema.names) <= set(arrangement.schema.names)
    ]
    result: dict[Key, Arrival] = {}
    for part in version.state.arrangements.get(names[0], ()) if names else ():
        for ref in sorted(part.refs, key=lambda each: each.epochs):
            run = read_run(engine.store, ref)
            inserted = run.filter(pa.array(np.asarray(diffs(run)) > 0))
            for row in python_rows(like_rows(inserted, rows).select(rows.column_names)):
                result[row_key(row)] = Arrival(ref.epochs[1], ref.epochs[0] == ref.epochs[1])
    return result


def like_rows(table: pa.Table, rows: pa.Table) -> pa.Table:
    """Return the rows of a table whose value in each column is among those of `rows`: a superset of equal rows."""
    for name in rows.column_names:
        if not pa.types.is_nested(rows.schema.field(name).type):
            table = table.filter(pc.is_in(table.column(name), value_set=rows.column(name).combine_chunks()))
    return table


def commit_times(engine: Engine) -> Mapping[int, int]:
    """Return the commit times of epochs, in milliseconds."""
    return engine.version.timeline.times(engine.store)
