"""Runs the streaming query of a flow: sources to splits, checkpoint generation, errors as themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from rejoinder.errors import RejoinderError, RuntimeMismatch
from rejoinder.exchange.query import next_generation, start_query, wait_for
from rejoinder.exchange.sources import file_splits, frame_splits, union_splits

OnBatch = Callable[[DataFrame, int], None]


class ReadSource(Protocol):
    """What is known of a source here."""

    @property
    def name(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...


class Ledger(Protocol):
    """Where it is written down how far sources are read: the engine."""

    positions: dict[str, Any]
    attached: dict[str, str]

    @property
    def epoch(self) -> int: ...
    def annotate(self, positions: dict[str, Any]) -> None: ...


class Runner:
    """One streaming query at a time."""

    def __init__(self, session: SparkSession, checkpoint: str, on_batch: OnBatch) -> None:
        self.session = session
        self.checkpoint = checkpoint
        self.on_batch = on_batch
        self.interval = ""
        self.query: StreamingQuery | None = None
        self.failure: BaseException | None = None

    @property
    def is_running(self) -> bool:
        """Whether the query is active."""
        return self.query is not None and bool(self.query.isActive)

    def start(
        self,
        ledger: Ledger,
        sources: Sequence[ReadSource],
        *,
        frames: Mapping[str, DataFrame],
        inbox: Callable[[str], str],
        staged: Callable[[DataFrame], DataFrame],
        once: bool,
        interval: str,
    ) -> None:
        """Start reading the sources from where the last committed epoch left them. `staged` adds the rounds."""
        self.failure = None
        self.interval = interval
        splits = union_splits([self._splits(source, frames, inbox) for source in sources])
        checkpoint = self._generation(ledger, [ledger.attached[source.name] for source in sources])
        self.query = start_query(staged(splits), checkpoint, self._guarded, once=once, interval=interval)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the query. Raises the error of ours that ended it, else what Spark says."""
        if self.query is None:
            return True
        try:
            return wait_for(self.query, seconds)
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is told in our words
            translated = self._translated(error)
            raise translated from (None if isinstance(translated, RejoinderError) else error)

    def stop(self) -> None:
        """Stop the query; an epoch under way is not committed unless it already was."""
        if self.query is not None:
            query, self.query = self.query, None
            query.stop()
            if self.failure is not None:
                raise self.failure

    def _guarded(self, batch: DataFrame, epoch: int) -> None:
        try:
            self.on_batch(batch, epoch)
        except BaseException as error:
            self.failure = error
            raise

    def _translated(self, error: BaseException) -> BaseException:
        cause = self.failure
        if isinstance(cause, RejoinderError):
            return cause
        text = str(cause or error)
        if "PYTHON_VERSION_MISMATCH" in text:
            return RuntimeMismatch(
                "the workers run another Python than the driver",
                detail=next((line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line), None),
                hint="set PYSPARK_PYTHON (spark.pyspark.python) to the driver's Python on every host",
            )
        return cause or error

    def _splits(self, source: ReadSource, frames: Mapping[str, DataFrame], inbox: Callable[[str], str]) -> DataFrame:
        if source.format == "dataframe":
            return frame_splits(frames[source.name], source.name)
        if source.format == "memory":
            numbered = F.regexp_extract("path", r"(\d+)\.arrow$", 1).cast("bigint")
            options = {**source.options, "path": inbox(source.name)}
            return file_splits(self.session, source.name, options).withColumn("modified", numbered)
        return file_splits(self.session, source.name, source.options)

    def _generation(self, ledger: Ledger, sources: list[str]) -> str:
        """The checkpoint folder for these sources, made from the last one if they changed."""
        known = ledger.positions.get("spark")
        if known is not None and known["sources"] == sources:
            return f"{self.checkpoint}/{known['generation']}"
        number = 0 if known is None else known["generation"] + 1
        folder = f"{self.checkpoint}/{number}"
        before = [] if known is None else known["sources"]
        if known is not None or ledger.epoch >= 0 or os.path.exists(folder):
            next_generation(f"{self.checkpoint}/{number - 1}", folder, before, sources, ledger.epoch)
        ledger.annotate({**ledger.positions, "spark": {"generation": number, "sources": sources}})
        return folder
