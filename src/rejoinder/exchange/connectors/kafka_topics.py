"""Topics as sources: Spark keeps the offsets and hands records over as bytes; a look at the broker before the start.

Spark finds out about a broker that does not answer after minutes, and in words of its own. So each topic is asked for
first, by Kafka's own client in Spark's JVM; that also tells the partitions.
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
from rejoinder.exchange.tasks.spark_rounds import SPLITS
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.secret_options import resolved, scrubbed

PREFIX = "kafka."
ANSWER_MS = "5000"
BLOCKED_MS = "15000"
# Unless the user says otherwise an epoch takes this many records of a topic per core: a backlog must fit the memory.
EPOCH_RECORDS = 200_000
PACKED_BYTES = 32 << 20
PASSED_ON = {
    "startingoffsets": "startingOffsets",
    "failondataloss": "failOnDataLoss",
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "minpartitions": "minPartitions",
}


def topic_splits(session: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame:
    """The records of a topic from its start, as bytes."""
    provide(session, KAFKA)
    known = resolved(f"source `{name}`", options)
    reader = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", known["bootstrap"])
        .option("subscribe", known["topic"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", EPOCH_RECORDS * session.sparkContext.defaultParallelism)
        .option("includeHeaders", "headers" in known)
    )
    for option, value in known.items():
        if option in PASSED_ON or option.startswith(PREFIX):
            reader = reader.option(PASSED_ON.get(option, option), value)
    parts = ["key", "value", "partition", "offset", "timestamp", *(["headers"] if "headers" in known else [])]
    return reader.load().select(*parts).mapInArrow(PackRecords(name, known["topic"]), SPLITS)


def records_between(session: SparkSession, name: str, options: Mapping[str, str], start: str, end: str) -> DataFrame:
    """The records of a topic from one position to another, as splits. Positions are Spark's: offsets by partition.

    Fails if the broker has removed some of them.
    """
    provide(session, KAFKA)
    known = resolved(f"source `{name}`", options)
    topic = known["topic"]
    ends = {int(number): offset for number, offset in json.loads(end)[topic].items()}
    starts = {int(number): offset for number, offset in json.loads(start).get(topic, {}).items()}
    from_ = {topic: {str(number): starts.get(number, 0) for number in ends}}
    reader = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", known["bootstrap"])
        .option("assign", json.dumps({topic: sorted(ends)}))
        .option("startingOffsets", json.dumps(from_))
        .option("endingOffsets", json.dumps({topic: {str(number): offset for number, offset in ends.items()}}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "headers" in known)
    )
    for option, value in known.items():
        if option == "minpartitions" or option.startswith(PREFIX):
            reader = reader.option(PASSED_ON.get(option, option), value)
    parts = ["key", "value", "partition", "offset", "timestamp", *(["headers"] if "headers" in known else [])]
    return reader.load().select(*parts).mapInArrow(PackRecords(name, topic), SPLITS)


@dataclass(frozen=True)
class PackRecords:
    """Packs records into splits, of some megabytes each; `modified` is when the newest was sent."""

    name: str
    topic: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a split for every batch that Spark hands over, several if its records are large."""
        for batch in batches:
            pieces = max(1, -(-batch.nbytes // PACKED_BYTES))
            size = max(1, -(-batch.num_rows // pieces))
            for at in range(0, batch.num_rows, size):
                yield self._split(pa.Table.from_batches([batch.slice(at, size)]))

    def _split(self, records: pa.Table) -> pa.RecordBatch:
        newest = pc.max(records.column("timestamp")).cast(pa.int64()).as_py() or 0
        return pa.RecordBatch.from_pydict(
            {
                "source": [self.name],
                "path": [self.topic],
                "modified": [newest // 1000],
                "payload": [encode(records)],
            },
        )


def send(messages: DataFrame, owner: str, options: Mapping[str, str], headers: Mapping[str, str]) -> None:
    """Send messages (`key`, `value`) to a topic, all with the same headers; returns when the broker has them."""
    provide(messages.sparkSession, KAFKA)
    known = resolved(owner, options)
    pairs = [F.struct(F.lit(name).alias("key"), F.lit(text.encode()).alias("value")) for name, text in headers.items()]
    writer = messages.withColumn("headers", F.array(*pairs)).write.format("kafka")
    for option, value in {"kafka.max.block.ms": BLOCKED_MS, **known}.items():
        if option.startswith(PREFIX):
            writer = writer.option(option, value)
    writer.option("kafka.bootstrap.servers", known["bootstrap"]).option("topic", known["topic"]).save()


def partitions_of(session: SparkSession, owner: str, options: Mapping[str, str]) -> list[int]:
    """The partitions of a topic. Raises `MissingInput`, within seconds, if broker or topic are not there.

    `owner` says who asks, in messages: "source `clicks`".
    """
    provide(session, KAFKA)
    known = resolved(owner, options)
    jvm: Any = session._jvm
    settings = _settings(jvm, known)
    try:
        client = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            return _ask(client, owner, known["topic"], known["bootstrap"])
        finally:
            client.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as failure:
        raise _unreachable(failure, owner, known["bootstrap"], options) from None


def first_offsets(
    session: SparkSession, owner: str, options: Mapping[str, str], partitions: list[int]
) -> dict[int, int]:
    """The oldest offset that the broker still has, by partition, of those that exist. Raises `InputError`."""
    known = resolved(owner, options)
    provide(session, KAFKA)
    jvm: Any = session._jvm
    settings = _settings(jvm, known)
    admin = jvm.org.apache.kafka.clients.admin
    try:
        client = admin.Admin.create(settings)
        try:
            asked = jvm.java.util.HashMap()
            for number in set(partitions) & set(_present(client, known["topic"])):
                partition = jvm.org.apache.kafka.common.TopicPartition(known["topic"], number)
                asked.put(partition, admin.OffsetSpec.earliest())
            found = client.listOffsets(asked).all().get()
            return {each.partition(): int(found[each].offset()) for each in found}
        finally:
            client.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as failure:
        raise _unreachable(failure, owner, known["bootstrap"], options) from None


def _settings(jvm: Any, known: Mapping[str, str]) -> Any:
    """What Kafka's own client is made with; it gives up within seconds."""
    settings = jvm.java.util.Properties()
    settings.put("default.api.timeout.ms", ANSWER_MS)
    settings.put("request.timeout.ms", ANSWER_MS)
    for option, value in known.items():
        if option.startswith(PREFIX):
            settings.put(option.removeprefix(PREFIX), value)
    settings.put("bootstrap.servers", known["bootstrap"])
    return settings


def _ask(client: Any, owner: str, topic: str, address: str) -> list[int]:
    partitions = _present(client, topic)
    if not partitions:
        topics = sorted(client.listTopics().names().get())
        raise MissingInput(
            f"there is no topic `{topic}` at {address}",
            detail=f"{owner}; topics there: {', '.join(topics[:20]) or 'none'}",
            hint=near_misses(topic, topics) or "create the topic, or correct OPTIONS (topic '…')",
        )
    return partitions


def _present(client: Any, topic: str) -> list[int]:
    """The partitions of a topic; none if there is no such topic. Raises what Java raises if the broker is silent."""
    try:
        found = client.describeTopics([topic]).allTopicNames().get()
    except Py4JJavaError as failure:
        if "UnknownTopicOrPartitionException" not in str(failure.java_exception):
            raise
        return []
    return [part.partition() for part in found[topic].partitions()]


def _unreachable(failure: Py4JJavaError, owner: str, address: str, options: Mapping[str, str]) -> InputError:
    """What a broker's silence or refusal means, without what Java says around it."""
    reasons = _causes(failure.java_exception)
    detail = scrubbed(f"{owner}: {reasons[-1]}", options)
    if any("Authentication" in reason or "Authorization" in reason for reason in reasons):
        return MissingInput(
            f"the Kafka broker at {address} refuses us",
            detail=detail,
            hint="correct the options kafka.security.… and kafka.sasl.…",
        )
    if any("ConfigException" in reason and "bootstrap" not in reason for reason in reasons):
        return InputError(
            f"Kafka does not take the options of {owner}", detail=detail, hint="correct the options kafka.…"
        )
    return MissingInput(
        f"no Kafka broker answers at {address}",
        detail=detail,
        hint="start it, or correct OPTIONS (bootstrap 'host:port')",
    )


def _causes(error: Any) -> list[str]:
    found = []
    while error is not None:
        found.append(str(error.toString()))
        error = error.getCause()
    return found
