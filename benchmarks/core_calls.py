"""The cost of one call of the core API: process time of `rows` and `watermark`, for small and large batches."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pyarrow as pa

from rejoinder.core import Call, JoinCondition, StreamJoin, WindowAggregate, text_expression
from rejoinder.core.join_condition import Kind

LEFT = pa.schema([("l.k", pa.int64()), ("l.t", pa.int64())])
RIGHT = pa.schema([("r.k", pa.int64()), ("r.t", pa.int64())])
WITHIN = text_expression('"r.t" BETWEEN "l.t" - 2 AND "l.t" + 3', pa.bool_(), ("r.t", "l.t"))
BATCHES, WARM_UP = 12, 4


def join(kind: Kind, *, equi: bool) -> StreamJoin:
    """A join within five units of time, by key or without one."""
    on = [("l.k", "r.k")] if equi else []
    return StreamJoin(
        JoinCondition(kind, (LEFT, RIGHT), ({"l.t": 0}, {"r.t": 1}), {0: {1: 2}, 1: {0: 3}}, WITHIN, on=on)
    )


def windows() -> WindowAggregate:
    """Counts and sums of windows of five units of time, by key."""
    calls = {"n": Call("count"), "sum": Call("sum", "l.t")}
    return WindowAggregate(LEFT, times=["l.t"], size=5, group_by=["l.k"], calls=calls)


def measure(operator: Any, schemas: list[pa.Schema], size: int) -> tuple[float, float]:
    """The median milliseconds of `rows`, and of `watermark`; each batch has one time and keys of its own."""
    rows, marks = [], []
    for at in range(BATCHES):
        for ordinal, schema in enumerate(schemas):
            keys = range(at * size, (at + 1) * size)
            batch = pa.table([pa.array(keys), pa.array([at] * size)], schema=schema)
            start = time.process_time()
            operator.rows(ordinal, batch)
            between = time.process_time()
            operator.watermark(ordinal, ordinal if len(schemas) > 1 else 0, at + 1)
            rows.append(between - start)
            marks.append(time.process_time() - between)
    return tuple(1000 * statistics.median(each[WARM_UP:]) for each in (rows, marks))  # type: ignore[return-value]


if __name__ == "__main__":
    measure(join("LEFT", equi=True), [LEFT, RIGHT], 1)  # loads DuckDB
    for kind, equi in (("INNER", True), ("LEFT", True), ("LEFT", False), ("FULL", False)):
        for size in (1, 10_000) if equi else (1,):
            spent = measure(join(kind, equi=equi), [LEFT, RIGHT], size)  # type: ignore[arg-type]
            print(
                f"{kind} {'by key' if equi else 'by time alone'}, batches of {size}: rows %.1f ms, watermark %.1f ms"
                % spent
            )
    for size in (1, 10_000):
        print(f"windows, batches of {size}: rows %.1f ms, watermark %.1f ms" % measure(windows(), [LEFT], size))
