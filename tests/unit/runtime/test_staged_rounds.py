"""Rounds as Spark's workers run them: sent with every task, and read once by each worker."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import cast

import pyarrow as pa

from rejoinder.engine.executors.spark_executor import StagedRound, packed, packed_work, unpacked, work_of
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Report
from rejoinder.state.executor import LocalExecutor, reports_from
from rejoinder.testing import Driver


class Worker(LocalExecutor):
    """Runs each round as a worker does: from the bytes of its function and the text of the epoch."""

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        batches = list(cast("Iterable[pa.RecordBatch]", splits))
        for number in range(len(work.plan.rounds)):
            sent = pickle.dumps(StagedRound(packed(work.setting), number))
            received: StagedRound = pickle.loads(sent)  # noqa: S301 - written above
            batches = list(received(packed_work(work), batches))
        return reports_from(batches)


def test_a_worker_reads_the_plan_once_and_the_work_once_per_epoch() -> None:
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (k INT, s STRING); CREATE VIEW v AS SELECT k, count(*) AS n FROM a GROUP BY k")
    driver._engine.executor = Worker()
    unpacked.cache_clear()
    work_of.cache_clear()
    for epoch in range(3):
        driver.insert("a", *({"k": k % 3, "s": f"{epoch}"} for k in range(9)))
        driver.step()
    assert driver.table("v") == [{"k": k, "n": 9} for k in range(3)]
    rounds = len(driver._engine.version.plan.dataflow.rounds)
    assert rounds > 1
    assert (unpacked.cache_info().misses, work_of.cache_info().misses) == (1, 3)
    assert work_of.cache_info().hits == 3 * (rounds - 1)
