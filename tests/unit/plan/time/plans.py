"""Small programs in SQL, planned: the frontiers, retention bounds and gates of view `v` as text."""

from __future__ import annotations

import re

from rejoinder.ir.identities import ViewRows
from rejoinder.plan.planning import Plan
from rejoinder.plan.time.frontier import Frontiers
from rejoinder.watermarks.formula import Formula, value_of
from tests.kit import flow

SOURCES = """
CREATE STREAM o (id INT, t BIGINT, x BIGINT, WATERMARK t);
CREATE STREAM d (id INT, t BIGINT, WATERMARK t);
CREATE STREAM r (id INT, t BIGINT, u BIGINT, WATERMARK t, WATERMARK u);
CREATE STREAM n (id INT, t BIGINT);
CREATE TABLE p (id INT, t BIGINT, PRIMARY KEY (id));
"""
NEAR = "o.id = d.id AND d.t BETWEEN o.t AND o.t + 10"
UNION = "(SELECT t FROM o UNION ALL SELECT t FROM d) AS q"
NONE = -1


def plan_of(query: str, *more: str) -> Plan:
    """The plan of view `v`, and of views `w`, `x`, …"""
    return flow(SOURCES, query, *more)._engine.version.plan


def frontier(query: str, column: str) -> Formula | None:
    """The frontier of a column of the view."""
    program = plan_of(query).program
    return Frontiers(program.sources, program.relations).of(ViewRows("v"), column)


def frontier_text(query: str, column: str) -> str | None:
    """The frontier as text, without the hash of a join."""
    found = frontier(query, column)
    return None if found is None else re.sub(r", [0-9a-f]{16}\)", ")", str(found))


def frontier_value(query: str, column: str, **watermarks: int) -> int:
    """The frontier at the given watermarks of columns `t`, before an epoch was run; NONE if one is missing."""
    found = frontier(query, column)
    assert found is not None
    return value_of(found, {source: {"t": time} for source, time in watermarks.items()}, NONE)


def bounds(*queries: str) -> dict[str, str]:
    """The retention bounds by arrangement. Derived relations are named by their operation."""
    found = plan_of(*queries).dataflow.retentions
    return {re.sub(r"#[0-9a-f]{12}", "", name): str(retention) for name, retention in found.items()}


def gates(query: str) -> list[tuple[int, str | None]]:
    """The gates of the view: the interval in microseconds, and the formula that a row waits for."""
    return [
        (gate.interval, None if gate.limit is None else str(gate.limit))
        for gate in plan_of(query).program.gates_of("v")
    ]
