"""What each workload must give, by one batch query of DuckDB over the Parquet files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from benchmarks.nexmark.workloads import INPUTS, WORKLOADS

TABLES = {
    "W1": ("orders", "deliveries"),
    "W2": ("left", "right"),
    "W3": ("customer", "orders", "lineitem"),
    "W4": ("orders", "rates"),
    **{workload: query.tables for workload, query in WORKLOADS.items()},
}

_WITHIN_THE_HOUR = "ON o.order_id = d.order_id AND d.ts BETWEEN o.ts AND o.ts + INTERVAL 1 HOUR"
_COUNTED = "CASE WHEN d.ts IS NULL THEN o.order_id ELSE 2 * o.order_id END"  # or a padded row would pass for a pair
_LIVE = "(SELECT id, any_value(k) AS k, any_value(v) AS v FROM w2_{} GROUP BY id HAVING sum(op) > 0)"
_LEFTS, _RIGHTS = _LIVE.format("left"), _LIVE.format("right")

QUERIES = {
    "W1": f"SELECT count(*), sum(o.order_id) FROM w1_orders o JOIN w1_deliveries d {_WITHIN_THE_HOUR}",
    "W1L": f"SELECT count(*), sum({_COUNTED}) FROM w1_orders o LEFT JOIN w1_deliveries d {_WITHIN_THE_HOUR}",
    "W2": f"SELECT count(*), sum(l.v + r.v) FROM {_LEFTS} l JOIN {_RIGHTS} r USING (k)",
    "W2L": f"SELECT count(*), sum(l.v + coalesce(r.v, 0)) FROM {_LEFTS} l LEFT JOIN {_RIGHTS} r USING (k)",
    "W2F": f"SELECT count(*), sum(coalesce(l.v, 0) + coalesce(r.v, 0)) FROM {_LEFTS} l FULL JOIN {_RIGHTS} r USING (k)",
    "W2i": "SELECT count(*), sum(l.v + r.v) FROM w2_left l JOIN w2_right r USING (k) WHERE l.op = 1 AND r.op = 1",
    "W3": "SELECT count(*), sum(o_orderkey) FROM w3_customer, w3_orders, w3_lineitem"
    " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND o_orderkey = l_orderkey",
    "W4": "SELECT count(*), sum(r.ver) FROM w4_orders o ASOF JOIN w4_rates r ON o.cur = r.cur AND o.ts >= r.ts",
    **{workload: query.answer() for workload, query in WORKLOADS.items()},
}


@dataclass(frozen=True)
class Truth:
    """Rows read, rows of the result, and a sum over one of its columns."""

    rows_in: int
    rows_out: int
    checksum: int


def inputs(workload: str) -> str:
    """The folder of the rows that a workload reads; W1L, W2L, W2F and W2i ask other questions of the same rows."""
    return INPUTS if workload in WORKLOADS else workload[:2]


def truths(folder: Path) -> dict[str, Truth]:
    """Answer every query on the data in `folder`; remembered in `truth.json` beside it."""
    remembered = folder / "truth.json"
    found: dict[str, dict[str, int]] = json.loads(remembered.read_text()) if remembered.exists() else {}
    missing = [query for query in QUERIES if inputs(query) == folder.name and query not in found]
    if missing:
        found |= {query: asdict(_ask(query, folder)) for query in missing}
        remembered.write_text(json.dumps(found, indent=1) + "\n")
    return {query: Truth(**values) for query, values in found.items()}


def _ask(query: str, folder: Path) -> Truth:
    workload = folder.name
    prefix = "" if workload == INPUTS else f"{workload.lower()}_"
    with duckdb.connect() as connection:
        rows_in = 0
        for table in TABLES[query if workload == INPUTS else workload]:
            view = f"{prefix}{table}"
            files = (folder / "parquet" / table / "part-[0-9]*.parquet").as_posix()  # leaves W1's sentinels out
            connection.execute(f"CREATE VIEW {view} AS FROM read_parquet('{files}')")
            only = " WHERE op = 1" if query == "W2i" else ""
            rows_in += _one(connection, f"SELECT count(*) FROM {view}{only}")[0]
        rows_out, checksum = _one(connection, QUERIES[query])
    return Truth(rows_in, rows_out, checksum)


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return tuple(int(value or 0) for value in row)
