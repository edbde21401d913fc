"""Spark as executor: the rounds of an epoch as the stages of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rejoinder.engine.executor import reports_from
from rejoinder.exchange.rounds import Round, listed_splits, run_rounds
from rejoinder.operators.stage import BucketRound, EpochWork, ScanRound, exchange_batch
from rejoinder.operators.task import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkExecutor:
    """Runs the rounds as one Spark job; `splits` is a DataFrame of the split schema."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds of an epoch."""
        rounds: list[Round] = [ScanRound(work)]
        rounds += [BucketRound(work, number) for number in range(1, len(work.plan.rounds))]
        rows = run_rounds(cast("DataFrame", splits), rounds, work.buckets)
        return reports_from([exchange_batch(rows)]) if rows else {}

    def run_listed(self, work: EpochWork, splits: list[tuple[str, int]]) -> dict[int, Report]:
        """Run all rounds on arrangement splits."""
        return self.run(work, listed_splits(self.session, splits)) if splits else {}
