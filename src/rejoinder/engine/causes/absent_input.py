"""Why a source has no row: it is late, was rejected, retracted, has expired, or never arrived."""

from __future__ import annotations

import json
from datetime import timedelta

import pyarrow as pa

from rejoinder.engine.causes.arrivals import like_rows
from rejoinder.engine.causes.expected_row import row_text
from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.change_replay import changelog_name, has_history
from rejoinder.formats.text.plain_rows import Row, python_rows
from rejoinder.formats.text.row_text import plain, text
from rejoinder.ir.catalog import Source, View
from rejoinder.ir.identities import SideOutput
from rejoinder.kernels.arrow.columns import DIFF, EPOCH
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.runtime.row_json import as_json
from rejoinder.state.reading.changelog_reader import expanded, read_changes, read_table
from rejoinder.state.reading.renderings import moment


def no_longer_there(engine: Engine, relation: Source | View, wanted: pa.Table) -> str | None:
    """Return when the last row with the wanted values was retracted; None if the history has none."""
    manifest, name = engine.version.manifest, changelog_name(relation)
    assert manifest is not None, "an epoch is committed"
    if not has_history(relation) or name not in engine.dataflow.views:
        return None
    changes = read_changes(engine.store, manifest, name, relation.schema, after=-2, until=manifest.epoch)
    retracted = [row for row in python_rows(like_rows(changes, wanted).sort_by(EPOCH)) if row[DIFF] < 0]
    if not retracted:
        return None
    last = retracted[-1]
    when = moment(engine.version.timeline.times(engine.store).get(last[EPOCH]))
    row = ", ".join(f"{field} = {text(plain(last[field]))}" for field in relation.schema.names)
    return f"the row {row} was retracted in epoch {last[EPOCH]}{f' ({text(when)})' if when else ''}"


def late_row(engine: Engine, view: str, source: str, wanted: pa.Table) -> str | None:
    """Return by how much a row of a source came too late for a view; None if no such row is among its late rows."""
    for row in _side_rows(engine, str(SideOutput(view, "late"))):
        if row["input"] == source and not row["undo"] and _has(json.loads(row["row"]), wanted):
            behind = timedelta(microseconds=row["behind"])
            return f"{row['row']} came {behind} behind the watermark of `{row['column']}`, {text(row['watermark'])}"
    return None


def absent_from_source(engine: Engine, view: str, name: str, wanted: pa.Table) -> tuple[str, str]:
    """Return reason and detail for a row that is absent from a source that a view reads."""
    version = engine.version
    late = late_row(engine, view, name, wanted)
    if late is not None:
        return "late", late
    source = readable(version.catalog, name)
    gone = no_longer_there(engine, source, wanted)
    if gone is not None:
        return "retracted", gone
    for row in _side_rows(engine, str(SideOutput(name, "rejected"))):
        if all(str(value) in str(row.get("text")) for value in python_rows(wanted)[0].values()):
            return "rejected", f"the record {row.get('text')} was rejected: {row.get('reason')}"
    expected = row_text(wanted)
    if isinstance(source, Source) and source.incomplete:
        return "expired", f"no row with {expected} is kept; rows of `{name}` that no view needed have expired"
    last = version.deliveries.last.get(name)
    read = "no row was read yet" if last is None else f"the last rows were read in epoch {last}"
    when = None if last is None else moment(version.timeline.times(engine.store).get(last))
    if isinstance(source, Source) and source.kind != "stream" and not has_history(source):
        detail = f"no row with {expected} is in the source now; whether it was before is not kept"
        return "absent", f"{detail}; {read}{f' ({text(when)})' if when else ''}"
    return "never arrived", f"no row with {expected} is in the source; {read}{f' ({text(when)})' if when else ''}"


def _side_rows(engine: Engine, name: str) -> list[Row]:
    manifest = engine.version.manifest
    assert manifest is not None, "an epoch is committed"
    if name not in engine.dataflow.views:
        return []
    rows = expanded(read_table(engine.store, manifest, name, engine.dataflow.views[name]))
    return [{field: plain(value) for field, value in row.items()} for row in python_rows(rows)]


def _has(row: Row, wanted: pa.Table) -> bool:
    (values,) = map(json.loads, as_json(wanted).to_pylist())
    return all(row.get(name) == value for name, value in values.items())
