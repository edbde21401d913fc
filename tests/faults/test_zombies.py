"""A late attempt of a task whose epoch is committed: no manifest names its files, and they have no effect."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from rejoinder.runtime.bucket_rounds import BucketRound, EpochWork, ScanRound
from rejoinder.state.executor import LocalExecutor, reports_from
from rejoinder.testing import Driver


class RecordingExecutor(LocalExecutor):
    """Keeps what the attempts of an epoch were given."""

    def __init__(self) -> None:
        self.attempts: list[tuple[EpochWork, int, list[pa.RecordBatch]]] = []

    def run(self, work: EpochWork, splits: object) -> dict[int, Any]:
        assert isinstance(splits, Iterable)
        rows = list(ScanRound(work)(splits))
        for number in range(1, len(work.plan.rounds)):
            self.attempts.append((work, number, rows))
            rows = list(BucketRound(work, number)(rows))
        return reports_from(rows)


def test_an_attempt_that_finishes_late_changes_nothing(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path / "state", parallelism=2)
    driver.sql("CREATE CHANGELOG a (id BIGINT, x BIGINT); CREATE TABLE b (id BIGINT, y BIGINT, PRIMARY KEY (id))")
    driver.sql("CREATE VIEW v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    executor = driver._engine.executor = RecordingExecutor()
    for epoch in range(3):
        driver.insert("a", *[{"id": i, "x": epoch} for i in range(10)])
        driver.insert("b", *[{"id": i, "y": epoch} for i in range(10)])
        driver.step()
    before = driver.table("v"), driver.stream("v"), driver._engine.version.state.files()
    files = set((tmp_path / "state" / "runs").rglob("*.arrow"))
    for work, number, rows in executor.attempts:  # of all epochs: some expired long ago
        assert list(BucketRound(work, number)(rows))
    written = set((tmp_path / "state" / "runs").rglob("*.arrow")) - files
    assert written, "the attempts did their work once more"
    driver.restart()
    assert (driver.table("v"), driver.stream("v"), driver._engine.version.state.files()) == before
    driver.delete("a", {"id": 1, "x": 0})
    assert driver.step() == {"v": [({"id": 1, "x": 0, "y": 2}, -1)]}
    named = driver._engine.version.state.files()
    assert not any(path.relative_to(tmp_path / "state").as_posix() in named for path in written)
