"""What a search by key and time costs against testing all rows of a key: the figures of ADR 0019.

python -m benchmarks.search_by_time
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from rejoinder.engine.definitions.definition_batch import define_all, grouped
from rejoinder.engine.engine import Engine
from rejoinder.ir.splits import RowsSplit, split_batch
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.plan.join import delta_paths
from rejoinder.sql.statements.statement_parser import parse_statements
from rejoinder.state.executor import LocalExecutor
from rejoinder.store.objects.object_store import open_store

ROWS, EPOCHS, MICROS = 100_000, 10, 60_000_000
DEFINITIONS = """
    CREATE STREAM l (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 5 SECONDS);
    CREATE STREAM r (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 5 SECONDS);
    CREATE VIEW j AS SELECT l.k, l.v, r.v AS u FROM l JOIN r
      ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 10 SECONDS
"""


def seconds(keys: int, rows_per_key: int) -> float:
    """CPU seconds of all epochs, if a key with so many rows is searched by time."""
    delta_paths.RANGED = rows_per_key
    engine = Engine(open_store(f"memory://search-{keys}-{rows_per_key}"), LocalExecutor(), buckets=2)
    for group in grouped(parse_statements(DEFINITIONS), engine):
        assert isinstance(group, list)
        define_all(engine, group)
    numbers = np.random.default_rng(1)
    epochs = [[_rows(side, epoch, keys, numbers) for side in "lr"] for epoch in range(EPOCHS)]
    start = time.process_time()
    for epoch, splits in enumerate(epochs):
        engine.run_epoch(epoch, [split_batch(splits)])
    return time.process_time() - start


def _rows(side: str, epoch: int, keys: int, numbers: np.random.Generator) -> RowsSplit:
    times = epoch * MICROS + np.sort(numbers.integers(0, MICROS, ROWS))
    columns = {"k": numbers.integers(0, keys, ROWS), "v": np.arange(ROWS)}
    return RowsSplit(side, encode(pa.table({**columns, "ts": pa.array(times, pa.timestamp("us", tz="UTC"))})))


if __name__ == "__main__":
    for keys in (2_000_000, 100_000, 20_000, 2_000):
        plain, ranged = seconds(keys, 1 << 60), seconds(keys, 0)
        print(f"{keys:>9,} keys: {plain:5.1f} s testing all rows of a key, {ranged:5.1f} s searching by time")
