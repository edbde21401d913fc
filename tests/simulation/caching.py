"""Planning is a pure function of the catalog and the statistics: plan once what all drivers of all seeds plan again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from rejoinder import planner
from rejoinder.ir.catalog import Catalog, View
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.planning import Plan
from rejoinder.sql.bind import bind_query

_plans: dict[tuple[Any, ...], Plan] = {}
_queries: dict[tuple[Any, ...], Any] = {}
_MOST = 5_000


def plan(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
    """`planner.plan`, cached."""
    key = (_text(catalog), tuple(sorted((name, one.rows, one.keys) for name, one in statistics.items())))
    if key not in _plans:
        if len(_plans) >= _MOST:
            _plans.clear()
        _plans[key] = planner.plan(catalog, statistics)
    return _plans[key]


def bind_view(view: View, catalog: Catalog, kept: Collection[str] = ()) -> Any:
    """`bind_query.bind_view`, cached."""
    key = (view.name, view.query, _text(catalog), tuple(kept))
    if key not in _queries:
        _queries[key] = bind_query.bind_view(view, catalog, kept)
    return _queries[key]


def _text(catalog: Catalog) -> str:
    plain = catalog.to_json()
    return json.dumps({**plain, "sinks": []}, sort_keys=True)
