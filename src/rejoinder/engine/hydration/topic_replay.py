"""Read topics and change feeds again on Spark: from where the flow began up to the committed position."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rejoinder.engine.executors.spark_executor import SparkExecutor
from rejoinder.exchange.connectors.delta_versions import NotReadableError, feed_until
from rejoinder.exchange.connectors.kafka_topics import first_offsets, records_between
from rejoinder.exchange.streaming.source_frames import frame_splits, union_splits
from rejoinder.exchange.tasks.spark_rounds import listed_splits
from rejoinder.ir.catalog import Source
from rejoinder.ir.splits import Split, from_row
from rejoinder.runtime.bucket_rounds import EpochWork
from rejoinder.runtime.task import Report
from rejoinder.sql.definitions.feed_definition import DELTA
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
        if source.max_ahead is not None:
            return "it is not read again, since rows that `max_ahead` rejected could be accepted now"
        if position.offset == NOTHING:
            return None
        if source.format == DELTA:
            return self._unreadable_feed(source, position)
        topic = source.options["topic"]
        ends = {int(number): int(offset) for number, offset in json.loads(position.offset)[topic].items()}
        starts = {int(number): int(offset) for number, offset in json.loads(_start(position)).get(topic, {}).items()}
        first = first_offsets(self.executor.session, f"source `{source.name}`", source.options, sorted(ends))
        read = {number: starts.get(number, 0) for number, end in ends.items() if end > starts.get(number, 0)}
        lost = [number for number, start in read.items() if number not in first or first[number] > start]
        if not lost:
            return None
        number = min(lost)
        if number not in first:
            return f"its topic `{topic}` has no partition {number} any more"
        return f"its topic `{topic}` begins at offset {first[number]} of partition {number}; older records were removed"

    def _unreadable_feed(self, source: Source, position: Position) -> str | None:
        try:
            feed_until(self.executor.session, source.options, source.schema.names, position.offset)
        except NotReadableError as reason:
            return str(reason)
        return None

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
        session = self.executor.session
        if source.format == DELTA:
            return frame_splits(feed_until(session, source.options, source.schema.names, position.offset), source.name)
        return records_between(session, source.name, source.options, _start(position), position.offset)


def _start(position: Position) -> str:
    """Return where Spark began to read, as offsets by partition; from 0 if it recorded none."""
    text = next(iter(position.start.values()), "{}")
    return text[text.index("{") :]
