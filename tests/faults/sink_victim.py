"""A flow with sinks that can be killed at any time and started again: `python sink_victim.py folder`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import rejoinder as rj

EPOCHS = 3


def write_input(folder: Path) -> None:
    """A file per epoch; each row of a file is taken back by the next one, but for a few."""
    (folder / "in").mkdir(parents=True)
    for epoch in range(EPOCHS):
        rows = [{"id": i, "x": epoch, "d": 1} for i in range(30)]
        rows += [{"id": i, "x": epoch - 1, "d": -1} for i in range(25) if epoch]
        path = folder / "in" / f"{epoch}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_000_000 + epoch, 1_000_000 + epoch))


def run(flow: rj.Flow, folder: Path) -> None:
    """Read all input, an epoch per file, into a view with two sinks: one that remembers epochs, and one that cannot."""
    flow.sql(
        f"""CREATE CHANGELOG IF NOT EXISTS a (id BIGINT, x BIGINT, d BIGINT)
              USING parquet OPTIONS (path '{folder}/in', maxFilesPerTrigger '1', diff 'd');
            CREATE VIEW IF NOT EXISTS v AS SELECT id, x FROM a"""
    )

    def note(epoch: int, changes: object) -> None:
        with (folder / "noted").open("a") as file:
            file.write(f"{epoch}\n")

    flow.sink("v", "parquet", name="files", path=folder / "out")
    flow.foreach_epoch("v", note, name="noting")
    flow.run()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    run(rj.Flow(where / "state", parallelism=2), where)
