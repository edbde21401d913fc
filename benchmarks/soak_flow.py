"""The flow of the soak: its definitions, its input, and the process that runs it: `python -m benchmarks.soak_flow`.

A driver catches up, says so, waits for `go`, and follows. It carries out what it finds in `commands`, and ends when
there is a file `stop`, after all input is read. It is killed at any time.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rejoinder as rj

DELAY, BOUND, STEP, FAR, START = 60, 600, 30, 7_200, 100_000  # seconds of event time; a late row is FAR behind
ORDERS, CUSTOMERS, REGIONS = 400, 500, 20
HISTORY = 20
SOURCES = {
    "orders": f"STREAM orders (id BIGINT, t BIGINT, WATERMARK t DELAY OF {DELAY})",
    "deliveries": f"STREAM deliveries (id BIGINT, t BIGINT, WATERMARK t DELAY OF {DELAY})",
    "customers": "TABLE customers (id BIGINT, region BIGINT, version BIGINT, PRIMARY KEY (id))",
    "regions": "TABLE regions (id BIGINT, name STRING, version BIGINT, PRIMARY KEY (id))",
}
VIEWS = {
    "served": "SELECT o.id, o.t, d.t AS delivered FROM orders o LEFT JOIN deliveries d "
    f"ON o.id = d.id AND d.t BETWEEN o.t AND o.t + {BOUND} EMIT FINAL",
    "met": f"SELECT o.id, o.t FROM orders o JOIN deliveries d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + {BOUND}",
    "homes": "SELECT c.id, r.name FROM customers c LEFT JOIN regions r ON c.region = r.id",
}
EXTRA = (
    "CREATE VIEW IF NOT EXISTS extra AS "
    "SELECT r.name, count(*) AS n FROM customers c JOIN regions r ON c.region = r.id GROUP BY r.name"
)
SCHEMAS = {
    "orders": pa.schema([("id", pa.int64()), ("t", pa.int64())]),
    "deliveries": pa.schema([("id", pa.int64()), ("t", pa.int64())]),
    "customers": pa.schema([("id", pa.int64()), ("region", pa.int64()), ("version", pa.int64())]),
    "regions": pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())]),
}


class Input:
    """Writes files, one at a time, whole or not at all. Times rise, and are at most DELAY out of order."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self._chance = folder, chance
        self.number = self.late_rows = 0
        self.now = START
        for name in SOURCES:
            (folder / name).mkdir(parents=True)
        self.write("regions", [{"id": i, "name": f"r{i}", "version": 0} for i in range(REGIONS)])
        self.write("customers", [{"id": i, "region": i % REGIONS, "version": 0} for i in range(CUSTOMERS)])
        self.step(idle=False, late=False)

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Let a file appear."""
        hidden = self.folder / name / f".{self.number:06d}"
        pq.write_table(pa.Table.from_pylist(rows, SCHEMAS[name]), hidden)
        os.replace(hidden, self.folder / name / f"{self.number:06d}.parquet")

    def step(self, *, idle: bool, late: bool) -> None:
        """Write what happens in STEP seconds of event time; `idle`: no delivery; `late`: rows that nobody waits for."""
        self.number += 1
        self.now += STEP
        chance = self._chance
        ids = [self.number * ORDERS + i for i in range(ORDERS)]
        orders = [{"id": i, "t": self.now - chance.randrange(DELAY // 2)} for i in ids]
        before = [i - ORDERS * chance.randrange(2 * BOUND // STEP) for i in ids[::2]]
        deliveries = [{"id": i, "t": self.now - chance.randrange(DELAY // 2)} for i in before if i > 0]
        if late:
            orders += [{"id": -i, "t": self.now - FAR} for i in ids[:5]]
            deliveries += [{"id": -i, "t": self.now - FAR} for i in ids[:3]]
            self.late_rows += 5 if idle else 8
        self.write("orders", orders)
        if not idle:
            self.write("deliveries", deliveries)
        if self.number % 5 == 0:
            changed = chance.sample(range(CUSTOMERS), 20)
            moved = [{"id": i, "region": chance.randrange(REGIONS + 2), "version": self.number} for i in changed]
            self.write("customers", moved)
        if self.number % 20 == 0:
            region = chance.randrange(REGIONS)
            self.write("regions", [{"id": region, "name": f"r{region}/{self.number}", "version": self.number}])


def define(flow: rj.Flow, folder: Path) -> None:
    """Create all that is not there yet."""
    for name, source in SOURCES.items():
        kind, rest = source.split(" ", 1)
        order = ", order 'version'" if kind == "TABLE" else ""
        flow.sql(f"CREATE {kind} IF NOT EXISTS {rest} USING parquet OPTIONS (path '{folder / name}'{order})")
    for name, query in VIEWS.items():
        flow.sql(f"CREATE VIEW IF NOT EXISTS {name} AS {query}")


def drive(folder: Path, parallelism: int) -> None:
    """Run the flow until there is a file `stop`."""
    flow = rj.Flow(folder / "state", parallelism=parallelism, history=HISTORY)
    define(flow, folder / "in")
    flow.run()
    say(folder, "caught-up", flow)
    while not (folder / "go").exists():
        sleep(0.1)
    flow.start(interval="500 milliseconds")
    while not (folder / "stop").exists():
        flow.wait(1)
        for command in sorted((folder / "commands").glob("*.sql")):
            flow.sql(command.read_text())
            command.rename(command.with_suffix(".done"))
        say(folder, "progress", flow)
    flow.stop()
    flow.run()
    say(folder, "caught-up", flow)


def say(folder: Path, name: str, flow: rj.Flow) -> None:
    """Tell how far it is, in one step."""
    hidden = folder / f".{name}"
    hidden.write_text(json.dumps({"pid": os.getpid(), "epoch": flow.epoch}))
    os.replace(hidden, folder / name)


if __name__ == "__main__":
    drive(Path(sys.argv[1]), int(sys.argv[2]))
