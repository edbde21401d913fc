"""Read topics and change feeds again on Spark: from the start of the flow up to the committed position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rejoinder.connectors.registry import source_side
from rejoinder.engine.executors.spark_executor import SparkExecutor
from rejoinder.exchange.streaming.source_frames import union_splits
from rejoinder.exchange.tasks.spark_rounds import listed_splits
from rejoinder.ir.catalog import Source
from rejoinder.ir.splits import Split, from_row
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Report
from rejoinder.state.positions import NOTHING, Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TopicReader:
    """Reads topics and change feeds with the session of an executor."""

    def __init__(self, executor: SparkExecutor) -> None:
        self.executor = executor

    def unreadable(self, source: Source, position: Position) -> str | None:
        """Return why the records up to a position cannot be read again; None if the broker or the table has them all.

        Asks the broker, or reads the log of the table, which may take some seconds. Raises `InputError` if there is no
        response, since the records may still exist.
        """
        if position.offset == NOTHING:
            return None
        return source_side(source).lost_records(self.executor.session, source, _start(position), position.offset)

    def run(
        self, work: EpochWork, splits: Sequence[Split], again: Sequence[tuple[Source, Position]]
    ) -> dict[int, Report]:
        """Run a hydration on splits and on the records of topics up to their positions."""
        frames = [self._records(source, position) for source, position in again if position.offset != NOTHING]
        frames += [listed_splits(self.executor.session, splits)] if splits else []
        return self.executor.run_frame(work, union_splits(frames)) if frames else {}

    def collected(self, source: Source, position: Position) -> list[Split]:
        """Read the records of a topic up to a position, in this process."""
        if position.offset == NOTHING:
            return []
        rows = self._records(source, position).collect()
        return [from_row(*row) for row in rows]

    def _records(self, source: Source, position: Position) -> DataFrame:
        return source_side(source).records(self.executor.session, source, _start(position), position.offset)


def _start(position: Position) -> str:
    """Return where Spark began to read, as it recorded it; empty if it recorded nothing."""
    return next(iter(position.start.values()), "")
