"""Kafka topics as sources: Spark tracks the offsets and passes records as bytes; brokers are checked before the start.

Spark takes minutes to detect a broker that does not answer, and its error is unclear. So each topic is described first,
by Kafka's own client in Spark's JVM, which also returns the partitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rejoinder.errors import InputError, MissingInput, near_misses
from rejoinder.exchange.session.jars import KAFKA, provide
from rejoinder.ir.splits import SPLITS_DDL, RecordsSplit, split_batch
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.secret_options import resolved, scrubbed

PREFIX = "kafka."
ANSWER_MS = "5000"
BLOCKED_MS = "15000"
# By default an epoch reads this many records of a topic per core: a backlog must fit into memory.
EPOCH_RECORDS = 200_000
PACKED_BYTES = 32 << 20
SPARK_OPTIONS = ("startingoffsets", "failondataloss", "maxoffsetspertrigger", "minpartitions")
"""In lower case: Spark ignores the case of the names of options."""


def topic_splits(session: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    """Return a stream of the records of a topic, from its start, as splits."""
    provide(session, KAFKA)
    settings = resolved(f"source `{name}`", options)
    reader = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings["bootstrap"])
        .option("subscribe", settings["topic"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", EPOCH_RECORDS * session.sparkContext.defaultParallelism)
        .option("includeHeaders", "headers" in settings)
    )
    for option, value in settings.items():
        if option in SPARK_OPTIONS or option.startswith(PREFIX):
            reader = reader.option(option, value)
    parts = ["key", "value", "partition", "offset", "timestamp", *(["headers"] if "headers" in settings else [])]
    return reader.load().select(*parts).mapInArrow(PackRecords(name, settings["topic"]), SPLITS_DDL)


def records_between(session: SparkSession, name: str, options: Mapping[str, str], start: str, end: str) -> DataFrame:
    """Return the records of a topic between two positions as splits. Positions are Spark's: offsets by partition.

    Reading them fails if the broker has removed some of them.
    """
    provide(session, KAFKA)
    settings = resolved(f"source `{name}`", options)
    topic = settings["topic"]
    ends = {int(number): offset for number, offset in json.loads(end)[topic].items()}
    starts = {int(number): offset for number, offset in json.loads(start).get(topic, {}).items()}
    from_ = {topic: {str(number): starts.get(number, 0) for number in ends}}
    reader = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", settings["bootstrap"])
        .option("assign", json.dumps({topic: sorted(ends)}))
        .option("startingOffsets", json.dumps(from_))
        .option("endingOffsets", json.dumps({topic: {str(number): offset for number, offset in ends.items()}}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "headers" in settings)
    )
    for option, value in settings.items():
        if option == "minpartitions" or option.startswith(PREFIX):
            reader = reader.option(option, value)
    parts = ["key", "value", "partition", "offset", "timestamp", *(["headers"] if "headers" in settings else [])]
    return reader.load().select(*parts).mapInArrow(PackRecords(name, topic), SPLITS_DDL)


@dataclass(frozen=True)
class PackRecords:
    """Packs records into splits of some megabytes; `time` is that of the newest record."""

    name: str
    topic: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a split for every batch of Spark, or several if its records are large."""
        for batch in batches:
            pieces = max(1, -(-batch.nbytes // PACKED_BYTES))
            size = max(1, -(-batch.num_rows // pieces))
            for start in range(0, batch.num_rows, size):
                yield self._split(pa.Table.from_batches([batch.slice(start, size)]))

    def _split(self, records: pa.Table) -> pa.RecordBatch:
        newest = pc.max(records.column("timestamp")).cast(pa.int64()).as_py() or 0
        return split_batch([RecordsSplit(self.name, self.topic, encode(records), newest // 1000)])


def send(messages: DataFrame, owner: str, options: Mapping[str, str], headers: Mapping[str, str]) -> None:
    """Send messages (`key`, `value`) to a topic, all with the same headers. Returns when the broker has them."""
    provide(messages.sparkSession, KAFKA)
    settings = resolved(owner, options)
    pairs = [F.struct(F.lit(name).alias("key"), F.lit(text.encode()).alias("value")) for name, text in headers.items()]
    writer = messages.withColumn("headers", F.array(*pairs)).write.format("kafka")
    for option, value in {"kafka.max.block.ms": BLOCKED_MS, **settings}.items():
        if option.startswith(PREFIX):
            writer = writer.option(option, value)
    writer.option("kafka.bootstrap.servers", settings["bootstrap"]).option("topic", settings["topic"]).save()


def partitions_of(session: SparkSession, owner: str, options: Mapping[str, str]) -> list[int]:
    """Return the partitions of a topic. Raises `MissingInput`, within seconds, if broker or topic do not exist.

    `owner` is the source or sink, for messages: "source `clicks`".
    """
    provide(session, KAFKA)
    settings = resolved(owner, options)
    jvm: Any = session._jvm
    try:
        client = jvm.org.apache.kafka.clients.admin.Admin.create(_client_properties(jvm, settings))
        try:
            return _check_topic(client, owner, settings["topic"], settings["bootstrap"])
        finally:
            client.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as failure:
        raise _unreachable(failure, owner, settings["bootstrap"], options) from None


def first_offsets(
    session: SparkSession, owner: str, options: Mapping[str, str], partitions: list[int]
) -> dict[int, int]:
    """Return the oldest offset that the broker still has, by partition, for existing ones. Raises `InputError`."""
    settings = resolved(owner, options)
    provide(session, KAFKA)
    jvm: Any = session._jvm
    admin = jvm.org.apache.kafka.clients.admin
    try:
        client = admin.Admin.create(_client_properties(jvm, settings))
        try:
            request = jvm.java.util.HashMap()
            for number in set(partitions) & set(_existing_partitions(client, settings["topic"])):
                partition = jvm.org.apache.kafka.common.TopicPartition(settings["topic"], number)
                request.put(partition, admin.OffsetSpec.earliest())
            offsets = client.listOffsets(request).all().get()
            return {partition.partition(): int(offsets[partition].offset()) for partition in offsets}
        finally:
            client.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as failure:
        raise _unreachable(failure, owner, settings["bootstrap"], options) from None


def _client_properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    """Return the properties of Kafka's own client, with timeouts of seconds."""
    properties = jvm.java.util.Properties()
    properties.put("default.api.timeout.ms", ANSWER_MS)
    properties.put("request.timeout.ms", ANSWER_MS)
    for option, value in settings.items():
        if option.startswith(PREFIX):
            properties.put(option.removeprefix(PREFIX), value)
    properties.put("bootstrap.servers", settings["bootstrap"])
    return properties


def _check_topic(client: Any, owner: str, topic: str, address: str) -> list[int]:
    partitions = _existing_partitions(client, topic)
    if not partitions:
        topics = sorted(client.listTopics().names().get())
        raise MissingInput(
            f"there is no topic `{topic}` at {address}",
            detail=f"{owner}; existing topics: {', '.join(topics[:20]) or 'none'}",
            hint=near_misses(topic, topics) or "create the topic, or correct OPTIONS (topic '…')",
        )
    return partitions


def _existing_partitions(client: Any, topic: str) -> list[int]:
    """Return the partitions of a topic; none if it does not exist. Raises `Py4JJavaError` if the broker is silent."""
    try:
        topics = client.describeTopics([topic]).allTopicNames().get()
    except Py4JJavaError as failure:
        if "UnknownTopicOrPartitionException" not in str(failure.java_exception):
            raise
        return []
    return [part.partition() for part in topics[topic].partitions()]


def _unreachable(failure: Py4JJavaError, owner: str, address: str, options: Mapping[str, str]) -> InputError:
    """Return the error for a broker that is silent or refuses access, without Java's stack."""
    reasons = _causes(failure.java_exception)
    detail = scrubbed(f"{owner}: {reasons[-1]}", options)
    if any("Authentication" in reason or "Authorization" in reason for reason in reasons):
        return MissingInput(
            f"the Kafka broker at {address} denies access",
            detail=detail,
            hint="correct the options kafka.security.… and kafka.sasl.…",
        )
    if any("ConfigException" in reason and "bootstrap" not in reason for reason in reasons):
        return InputError(f"Kafka rejects the options of {owner}", detail=detail, hint="correct the options kafka.…")
    return MissingInput(
        f"no Kafka broker answers at {address}",
        detail=detail,
        hint="start it, or correct OPTIONS (bootstrap 'host:port')",
    )


def _causes(error: Any) -> list[str]:
    causes = []
    while error is not None:
        causes.append(str(error.toString()))
        error = error.getCause()
    return causes
