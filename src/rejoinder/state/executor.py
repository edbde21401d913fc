"""The interface of executors, and the local one. This process and Spark run the same functions on the same rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from rejoinder.ir.allowed_functions import refuse_others
from rejoinder.ir.splits import Split, split_batch
from rejoinder.kernels.user_functions.answer_checks import AnswerCheck, checked
from rejoinder.kernels.user_functions.function_imports import load
from rejoinder.runtime.bucket_rounds import REPORT, BucketRound, EpochWork, ScanRound
from rejoinder.runtime.failed_rows import raise_failed
from rejoinder.runtime.task import Report


class Executor(Protocol):
    """Runs the rounds of an epoch on splits and returns the report of each bucket."""

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds. The type of `splits` depends on the executor."""
        ...

    def run_listed(self, work: EpochWork, splits: Sequence[Split]) -> dict[int, Report]:
        """Run all rounds on listed splits, as for a hydration."""
        ...

    def check(self, functions: Collection[str]) -> None:
        """Raise `Unsupported` if a function is not allowed, `UnknownName` if a task cannot import it."""
        ...


class LocalExecutor:
    """Runs the rounds one after the other in this process; with a `check`, functions are called twice."""

    def __init__(self, check: AnswerCheck | None = None) -> None:
        self._check = check

    def run(self, work: EpochWork, splits: object) -> dict[int, Report]:
        """Run all rounds; `splits` is an iterable of batches of the split schema."""
        assert isinstance(splits, Iterable)
        with checked(self._check):
            rows = list(ScanRound(work)(splits))
            for number in range(1, len(work.plan.rounds)):
                rows = list(BucketRound(work, number)(rows))
        return reports_from(rows)

    def run_listed(self, work: EpochWork, splits: Sequence[Split]) -> dict[int, Report]:
        """Run all rounds on listed splits."""
        return self.run(work, [split_batch(splits)])

    def check(self, functions: Collection[str]) -> None:
        """Import the functions in this process."""
        refuse_others(functions)
        for name in functions:
            load(name)


def reports_from(batches: Iterable[pa.RecordBatch]) -> dict[int, Report]:
    """Collect the reports of the last round by bucket. Raises `EvaluationError` if a row failed."""
    result: dict[int, Report] = {}
    for batch in batches:
        for bucket, channel, payload in zip(*batch.columns, strict=True):
            assert channel.as_py() == REPORT, "a stream was sent beyond the last round"
            result.setdefault(bucket.as_py(), Report()).add(json.loads(payload.as_py()))
    raise_failed(result.values())
    return result
