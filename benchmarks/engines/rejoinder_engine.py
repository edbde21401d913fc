"""Rejoinder: one file of each table per epoch, state and commits on disk, result read back from the state."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.compute as pc

import rejoinder as rj
from benchmarks.engines import protocol
from benchmarks.engines.protocol import Task

SOURCES = {
    "left": "CREATE CHANGELOG lefts (id BIGINT, k BIGINT, v BIGINT, op BIGINT)",
    "right": "CREATE CHANGELOG rights (id BIGINT, k BIGINT, v BIGINT, op BIGINT)",
    "customer": "CREATE STREAM customer (c_custkey BIGINT, c_mktsegment STRING)",
    "orders": "CREATE STREAM orders (o_orderkey BIGINT, o_custkey BIGINT)",
    "lineitem": "CREATE STREAM lineitem (l_orderkey BIGINT, l_extendedprice DOUBLE, l_discount DOUBLE)",
}
VIEWS = {
    "W2": (
        ("left", "right"),
        "SELECT l.k AS k, l.v + r.v AS c FROM lefts l JOIN rights r ON l.k = r.k",
    ),
    "W3": (
        ("customer", "orders", "lineitem"),
        "SELECT o_orderkey AS c, l_extendedprice * (1 - l_discount) AS revenue FROM customer, orders, lineitem"
        " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND o_orderkey = l_orderkey",
    ),
}


def source(table: str, folder: Path) -> str:
    """The statement that declares a table over its part files, one of them per epoch."""
    path = folder.as_posix().replace("'", "''")
    diff = ", diff 'op'" if table in ("left", "right") else ""
    return f"{SOURCES[table]} USING parquet OPTIONS (path '{path}'{diff}, maxFilesPerTrigger '1')"


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    tables, select = VIEWS[task.workload]
    flow = rj.Flow(task.state)
    for table in tables:
        flow.sql(source(table, Path(task.data) / "parquet" / table))
    flow.sql(f"CREATE VIEW result AS {select}")
    flow.warm_up()

    protocol.started()
    flow.run()
    protocol.finished()

    rows = flow.arrow("result")
    epochs = [epoch for epoch in flow.progress if epoch["rows_in"]]
    written = sum(epoch["bytes_written"] for epoch in epochs)
    protocol.result(rows.num_rows, pc.sum(rows["c"]).as_py() or 0, epochs=len(epochs), run_bytes=written)


if __name__ == "__main__":
    main()
