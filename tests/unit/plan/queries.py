"""Queries brought to normal form without an engine, for tests of the plan."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.catalog import Catalog, Index, Source, View
from rejoinder.plan.blocks.normal_form import Normalized
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.normalize import normalize
from rejoinder.plan.planning import Plan
from rejoinder.planner import plan
from rejoinder.sql.bind.bind_query import bind

COLUMNS = {"a": "k x s", "b": "k y s", "c": "k z s", "d": "k w s"}
CATALOG = Catalog(
    (
        *(
            Source(name, "changelog", pa.schema([(column, pa.int64()) for column in columns.split()]), format="parquet")
            for name, columns in COLUMNS.items()
        ),
        Source("t", "table", pa.schema([("id", pa.int64()), ("v", pa.string())]), ("id",), format="parquet"),
    )
)


def normal(query: str) -> Normalized:
    return normalize(bind(query, CATALOG))


def planned(*queries: str, statistics: dict[str, Statistics] | None = None, indexes: tuple[Index, ...] = ()) -> Plan:
    """The plan of views v0, v1, … over the catalog."""
    catalog = Catalog(CATALOG.relations, indexes)
    for number, query in enumerate(queries):
        catalog = catalog.with_relation(View(f"v{number}", query, bind(query, catalog).schema))
    return plan(catalog, statistics or {})
