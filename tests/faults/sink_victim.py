"""A flow with sinks that can be killed at any time and started again: `python sink_victim.py folder [url sink…]`.

Without sinks it is one in the test driver, which writes files. The view has a row per key, with rows that come, change
and go. Sinks are served in the order in which they are named.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import rejoinder as rj
from rejoinder.testing import Driver

EPOCHS = 3
TABLES = {
    "v": "id bigint PRIMARY KEY, x bigint, n bigint",
    "v_log": "id bigint, x bigint, n bigint, _epoch bigint, _diff bigint",
}
FILES = ("parquet", "csv", "json")


def write_input(folder: Path) -> None:
    """A file per epoch; the next file deletes most rows of a file."""
    (folder / "in").mkdir(parents=True)
    for epoch in range(EPOCHS):
        rows = [{"id": i, "x": epoch, "d": 1} for i in range(3 * epoch, 30)]
        rows += [{"id": i, "x": epoch - 1, "d": -1} for i in range(3 * epoch - 3, 25) if epoch]
        path = folder / "in" / f"{epoch}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_000_000 + epoch, 1_000_000 + epoch))


def step(folder: Path) -> Driver:
    """The same in the test driver: all epochs that are left, with sinks that store epochs and one that does not."""
    driver = Driver(store=folder / "state", parallelism=2)
    driver.sql(
        f"""CREATE CHANGELOG IF NOT EXISTS a (id BIGINT, x BIGINT, d BIGINT)
              USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1', diff 'd');
            CREATE VIEW IF NOT EXISTS v AS SELECT id, MAX(x) AS x, COUNT(*) AS n FROM a GROUP BY id"""
    )
    for kind in FILES:
        driver.sink("v", kind, path=folder / kind)
    driver.foreach_epoch("v", lambda epoch, _: note(folder, epoch), name="noting")
    while driver.epoch < EPOCHS - 1:
        driver.step()
    return driver


def note(folder: Path, epoch: int) -> None:
    """Write down that an epoch came."""
    with (folder / "noted").open("a") as file:
        file.write(f"{epoch}\n")


def run(flow: rj.Flow, folder: Path, url: str, sinks: Sequence[str]) -> None:
    """Read all input, an epoch per file, into a view with several sinks; the last one does not store epochs.

    Sinks whose name ends in `_log` take changes, other tables a row per key.
    """
    flow.sql(
        f"""CREATE CHANGELOG IF NOT EXISTS a (id BIGINT, x BIGINT, d BIGINT)
              USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1', diff 'd');
            CREATE VIEW IF NOT EXISTS v AS SELECT id, MAX(x) AS x, COUNT(*) AS n FROM a GROUP BY id"""
    )

    for sink in sinks:
        form, log, _ = sink.partition("_log")
        more = {} if log or form in FILES else {"mode": "upsert", "key": "id"}
        if form == "jdbc":
            more |= {"url": url, "dbtable": f"v{log}", "user": "ada", "password": "env:RJ_TEST_PASSWORD"}
        else:
            more["path"] = str(folder / sink)
        flow.sink("v", form, name=sink, **more)
    flow.foreach_epoch("v", lambda epoch, _: note(folder, epoch), name="noting")
    flow.run()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    if len(sys.argv) == 2:
        step(where)
    else:
        run(rj.Flow(where / "state", parallelism=2), where, sys.argv[2], sys.argv[3:])
