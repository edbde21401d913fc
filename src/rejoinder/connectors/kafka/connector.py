"""Kafka topics: Spark tracks offsets and sends messages; records are decoded and encoded by tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.connectors.connector import Connector, Inputs, Rereading, SinkSide, SourceSide, TargetContext
from rejoinder.connectors.delivery import Target
from rejoinder.connectors.kafka.message_options import (
    MESSAGE_OPTIONS,
    VALUE_FORMATS,
    check_messages,
    tells_changes,
    written_columns,
)
from rejoinder.connectors.kafka.message_values import Values
from rejoinder.connectors.kafka.record_layout import REJECTED_RECORDS
from rejoinder.connectors.kafka.target import KafkaTarget, LocalTopic
from rejoinder.connectors.kafka.topic_options import ALTERABLE, PREFIXES, TOPIC_OPTIONS, check_layout, topic_options
from rejoinder.ir.catalog import Kind, Sink, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TopicSource(SourceSide):
    """A topic. Its records can be read again as long as the broker has all of them."""

    options = frozenset(TOPIC_OPTIONS)
    prefixes = PREFIXES
    alterable = frozenset(ALTERABLE)
    noun = "a topic"
    rereading = Rereading.SPARK
    is_partitioned = True
    passes_rows = True
    rejected_schema = REJECTED_RECORDS

    def normalized(self, name: str, kind: Kind, options: Mapping[str, str]) -> dict[str, str]:
        return topic_options(name, options)

    def check(self, source: Source) -> None:
        check_layout(source)

    def is_json(self, options: Mapping[str, str]) -> bool:
        return options.get("format", "json") == "json"

    def partitions(self, session: SparkSession, source: Source) -> list[int]:
        from rejoinder.connectors.kafka.spark.topics import partitions_of

        return partitions_of(session, f"source `{source.name}`", source.options)

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        from rejoinder.connectors.kafka.spark.topics import topic_splits

        return topic_splits(session, source.name, source.options)

    def lost_records(self, session: SparkSession, source: Source, start: str, end: str) -> str | None:
        """Return which records the broker has removed; None if it has all of them."""
        from rejoinder.connectors.kafka.spark.topics import first_offsets

        topic = source.options["topic"]
        ends, starts = _offsets(end, topic), _offsets(start, topic)
        first = first_offsets(session, f"source `{source.name}`", source.options, sorted(ends))
        read = {number: starts.get(number, 0) for number, offset in ends.items() if offset > starts.get(number, 0)}
        lost = [number for number, offset in read.items() if number not in first or first[number] > offset]
        if not lost:
            return None
        number = min(lost)
        if number not in first:
            return f"its topic `{topic}` has no partition {number} any more"
        return f"its topic `{topic}` begins at offset {first[number]} of partition {number}; older records were removed"

    def records(self, session: SparkSession, source: Source, start: str, end: str) -> DataFrame:
        from rejoinder.connectors.kafka.spark.topics import records_between

        return records_between(session, source.name, source.options, _json(start), end)


class TopicSink(SinkSide):
    """A topic that gets a message for each change, or for each key."""

    needs = ("bootstrap", "topic")
    takes = MESSAGE_OPTIONS
    prefix = "kafka."
    choices: Mapping[str, tuple[str, ...]] = {"value_format": VALUE_FORMATS}
    modes = ("append", "upsert", "debezium")
    keyed_modes = ("upsert", "debezium")
    sends_messages = True

    def target(self, context: TargetContext) -> Target:
        """Return the topic; in the test driver, a list of messages."""
        if context.host.session is None:
            return LocalTopic(context.sink, context.host.messages)
        return KafkaTarget(context.sink, context.host.session)

    def check(self, sink: Sink, schema: pa.Schema) -> None:
        check_messages(sink, schema)

    def tells_changes(self, sink: Sink) -> bool:
        return tells_changes(sink)

    def shown_options(self, sink: Sink, schema: pa.Schema) -> dict[str, str]:
        """Return the options, with the Avro schema that is used."""
        options = super().shown_options(sink, schema)
        if options.get("value_format") == "avro":
            options["avro_schema"] = Values(sink).schema(written_columns(sink, schema))
        return options


def _json(position: str) -> str:
    """Return a position of Spark without the line before it; no offsets if Spark recorded none."""
    return position[position.index("{") :] if position else "{}"


def _offsets(position: str, topic: str) -> dict[int, int]:
    """Return the offsets of a position by partition."""
    return {int(number): int(offset) for number, offset in json.loads(_json(position)).get(topic, {}).items()}


KAFKA = Connector("kafka", TopicSource(), TopicSink())
