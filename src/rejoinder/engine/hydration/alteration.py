"""ALTER STREAM, TABLE or CHANGELOG: the state of a source with other columns. No file is read or written.

References to runs list the column changes, and readers apply them (`store.runs.changed_columns`). So an added column
is in every arrangement of the source, with its default, and files stay where they are. Only what is sorted by the hash
of a whole row is built again, since a column more or less changes that hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rejoinder.engine.version import Version
from rejoinder.ir.catalog import Source
from rejoinder.ir.evolution.column_changes import ColumnChange, changed_schema, changes_hash, new_names
from rejoinder.ir.expressions.expression import Expression, column, literal, renamed
from rejoinder.ir.identities import SideOutput, SourceRows
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.retention_bound import Retention
from rejoinder.state.flow_state import Parts
from rejoinder.state.watermarks import Snapshot

Changes = Mapping[str, Sequence[ColumnChange]]
"""What statements did to the columns of sources, by source."""


def altered(version: Version, changes: Changes) -> Version:
    """Return the version in which sources have other columns. Its catalog and its views are those of before."""
    changes = {source: made for source, made in changes.items() if made}
    if not changes:
        return version
    dataflow, state, program = version.plan.dataflow, version.state, version.plan.program
    arrangements, ids, retentions = [], dict[str, str](), dict(dataflow.retentions)
    stored: Parts = dict(state.arrangements)
    for arrangement in dataflow.arrangements:
        made = changes.get(arrangement.relation.source, ()) if isinstance(arrangement.relation, SourceRows) else ()
        if not made or not isinstance(arrangement.relation, SourceRows):
            arrangements.append(arrangement)
            continue
        parts, retention = stored.pop(arrangement.id, None), retentions.pop(arrangement.id, None)
        kept = retention is None or _retention(retention, made)
        if parts is None or kept is None:  # rows expire by a column that no longer exists
            continue
        changed = _arrangement(arrangement, made, program.sources.get(arrangement.relation.source))
        arrangements.append(changed)
        ids[arrangement.id] = changed.id
        stored[changed.id] = _parts(parts, made, by_row=False)
        if isinstance(kept, Retention):
            retentions[changed.id] = kept
    changelogs, views = dict(state.changelogs), dict(dataflow.views)
    for source, made in changes.items():
        name = str(SideOutput(source, "changes"))
        if name in changelogs:
            changelogs[name] = _parts(changelogs[name], made, by_row=True)
            views[name] = changed_schema(views[name], made)
    statistics = {ids.get(name, name): counts for name, counts in program.statistics.items()}
    new_dataflow = replace(dataflow, arrangements=tuple(arrangements), retentions=retentions, views=views)
    new_program = replace(program, statistics=statistics)
    snapshots = {
        name: _snapshot(snapshot, changes.get(name, ())) for name, snapshot in version.watermarks.sources.items()
    }
    return replace(
        version,
        plan=replace(version.plan, program=new_program, dataflow=new_dataflow),
        state=replace(state, arrangements=stored, changelogs=changelogs),
        watermarks=replace(version.watermarks, sources=snapshots),
    )


def _parts(parts: Sequence[Any], changes: Sequence[ColumnChange], *, by_row: bool) -> tuple[Any, ...]:
    return tuple(replace(part, refs=tuple(ref.changed(changes, by_row=by_row) for ref in part.refs)) for part in parts)


def _arrangement(arrangement: Arrangement, changes: Sequence[ColumnChange], source: Source | None) -> Arrangement:
    """Return an arrangement with other columns. If rows have another hash, its name says that only scans can use it."""
    names, key = new_names(changes, arrangement.schema.names), arrangement.key
    schema = changed_schema(arrangement.schema, changes)
    widened = {change.column for change in changes if change.kind == "cast"}
    order = names.get(arrangement.order) if arrangement.order is not None else None
    read = {name for part in key.parts for name in part.columns}
    # Rows whose key is NULL are sorted by the whole row. Their deletes must find them.
    may_delete = source is None or source.kind != "stream"
    has_nulls = not arrangement.is_lean and len(key.null_safe) < len(key.parts)
    is_primary = source is not None and [p.columns for p in key.parts] == [(name,) for name in source.primary_key]
    moved = (key.whole or (may_delete and has_nulls and not is_primary)) and changes_hash(changes)
    moved |= any(not part.is_column and widened.intersection(part.columns) for part in key.parts)
    if moved or not read <= names.keys() or (order is None) != (arrangement.order is None):
        scanned = Key((literal(f"before ALTER: {key.text}", pa.string()),))
        return replace(arrangement, key=scanned, schema=schema, order=None)
    if key.whole:
        return Arrangement.by_row(arrangement.relation, schema)
    parts = tuple(
        column(names[part.columns[0]], schema.field(names[part.columns[0]]).type)
        if part.is_column
        else _renamed(part, names)
        for part in key.parts
    )
    return replace(arrangement, key=replace(key, parts=parts), schema=schema, order=order)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    return renamed(expression, {name: names[name] for name in expression.columns})


def _retention(retention: Retention, changes: Sequence[ColumnChange]) -> Retention | None:
    """Return when rows expire, by the new names of columns; None if a column no longer exists."""
    read = {bound.column for bound in retention.bounds}
    read |= set(() if retention.condition is None else retention.condition.columns)
    names = new_names(changes, sorted(read))
    if read != names.keys():
        return None
    users = tuple(tuple(replace(bound, column=names[bound.column]) for bound in user) for user in retention.users)
    condition = None if retention.condition is None else _renamed(retention.condition, names)
    return replace(retention, users=users, condition=condition)


def _snapshot(snapshot: Snapshot, changes: Sequence[ColumnChange]) -> Snapshot:
    """Return the watermarks of a source by the new names of its event-time columns, whose keys follow their order."""
    old = list(snapshot["columns"])
    names = new_names(changes, old)
    columns = sorted(names.values())
    if columns == old:
        return snapshot
    keys = {number: columns.index(names[name]) for number, name in enumerate(old)}

    def moved(pairs: Sequence[Sequence[int]]) -> list[list[int]]:
        return sorted([keys[key], value] for key, value in pairs)

    return {
        **snapshot,
        "columns": columns,
        "inputs": [{**entry, "values": moved(entry["values"])} for entry in snapshot["inputs"]],
        "released": moved(snapshot["released"]),
        "explicit": [
            [partition, {names[name]: time for name, time in times.items()}]
            for partition, times in snapshot["explicit"]
        ],
    }
