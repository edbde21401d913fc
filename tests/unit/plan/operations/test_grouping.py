"""Aggregates in the plan: what is kept, what is shared, and what is not needed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.ir.catalog import Catalog, Source, View
from rejoinder.ir.identities import UNIT
from rejoinder.plan.physical.dataflow import ArrangementScan, Dataflow, UnitScan
from rejoinder.plan.physical.steps import Aggregate
from rejoinder.plan.schedule.hydration import Hydration
from rejoinder.plan.schedule.retained_relations import Holdings
from rejoinder.planner import plan
from rejoinder.sql.bind.bind_query import bind

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("f", pa.float64())])
SOURCES = (
    Source("events", "stream", SCHEMA, format="parquet"),
    Source("changes", "changelog", SCHEMA, format="parquet"),
    Source("t", "table", SCHEMA, ("k",), format="parquet"),
)


def planned(*queries: str) -> Dataflow:
    return plan(_catalog(*queries), {}).dataflow


def _catalog(*queries: str) -> Catalog:
    catalog = Catalog(SOURCES)
    for number, query in enumerate(queries):
        catalog = catalog.with_relation(View(f"v{number}", query, bind(query, catalog).schema))
    return catalog


def steps(dataflow: Dataflow) -> list[Aggregate]:
    return [step for step in dataflow.steps() if isinstance(step, Aggregate)]


@pytest.mark.parametrize(
    ("relation", "append_only"),
    [
        ("events", True),
        ("changes", False),
        ("t", False),
        ("(SELECT k, x FROM events WHERE f > 1)", True),
        ("(SELECT DISTINCT k, x FROM events)", True),
        ("(SELECT k, x FROM events UNION ALL SELECT k, x FROM events)", True),
        ("(SELECT k, x FROM events UNION ALL SELECT k, x FROM changes)", False),
        ("(SELECT a.k, b.x FROM events a JOIN events b ON a.k = b.x)", True),
        ("(SELECT a.k, a.x FROM events a SEMI JOIN events b ON a.k = b.k)", True),
        ("(SELECT a.k, b.x FROM events a LEFT JOIN events b ON a.k = b.k)", False),
        ("(SELECT a.k, a.x FROM events a ANTI JOIN events b ON a.k = b.k)", False),
        ("(SELECT a.k, t.x FROM events a JOIN t ON a.k = t.k)", False),
        ("(SELECT k, sum(x) AS x FROM events GROUP BY k)", False),
    ],
)
def test_values_are_kept_only_if_rows_can_be_taken_back(relation: str, append_only: bool) -> None:
    dataflow = planned(f"SELECT q.k, min(q.x) AS m FROM {relation} AS q GROUP BY q.k")
    (step,) = (step for step in steps(dataflow) if step.accumulators[0].function == "min")
    assert (step.values is None) == append_only
    kept = {arrangement.id for arrangement in dataflow.arrangements}
    assert (f"{step.arrangement.relation}/input[c0 or NULL]" in kept) == (not append_only)


def test_counts_and_sums_keep_no_values() -> None:
    (step,) = steps(planned("SELECT k, sum(x) AS s, avg(x) AS a, count(*) AS n FROM changes GROUP BY k"))
    assert step.values is None


def test_equal_arguments_share_their_accumulators() -> None:
    (step,) = steps(
        planned("SELECT k, sum(f) AS s, avg(f) AS a, count(f) AS n, sum(f) + 1 AS t FROM changes GROUP BY k")
    )
    assert [a.text for a in step.accumulators] == ["sum(f)", "count(f)"]


def test_two_views_share_an_aggregate_and_are_both_named() -> None:
    query = "SELECT k, sum(x) AS s FROM changes GROUP BY k"
    dataflow = planned(query, query + " HAVING sum(x) > 3", "SELECT k, sum(x) + 1 AS t FROM changes GROUP BY k")
    (step,) = steps(dataflow)
    assert step.views == ("v0", "v1", "v2")
    assert sum("aggregate#" in arrangement.id for arrangement in dataflow.arrangements) == 1


def test_an_aggregate_beside_its_arrangement_takes_one_exchange() -> None:
    dataflow = planned("SELECT k, sum(x) AS s FROM events GROUP BY k")
    assert len(dataflow.rounds) == 2


def test_different_values_are_united_and_not_joined() -> None:
    dataflow = planned("SELECT k, count(DISTINCT x) AS d, sum(f) AS s FROM changes GROUP BY k")
    (step,) = steps(dataflow)
    assert {a.function for a in step.accumulators} == {"count", "sum"}
    assert not any(path.hops for path in dataflow.paths)


def test_the_unit_is_read_only_when_an_aggregate_is_filled() -> None:
    catalog = _catalog("SELECT count(*) AS n FROM changes")
    new = plan(catalog, {})
    assert str(UNIT) not in new.dataflow.scans
    filled = Hydration(new.program, Holdings()).build()
    assert isinstance(filled.scans[str(UNIT)], UnitScan)
    groups = tuple(a for a in new.dataflow.arrangements if "aggregate" in a.id)
    known = Hydration(new.program, Holdings(groups, {a.id for a in groups}, {a.id for a in groups})).build()
    (scan,) = known.scans.values()
    assert isinstance(scan, ArrangementScan) and str(scan.arrangement.relation).startswith("aggregate#")
