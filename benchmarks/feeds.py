"""Contenders of the small-epoch benchmark: a bare stream and views, each fed with one file per input and epoch."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

import rejoinder as rj

PRELOAD_FILES = 10
INPUTS = {
    "one": {"x": ("k", "v")},
    "two": {"x": ("k", "v"), "y": ("k", "v")},
    "three": {"x": ("k", "v"), "y": ("k", "j"), "z": ("j", "v")},
}
VIEWS = {
    "two": "SELECT x.k AS k, x.v + y.v AS total FROM x JOIN y ON x.k = y.k",
    "three": "SELECT x.k AS k, x.v + z.v AS total FROM x JOIN y ON x.k = y.k JOIN z ON y.j = z.j",
}
# Another question over the same inputs and keys, for which the arrangements are there already.
SECOND_VIEW = "SELECT x.k AS k, x.v - y.v AS difference FROM x JOIN y ON x.k = y.k WHERE x.v > y.v"


class Feed:
    """Folders of Parquet files, one per input, that grow by one file each when asked.

    Keys are uniform over as many values as an input has rows at the beginning: a new row meets about one row of each
    other input whatever the size, so that a larger state is the only thing that differs.
    """

    def __init__(self, folder: Path, shape: str, state_rows: int) -> None:
        self._folder = folder
        self._inputs = INPUTS[shape]
        self._keys = max(1, state_rows // len(self._inputs))
        self._rng = np.random.default_rng([42, state_rows, len(self._inputs)])
        self._files = 0
        self._start = int(time.time()) - 1_000_000  # modification times in the past, one second apart
        for name in self._inputs:
            self.path(name).mkdir(parents=True)

    def path(self, name: str) -> Path:
        return self._folder / name

    def add(self, rows: int, files: int = 1) -> None:
        """Write `files` files to each input, `rows` rows in all inputs together for each of them."""
        for _ in range(files):
            for name, columns in self._inputs.items():
                self._write(self.path(name), columns, rows // len(self._inputs))
            self._files += 1

    def _write(self, folder: Path, columns: tuple[str, ...], rows: int) -> None:
        limits = {column: 1_000_000 if column == "v" else self._keys for column in columns}
        table = pa.table({column: self._rng.integers(0, limit, rows) for column, limit in limits.items()})
        hidden, path = folder / f".{self._files:06d}", folder / f"{self._files:06d}.parquet"
        pa.parquet.write_table(table, hidden)
        os.utime(hidden, (self._start + self._files,) * 2)
        hidden.rename(path)


class Stopwatch(StreamingQueryListener):
    """The wall time of every trigger that had something to do, as Spark itself reports it, for all queries alike."""

    def __init__(self) -> None:
        self._milliseconds: list[int] = []
        self._running = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._running += 1

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        duration = event.progress.durationMs
        if "addBatch" in duration:
            self._milliseconds.append(duration["triggerExecution"])

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._running -= 1

    def take(self, expected: int, patience_s: float = 20) -> list[int]:
        """Hand over what was seen since the last call, once `expected` triggers were; the reports come late.

        More than expected are possible: an engine may run empty epochs. They are left out, they are the last ones.
        """
        deadline = time.monotonic() + patience_s
        while (len(self._milliseconds) < expected or self._running) and time.monotonic() < deadline:
            time.sleep(0.05)
        if len(self._milliseconds) < expected:
            raise RuntimeError(f"Spark reported {len(self._milliseconds)} epochs where {expected} were fed")
        seen, self._milliseconds = self._milliseconds[:expected], []
        return seen


def swallow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The empty stage: take everything, give nothing."""
    for _ in batches:
        pass
    yield from ()


class Bare:
    """What Structured Streaming itself costs: a file source, `foreachBatch`, and one empty `mapInArrow` stage."""

    def __init__(self, folder: Path) -> None:
        self.feed = Feed(folder / "input", "one", 1_000)
        self._checkpoint = str(folder / "checkpoint")

    def run(self) -> None:
        """Process the files that are there, one per trigger."""
        spark = SparkSession.builder.getOrCreate()
        stream = spark.readStream.schema("k BIGINT, v BIGINT").option("maxFilesPerTrigger", 1)
        writer = stream.parquet(str(self.feed.path("x"))).writeStream.foreachBatch(self._handle)
        query = writer.option("checkpointLocation", self._checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()

    @staticmethod
    def _handle(batch: DataFrame, epoch: int) -> None:
        batch.mapInArrow(swallow, batch.schema).write.format("noop").mode("overwrite").save()


class View:
    """A Rejoinder view over two or three inputs."""

    def __init__(self, folder: Path, shape: str, state_rows: int) -> None:
        self.feed = Feed(folder / "input", shape, state_rows)
        self.state = folder / "state"
        self.flow = rj.Flow(str(self.state))
        for name, columns in INPUTS[shape].items():
            typed = ", ".join(f"{column} BIGINT" for column in columns)
            path = self.feed.path(name).as_posix().replace("'", "''")
            options = f"path '{path}', maxFilesPerTrigger '1'"
            self.flow.sql(f"CREATE STREAM {name} ({typed}) USING parquet OPTIONS ({options})")
        self.flow.sql(f"CREATE VIEW first AS {VIEWS[shape]}")
        self.flow.warm_up()
        self.feed.add(state_rows // PRELOAD_FILES, PRELOAD_FILES)

    def run(self) -> None:
        """Process the files that are there, one of each input per epoch."""
        self.flow.run()

    def arrangement_bytes(self) -> int:
        return sum(int(arrangement["bytes"]) for arrangement in self.flow.arrangements())

    def folder_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.state.rglob("*") if path.is_file())
