"""Spark as executor: the rounds of an epoch as the stages of one job.

The stages are part of the streaming query and do not change from epoch to epoch, so that Spark plans nothing twice;
what does change (the state before the epoch) reaches the tasks as a local property of the job. Adaptive execution would
run stages before it asks us: on a session that has it, an epoch's stages are put behind its splits when it is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from rejoinder.engine.executor import reports_from
from rejoinder.exchange.rounds import attach, listed_splits, run_attached
from rejoinder.exchange.session import is_adaptive
from rejoinder.operators.stage import Batches, BucketRound, EpochWork, ScanRound, Setting, exchange_batch
from rejoinder.operators.task import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class StagedRound:
    """One round as a worker runs it: the setting came with the stage, the work comes with the epoch."""

    setting: Setting
    number: int

    def __call__(self, text: str, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Run the round of the epoch that `text` describes."""
        work = EpochWork.from_text(self.setting, text)
        return ScanRound(work)(batches) if self.number == 0 else BucketRound(work, self.number)(batches)


def staged(splits: DataFrame, setting: Setting) -> DataFrame:
    """Put all rounds behind the splits; the result is what the last round reports."""
    rounds = [StagedRound(setting, number) for number in range(len(setting.plan.rounds))]
    return attach(splits, rounds, setting.buckets)


class SparkExecutor:
    """Runs an epoch as one job, several with adaptive execution; `splits` is a DataFrame that `prepare` gave."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def prepare(self, splits: DataFrame, setting: Setting) -> DataFrame:
        """What the streaming query is made of: the splits, with the rounds behind them if they may stand there."""
        self._is_adaptive = is_adaptive(self.session)
        return splits if self._is_adaptive else staged(splits, setting)

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds of an epoch."""
        frame = cast("DataFrame", splits)
        return self._run(work, staged(frame, work.setting) if self._is_adaptive else frame)

    def run_listed(self, work: EpochWork, splits: list[tuple[str, int]]) -> dict[int, Report]:
        """Run all rounds on arrangement splits."""
        return self._run(work, staged(listed_splits(self.session, splits), work.setting)) if splits else {}

    def _run(self, work: EpochWork, frame: DataFrame) -> dict[int, Report]:
        rows = run_attached(frame, work.to_text())
        return reports_from([exchange_batch(rows)]) if rows else {}
