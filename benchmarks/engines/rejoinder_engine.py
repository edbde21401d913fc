"""Rejoinder: one file of each table per epoch, state and commits on disk, result read back from the state."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa

import rejoinder as rj
from benchmarks.engines import protocol
from benchmarks.engines.protocol import Task
from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK

_FIVE_SECONDS = "WATERMARK ts DELAY OF INTERVAL 5 SECONDS"
DELIVERIES = {
    "orders": f"CREATE STREAM orders (order_id BIGINT, cust BIGINT, ts TIMESTAMP, {_FIVE_SECONDS})",
    "deliveries": f"CREATE STREAM deliveries (order_id BIGINT, ts TIMESTAMP, {_FIVE_SECONDS})",
}
_COUNTED = "CASE WHEN d.ts IS NULL THEN o.order_id ELSE 2 * o.order_id END"
_DELIVERED = (
    "SELECT {} AS c, o.cust AS cust, d.ts AS delivered FROM orders o {} JOIN deliveries d"
    " ON o.order_id = d.order_id AND d.ts BETWEEN o.ts AND o.ts + INTERVAL 1 HOUR"
)
EVENTS = {
    "left": "CREATE CHANGELOG lefts (id BIGINT, k BIGINT, v BIGINT, op BIGINT)",
    "right": "CREATE CHANGELOG rights (id BIGINT, k BIGINT, v BIGINT, op BIGINT)",
}
SALES = {
    "customer": "CREATE STREAM customer (c_custkey BIGINT, c_mktsegment STRING)",
    "orders": "CREATE STREAM orders (o_orderkey BIGINT, o_custkey BIGINT)",
    "lineitem": "CREATE STREAM lineitem (l_orderkey BIGINT, l_extendedprice DOUBLE, l_discount DOUBLE)",
}
VERSIONS = {
    "orders": "CREATE STREAM orders (order_id BIGINT, cur BIGINT, amount BIGINT, ts TIMESTAMP)",
    "rates": "CREATE STREAM rates (ver BIGINT, cur BIGINT, rate DOUBLE, ts TIMESTAMP)",
}
VIEWS = {
    "W1": (DELIVERIES, _DELIVERED.format("o.order_id", "")),
    "W1L": (DELIVERIES, _DELIVERED.format(_COUNTED, "LEFT") + " EMIT FINAL"),
    "W2": (EVENTS, "SELECT l.k AS k, l.v + r.v AS c FROM lefts l JOIN rights r ON l.k = r.k"),
    "W2L": (EVENTS, "SELECT l.k AS k, l.v + coalesce(r.v, 0) AS c FROM lefts l LEFT JOIN rights r ON l.k = r.k"),
    "W2F": (
        EVENTS,
        "SELECT coalesce(l.k, r.k) AS k, coalesce(l.v, 0) + coalesce(r.v, 0) AS c"
        " FROM lefts l FULL JOIN rights r ON l.k = r.k",
    ),
    "W3": (
        SALES,
        "SELECT o_orderkey AS c, l_extendedprice * (1 - l_discount) AS revenue FROM customer, orders, lineitem"
        " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND o_orderkey = l_orderkey",
    ),
    "W4": (
        VERSIONS,
        "SELECT r.ver AS c, o.order_id AS order_id, o.amount * r.rate AS total"
        " FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) ON o.cur = r.cur",
    ),
    **{workload: query.view() for workload, query in NEXMARK.items()},
}


def source(declaration: str, folder: Path) -> str:
    """The statement that declares a table over its part files, one of them per epoch."""
    path = folder.as_posix().replace("'", "''")
    diff = ", diff 'op'" if "CHANGELOG" in declaration else ""
    return f"{declaration} USING parquet OPTIONS (path '{path}'{diff}, maxFilesPerTrigger '1')"


def answer(workload: str, result: pa.Table) -> tuple[int, int]:
    """The number of rows of a result and their checksum, without W1's sentinels if a view shows them."""
    checksum, only = (NEXMARK[workload].checksum(), "true") if workload in NEXMARK else ("sum(c)", "c >= 0")
    with duckdb.connect() as connection:
        connection.register("result", result)
        row = connection.execute(f"SELECT count(*), {checksum} FROM result WHERE {only}").fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    tables, select = VIEWS[task.workload]
    flow = rj.Flow(task.state)
    for table, declaration in tables.items():
        flow.sql(source(declaration, Path(task.data) / "parquet" / table))
    flow.sql(f"CREATE VIEW result AS {select}")
    flow.warm_up()

    protocol.started()
    flow.run()
    protocol.finished()

    rows_out, checksum = answer(task.workload, flow.arrow("result"))
    epochs = [epoch for epoch in flow.progress if epoch["rows_in"]]
    written = sum(epoch["bytes_written"] for epoch in epochs)
    protocol.result(rows_out, checksum, epochs=len(epochs), run_bytes=written)


if __name__ == "__main__":
    main()
