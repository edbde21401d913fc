"""Rejoinder's part: load a flow with all 22 views, refresh each in a flow of its own, and all of them in one.

The flow with all of them runs on Spark, those with one view in the test driver: the same operators on the same state,
without what Spark adds to every epoch, which would hide the differences between views.
A flow with one view is a copy of the loaded one from which the other views were dropped, so that the rows are loaded
once. The copy is made of links: files of a state are never changed. All flows read the same files of changes, one epoch
after the other, in one run.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import rejoinder as rj
from benchmarks.measure import tree_cpu_s
from benchmarks.tpch.tpch_rows import TABLES, Epochs, declaration
from rejoinder.testing import Driver, driver
from tests.oracle.tpch_answers import QUERIES

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Refreshed:
    """What the epochs of a flow cost, the rows of its views at the end, and the bytes of its arrangements."""

    cpu_s: list[float]  # of each epoch; without the first, which starts the query
    rows: dict[str, Rows]
    arrangements: list[dict[str, Any]]

    @property
    def state_bytes(self) -> int:
        return sum(arrangement["bytes"] for arrangement in self.arrangements)


class OnSpark:
    """A flow as users have it: epochs are micro-batches, the CPU seconds those of all processes."""

    def __init__(self, state: Path) -> None:
        self.flow = rj.Flow(state)
        self.sql: Callable[[str], Any] = self.flow.sql
        self.arrangements = self.flow.arrangements
        self.close = self.flow.close

    def run(self, epochs: int) -> list[float]:
        """Read all files; the CPU seconds from the end of each epoch to the end of the next one."""
        readings: list[float] = []
        self.flow.on_progress(lambda _: readings.append(tree_cpu_s()))
        self.flow.run()
        if len(readings) != epochs:
            raise RuntimeError(f"{len(readings)} epochs ran where {epochs} were fed")
        return [after - before for before, after in itertools.pairwise(readings)]

    def rows(self, view: str) -> Rows:
        return [tuple(row.values()) for row in self.flow.arrow(view).to_pylist()]


class InProcess:
    """The same operators in this process, without Spark: what the engine itself costs."""

    def __init__(self, state: Path) -> None:
        self.flow = Driver(store=state)
        self.sql: Callable[[str], Any] = self.flow.sql
        self.arrangements = self.flow.arrangements

    def run(self, epochs: int) -> list[float]:
        """As on Spark."""
        readings = []
        with mock.patch.object(driver, "net_changes", return_value=[]):  # `step` would return all changes as rows
            for _ in range(epochs):
                self.flow.step()
                readings.append(time.process_time())
        return [after - before for before, after in itertools.pairwise(readings)]

    def rows(self, view: str) -> Rows:
        return [tuple(row.values()) for row in self.flow.table(view)]

    def close(self) -> None:
        pass


Engine = type[OnSpark] | type[InProcess]


def load(engine: Engine, epochs: Epochs, folder: Path) -> tuple[Any, float]:
    """Make a flow with all views in `folder`, and load the tables; return it, and the CPU seconds of the load."""
    for table in TABLES:
        (folder / "input" / table).mkdir(parents=True)
    _link(epochs.folder / "input", folder / "input")
    flow = engine(folder / "loaded")
    if isinstance(flow, OnSpark):
        flow.flow.warm_up()
    flow.sql(";\n".join(declaration(table, folder / "input") for table in TABLES))
    flow.sql(";\n".join(f"CREATE VIEW {name} AS {query}" for name, query in QUERIES.items()))
    before = tree_cpu_s()
    flow.run(epochs.loaded)
    spent = tree_cpu_s() - before
    _link(epochs.folder / "changes", folder / "input")
    return flow, spent


def refresh(engine: Engine, epochs: Epochs, folder: Path, views: Iterable[str]) -> Refreshed:
    """Refresh some of the views, and nothing else, from the loaded state on."""
    state = folder / "refreshed"
    shutil.rmtree(state, ignore_errors=True)
    subprocess.run(["cp", "-al", folder / "loaded", state], check=True)
    kept = set(views)
    flow = engine(state)
    try:
        dropped = [f"DROP VIEW {name}" for name in QUERIES if name not in kept]
        if dropped:
            flow.sql(";\n".join(dropped))
        seconds = flow.run(len(epochs.rates))
        return Refreshed(seconds, {view: flow.rows(view) for view in kept}, flow.arrangements())
    finally:
        flow.close()


def _link(source: Path, target: Path) -> None:
    """Link all files of the tables; they keep their modification times, by which they are read."""
    for table in TABLES:
        for file in (source / table).iterdir():
            os.link(file, target / table / file.name)
