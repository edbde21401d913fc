"""ALTER VIEW … RENAME TO: the same state under another name. No file is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from rejoinder.engine.version import Version
from rejoinder.ir.catalog import Catalog
from rejoinder.ir.new_names import renamed_catalog, renamed_relation, renamed_text
from rejoinder.planner import plan

Value = TypeVar("Value")


def renamed(version: Version, catalog: Catalog, names: Mapping[str, str]) -> Version:
    """Return a version in which views of `catalog`, its definitions, have other names: `names`, by old name."""
    if not names:
        return version
    catalog = renamed_catalog(catalog, names)
    old = version.plan.dataflow
    ids = {a.id: replace(a, relation=renamed_relation(a.relation, names)).id for a in old.arrangements}
    statistics = {ids.get(name, name): counts for name, counts in version.plan.program.statistics.items()}
    state, watermarks = version.state, version.watermarks
    return replace(
        version,
        catalog=catalog,
        plan=plan(catalog, statistics),
        state=replace(state, arrangements=_moved(state.arrangements, ids), changelogs=_named(state.changelogs, names)),
        created=_named(version.created, names),
        watermarks=replace(
            watermarks,
            emitted_up_to=_moved(watermarks.emitted_up_to, ids),
            late=_named(watermarks.late, names),
        ),
    )


def _named(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {renamed_text(name, names): value for name, value in values.items()}


def _moved(values: Mapping[str, Value], ids: Mapping[str, str]) -> dict[str, Value]:
    return {ids.get(name, name): value for name, value in values.items()}
