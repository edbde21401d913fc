"""Pathway, in its own interpreter: W1, W3, W4, W2 inserts from CSV; W2 with deletes through a Python connector.

The CSV readers follow their folder and never end: a run is over when count and checksum of the maintained result are
the expected ones. The Python connector takes deletes without a broker or a database, and ends by itself. Commits happen
every 500 ms with whatever was read by then: mostly fewer and larger steps than 20. Nothing is persisted.
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.engines import protocol
from benchmarks.engines.protocol import Task

TASK = Task.from_argument(sys.argv[1])
os.environ["PATHWAY_THREADS"] = str(TASK.cores)  # read when the module is imported

import pathway as pw  # type: ignore[import-not-found]  # noqa: E402
import pyarrow.parquet  # noqa: E402

COMMIT_MS = 500
HOUR_MS = 3_600_000
OUTER = {"W2L": pw.JoinMode.LEFT, "W2F": pw.JoinMode.OUTER}
ENDING = ("W2", "W2L", "W2F")  # through the Python connector, which ends


class Event(pw.Schema):  # type: ignore[misc]
    """A W2 row. Pathway deletes by primary key, and cannot have a column called `id`."""

    row: int = pw.column_definition(primary_key=True)
    k: int
    v: int


class EventLog(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Replay the part files of one side in order."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def run(self) -> None:
        for path in sorted(self._folder.glob("part-*.parquet")):
            part = pyarrow.parquet.read_table(path, columns=["op", "id", "k", "v"])
            for op, row, k, v in zip(*(column.to_pylist() for column in part.columns), strict=True):
                # Pathway looks for the text of the delete call in this method to allow deletes at all.
                if op > 0:
                    self.next(row=row, k=k, v=v)
                else:
                    self.delete(row=row, k=k, v=v)


def csv(table: str, **columns: type) -> Any:
    """Follow the CSV part files of one table."""
    files = f"{TASK.data}/csv/{table}/part-[0-9]*.csv"
    schema = pw.schema_from_types(**columns)
    return pw.io.csv.read(files, schema=schema, mode="streaming", autocommit_duration_ms=COMMIT_MS)


def events(side: str) -> Any:
    """Follow one W2 side with its deletes."""
    log = EventLog(Path(TASK.data) / "parquet" / side)
    return pw.io.python.read(log, schema=Event, autocommit_duration_ms=COMMIT_MS)


def deliveries() -> Any:
    """W1. Forgetting follows the faster input, so the inputs are kept within ten minutes of each other."""
    orders, delivered = csv("orders", order_id=int, cust=int, ts=int), csv("deliveries", order_id=int, ts=int)
    behaviour = {}
    if TASK.store == "forgetting":
        idle = datetime.timedelta(seconds=1)  # or the group would wait for good for the table that ends first
        columns = (pw.io.SynchronizedColumn(table.ts, idle_duration=idle) for table in (orders, delivered))
        pw.io.register_input_synchronization_group(*columns, max_difference=600_000)
        behaviour = {"behavior": pw.temporal.common_behavior(cutoff=2 * HOUR_MS)}
    joined = pw.temporal.interval_join(
        orders,
        delivered,
        orders.ts,
        delivered.ts,
        pw.temporal.interval(0, HOUR_MS),
        orders.order_id == delivered.order_id,
        how=pw.JoinMode.LEFT if TASK.workload == "W1L" else pw.JoinMode.INNER,
        **behaviour,
    )
    counted = orders.order_id
    if TASK.workload == "W1L":
        counted = pw.if_else(delivered.ts.is_none(), orders.order_id, 2 * orders.order_id)
    return joined.select(c=counted, cust=orders.cust, delivered=delivered.ts)


def query() -> Any:
    """The workload's result; its column `c` is summed up as checksum."""
    if TASK.workload in ("W1", "W1L"):
        return deliveries()
    if TASK.workload == "W3":
        customer = csv("customer", c_custkey=int, c_mktsegment=str)
        orders = csv("orders", o_orderkey=int, o_custkey=int)
        lines = csv("lineitem", l_orderkey=int, l_extendedprice=float, l_discount=float)
        building = customer.filter(customer.c_mktsegment == "BUILDING")
        theirs = orders.join(building, orders.o_custkey == building.c_custkey).select(orders.o_orderkey)
        return lines.join(theirs, lines.l_orderkey == theirs.o_orderkey).select(
            c=theirs.o_orderkey, revenue=lines.l_extendedprice * (1 - lines.l_discount)
        )
    if TASK.workload == "W4":
        orders = csv("orders", order_id=int, cur=int, amount=int, ts=int)
        rates = csv("rates", ver=int, cur=int, rate=float, ts=int)
        # there is no inner join as of a time, so rows without a partner are taken out
        valid = orders.asof_join(rates, orders.ts, rates.ts, orders.cur == rates.cur, how=pw.JoinMode.LEFT)
        priced = valid.select(orders.order_id, orders.amount, rates.rate, version=rates.ver)
        priced = priced.filter(priced.version.is_not_none())
        return priced.select(priced.order_id, total=priced.amount * pw.unwrap(priced.rate), c=pw.unwrap(priced.version))
    if TASK.workload in OUTER:
        left, right = events("left"), events("right")
        joined = left.join(right, left.k == right.k, how=OUTER[TASK.workload])
        value = pw.coalesce(left.v, 0) + pw.coalesce(right.v, 0)
        return joined.select(k=pw.coalesce(left.k, right.k), c=value)
    if TASK.workload == "W2":
        left, right = events("left"), events("right")
    else:
        left, right = (csv(side, op=int, k=int, v=int).filter(pw.this.op == 1) for side in ("left", "right"))
    return left.join(right, left.k == right.k).select(k=left.k, c=left.v + right.v)


class Finish:
    """Follow count and checksum, and report once."""

    def __init__(self) -> None:
        self._once = threading.Lock()
        self._rows = self._checksum = 0
        self._times: set[int] = set()

    def on_change(self, key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
        self._times.add(time)
        if is_addition:
            self._rows, self._checksum = row["rows"], row["checksum"]

    def on_time_end(self, time: int) -> None:
        if TASK.workload not in ENDING and (self._rows, self._checksum) == (TASK.rows_out, TASK.checksum):
            self.report()

    def report(self) -> None:
        with self._once:
            protocol.finished()
            protocol.result(self._rows, self._checksum, epochs=len(self._times))
            os._exit(0)  # a streaming run cannot be stopped from inside


def main() -> None:
    result = query()
    pw.io.null.write(result)
    total = result.reduce(rows=pw.reducers.count(), checksum=pw.reducers.sum(result.c))
    finish = Finish()
    pw.io.subscribe(total, on_change=finish.on_change, on_time_end=finish.on_time_end)
    protocol.started()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    finish.report()


if __name__ == "__main__":
    main()
