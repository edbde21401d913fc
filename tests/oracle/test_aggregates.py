"""Aggregates over random changes of streams, tables and change feeds, and over joins of them, equal DuckDB's answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow import hashing
from rejoinder.kernels.arrow.columns import UInt64
from rejoinder.plan.physical import arrangement
from rejoinder.runtime.steps import arrange, emit
from rejoinder.store.runs import spine
from tests.deep import DEEP
from tests.oracle.aggregates import SPECS, TOLERANCE, aggregate_queries
from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM, epochs
from tests.oracle.model import Model
from tests.oracle.queries import Draw
from tests.oracle.scenario import Action, CreateView, DropView, Restart, Scenario, Select, play
from tests.oracle.written_views import Written, flows, play_views, together

FOUR_BITS = np.uint64(0xC000_0000_0000_0003)
QUERIES: dict[str, Written] = {
    "global": "SELECT count(*) AS n, count(x) AS c, sum(x) AS s, min(s) AS lo, max(f) AS hi FROM a",
    "global over a join": "SELECT sum(a.x + c.z) AS t, count(*) AS n FROM a JOIN c ON a.k = c.id",
    "only keys": "SELECT k FROM a GROUP BY k",
    "expression as key": "SELECT k + 1 AS n, count(*) AS c FROM a GROUP BY k + 1",
    "text as key": "SELECT upper(s) AS u, max(x) AS m FROM a GROUP BY upper(s)",
    "floats as keys": "SELECT f, count(*) AS n FROM a GROUP BY f",
    "position": "SELECT k, s, count(*) AS n FROM a GROUP BY 1, 2",
    "alias": "SELECT k * 2 AS d, count(*) AS n FROM a GROUP BY d",
    "all": "SELECT k, s, count(*) AS n FROM a GROUP BY ALL",
    "expressions of aggregates": "SELECT k, sum(x) / count(*) + min(k) AS v FROM a GROUP BY k",
    "having an alias": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING n > 1 AND k IS NOT NULL",
    "having without group by": "SELECT max(x) AS m FROM a HAVING count(*) > 2",
    "having what is not selected": "SELECT k FROM a GROUP BY k HAVING max(x) > min(x)",
    "distinct beside others": "SELECT k, count(DISTINCT x) AS d, sum(x) AS s, count(DISTINCT s) AS t FROM a GROUP BY k",
    "only distinct": "SELECT count(DISTINCT x) AS d, sum(DISTINCT x) AS s FROM a",
    "distinct extremes": "SELECT k, min(DISTINCT x) AS d, avg(DISTINCT x) AS m FROM a GROUP BY k",
    "aggregate of an aggregate": "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q "
    "GROUP BY n",
    "join of aggregates": "SELECT q.k, q.n, r.m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q "
    "JOIN (SELECT k, max(y) AS m FROM b GROUP BY k) r ON q.k = r.k",
    "left join of aggregates": "SELECT q.k, q.n, r.m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q "
    "LEFT JOIN (SELECT k, max(y) AS m FROM b GROUP BY k) r ON q.k = r.k",
    "full join over global aggregates": "SELECT q.n, r.m FROM (SELECT count(*) AS n FROM a) q "
    "FULL JOIN (SELECT count(*) AS m FROM b) r ON q.n = r.m",
    "cross join with a total": "SELECT a.k, q.n FROM a CROSS JOIN (SELECT count(*) AS n FROM b) q",
    "rows with their group's largest": "SELECT a.k, a.x FROM a JOIN (SELECT k, max(x) AS m FROM a GROUP BY k) q "
    "ON a.k = q.k AND a.x = q.m",
    "aggregate without from": "SELECT (SELECT max(x) FROM a) AS m, (SELECT count(*) FROM b) AS n",
    "global beside no from": "SELECT count(*) AS n FROM b",
    "group that exists, without from": "SELECT 1 AS o WHERE EXISTS (SELECT k FROM a GROUP BY k HAVING count(*) > 1)",
    "constant joined": "SELECT q.o, a.x FROM (SELECT 1 AS o) q JOIN a ON a.k = q.o",
    "distinct of an aggregate": "SELECT DISTINCT count(*) AS n FROM a GROUP BY k",
    "union of aggregates": "SELECT count(*) AS n FROM a UNION ALL SELECT sum(y) FROM b",
    "in an aggregate": "SELECT k, x FROM a WHERE k IN (SELECT max(y) FROM b)",
    "in some groups": "SELECT k, s FROM a WHERE k IN (SELECT y FROM b GROUP BY y HAVING count(*) > 1)",
    "not in some groups": "SELECT k, s FROM a WHERE k NOT IN (SELECT y FROM b GROUP BY y HAVING count(*) > 1)",
    "groups that exist": "SELECT k FROM a WHERE EXISTS (SELECT y FROM b GROUP BY y HAVING count(*) > 2)",
    "groups without a match": "SELECT q.k, q.n FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q "
    "WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = q.k)",
    "grouped pairs of a full join": "SELECT a.k, count(b.y) AS n, count(a.x) AS m FROM a FULL JOIN b ON a.k = b.k "
    "GROUP BY a.k",
    "grouped windows": (
        "SELECT WINDOW_START(TUMBLE(t, INTERVAL '1' DAY)) AS w, count(*) AS n, max(z) AS m FROM c "
        "GROUP BY TUMBLE(t, INTERVAL '1' DAY)",
        "SELECT date_trunc('day', t) AS w, count(*) AS n, max(z) AS m FROM c GROUP BY ALL",
    ),
}


@pytest.fixture(
    scope="module",
    params=["as it is", pytest.param("weak hash", marks=DEEP), pytest.param("small spines", marks=DEEP)],
    autouse=True,
)
def _harder(request: pytest.FixtureRequest) -> Iterator[None]:
    strong = hashing.mix

    def weak(x: UInt64) -> UInt64:
        result: UInt64 = strong(x) & FOUR_BITS
        return result

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "weak hash":
            patch.setattr(hashing, "mix", weak)
            patch.setattr(arrangement, "is_exact", lambda types: False)
        elif request.param == "small spines":
            patch.setattr(spine, "SMALLEST_LEVEL_ROWS", 2)
            patch.setattr(spine, "PIECE_BYTES", 4_000)
            patch.setattr(spine, "SPARE_CREDIT", 1)
            patch.setattr(arrange, "FAN", 2)
            patch.setattr(emit, "CHANGELOG_FAN", 2)
        yield


@st.composite
def random_flows(draw: Draw) -> Scenario:
    """Views of random queries that come and go between epochs; some queries are asked once."""
    model = Model({spec.name: spec for spec in SPECS})
    actions: list[Action] = []
    views: list[str] = []
    for at in range(draw(st.integers(3, 9))):
        choice = draw(st.sampled_from(["epoch", "epoch", "epoch", "view", "view", "restart", "drop", "query"]))
        if choice == "view" or not at:
            query = draw(aggregate_queries())
            actions.append(CreateView(f"v{at}", query.ours, query.duckdb))
            views.append(f"v{at}")
        elif choice == "query":
            query = draw(aggregate_queries())
            actions.append(Select(query.ours, query.duckdb))
        elif choice == "restart":
            actions.append(Restart(draw(PARALLELISM)))
        elif choice == "drop" and len(views) > 1:
            actions.append(DropView(views.pop()))
        else:
            actions.append(draw(epochs(model, 12)))
    actions.append(draw(epochs(model, 12)))
    return Scenario(SPECS, tuple(actions), draw(PARALLELISM), draw(st.sampled_from([10_000, 3])), TOLERANCE)


@together(QUERIES)
@budget(1, deep=2)
@given(actions=flows(SPECS), parallelism=PARALLELISM)
def test_the_view_equals_the_query(written: list[Written], actions: tuple[Action, ...], parallelism: int) -> None:
    play_views(SPECS, written, actions, parallelism)


@budget(2, deep=12)
@given(scenario=random_flows())
def test_every_aggregate_equals_the_batch_query_after_every_epoch(scenario: Scenario) -> None:
    play(scenario)
