"""Replaced views: which views a new catalog changes, what of the state they invalidate, and their difference.

A relation is named by what it computes, so a new definition finds what it shares with the old one, or with any other
view. Only relations that read a replaced view by its name have the same name and other rows: they are built again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.connectors.registry import sink_side
from rejoinder.engine.version import Version
from rejoinder.errors import Unsupported
from rejoinder.faults import reach
from rejoinder.ir.catalog import Catalog, View
from rejoinder.ir.identities import OperationInput, PendingRows, RelationId, ViewRows
from rejoinder.kernels.arrow.columns import diffs
from rejoinder.plan.blocks.normal_form import Block, read_columns
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.plan.rounds.program import Program
from rejoinder.plan.schedule.difference import difference, new_content
from rejoinder.planner import plan
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.state.flow_state import State
from rejoinder.state.reading.changelog_reader import WHOLE
from rejoinder.store.runs.net_rows import changes_in
from rejoinder.watermarks.formula import Persisted, RetainedMinimum

if TYPE_CHECKING:
    from rejoinder.engine.engine import Engine


def replaced_views(before: Version, catalog: Catalog) -> list[str]:
    """Return the views that exist before and after, and whose rows a new catalog computes in another way.

    These are the views with another definition, and the views above them. A definition that differs only in its text
    replaces nothing.
    """
    known = {view.name: view for view in before.catalog.views if view.name in before.state.changelogs}
    sources = {source.name: source for source in catalog.sources}
    is_altered = any(sources.get(source.name, source) != source for source in before.catalog.sources)
    if not is_altered and all(_definition(view) == _definition(known.get(view.name, view)) for view in catalog.views):
        return []
    old, new = before.plan.program, plan(catalog, before.plan.program.statistics).program
    differing = [name for name in known if name in new.views and not _is_same(name, old, new)]
    readers = new.with_readers(map(ViewRows, differing))
    return [view.name for view in catalog.views if view.name in known and view.relation in readers]


def _definition(view: View) -> tuple[object, ...]:
    return view.query, view.names, view.starting, view.schema


def _is_same(view: str, old: Program, new: Program) -> bool:
    return _narrow(old.views[view]) == _narrow(new.views[view]) and old.gates_of(view) == new.gates_of(view)


def _narrow(block: Block) -> Block:
    """Return a block whose inputs have only the columns that it reads. ALTER may add others to a source."""
    inputs = []
    for at, each in enumerate(block.inputs):
        read = read_columns(block, at)
        columns = tuple((i, name) for i, name in each.columns if name in read)
        schema = pa.schema([field for field in each.schema if field.name in read])
        inputs.append(replace(each, columns=columns, schema=schema))
    return replace(block, inputs=tuple(inputs))


def retired(version: Version, views: list[str], catalog: Catalog) -> Version:
    """Return the version without the state of replaced views, and of all that was computed from them.

    The history of a view goes on, unless the new catalog gives it other columns.
    """
    stale = set(map(str, version.plan.program.with_readers(map(ViewRows, views))))
    dropped = {a.id for a in version.plan.dataflow.arrangements if _owner(a.relation) in stale}
    restarted = {name for name in views if not has_same_columns(version.catalog, catalog, name)}
    invalid = {formula.key for formula in version.plan.persisted if _reads(formula, stale)}
    state, watermarks = version.state, version.watermarks
    return replace(
        version,
        state=replace(
            state,
            arrangements={name: parts for name, parts in state.arrangements.items() if name not in dropped},
            changelogs={name: parts for name, parts in state.changelogs.items() if name not in views},
        ),
        created={name: epoch for name, epoch in version.created.items() if name not in restarted},
        watermarks=replace(
            watermarks,
            persisted={key: value for key, value in watermarks.persisted.items() if key not in invalid},
            emitted_up_to={key: value for key, value in watermarks.emitted_up_to.items() if key not in dropped},
        ),
    )


def _owner(relation: RelationId) -> str:
    """Return the view or derived relation whose rows, input or pending changes a relation is; else the relation."""
    match relation:
        case OperationInput():
            return str(relation.of)
        case PendingRows():
            return relation.view
        case _:
            return str(relation)


def _reads(formula: Persisted, stale: set[str]) -> bool:
    if isinstance(formula, RetainedMinimum):
        return _owner(formula.user) in stale or _owner(formula.relation) in stale
    return formula.place in stale


def has_same_columns(before: Catalog, after: Catalog, name: str) -> bool:
    """Return whether a view has the same names and types of columns in two catalogs."""
    schemas = [relation.schema for catalog in (before, after) if (relation := catalog.find(name)) is not None]
    return len({tuple((field.name, field.type) for field in schema) for schema in schemas}) == 1


def with_differences(engine: Engine, before: Version, after: Version, views: list[str], epoch: int) -> Version:
    """Return the version in which the difference of old and new content is one epoch of each replaced view.

    `after` has the new content as the changelog of each view. A view with other columns keeps that: its history starts
    anew. Raises `Unsupported` if a sink cannot show the difference.
    """
    kept = [name for name in views if has_same_columns(before.catalog, after.catalog, name)]
    if not kept:
        return after
    old, new = before.state.changelogs, after.state.changelogs
    state = replace(after.state, changelogs={**new, **{name: old[name] for name in kept}})
    scanned = {**state.changelogs, **{new_content(name): new[name] for name in kept}}
    dataflow = difference({name: after.plan.dataflow.views[name] for name in kept})
    splits = State(state.buckets, {}, scanned).splits(dataflow)
    if splits:
        work = EpochWork(replace(engine.setting(dataflow), hydrates=True), epoch, scanned)
        state = state.with_reports(engine.executor.run_listed(work, splits))
    reach("in_difference", epoch)
    if engine.spool is not None:
        engine.spool.clear(epoch)
    _refuse_retractions(engine, after.catalog, state, kept, epoch)
    return replace(after, state=state)


def _refuse_retractions(engine: Engine, catalog: Catalog, state: State, views: list[str], epoch: int) -> None:
    """Raise `Unsupported` if the difference retracts rows, and a sink has no message for that."""
    for sink in catalog.sinks:
        if sink.view not in views or sink_side(sink).tells_changes(sink):
            continue
        refs = [ref for part in state.changelogs[sink.view] for ref in part.refs if ref.epochs[1] == epoch]
        schema = readable(catalog, sink.view).schema
        retracted = int((diffs(changes_in(engine.store, refs, schema, epoch - 1, epoch, WHOLE)) < 0).sum())
        if retracted:
            raise Unsupported(
                f"the new definition of `{sink.view}` retracts rows, and sink `{sink.name}` cannot show that",
                detail=f"{retracted:,} rows of the old definition are not in the new one",
                hint=f"DROP SINK {sink.name} first; or create a view of another name with a sink of its own",
            )


def refuse_spark_state(version: Version, views: list[str]) -> None:
    """Raise `Unsupported` if Spark keeps state of its own: it numbers that state by the epochs that it has run."""
    spark = version.positions.spark
    if views and spark is not None and spark.header is not None:
        raise Unsupported(
            f"view `{views[0]}` cannot be replaced in a flow that has a DataFrame with state of its own",
            detail="Spark numbers the state of its operators by epoch, and a replacement is an epoch",
            hint="create a view of another name; or compute what needs state in a view",
        )
