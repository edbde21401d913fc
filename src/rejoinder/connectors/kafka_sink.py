"""Kafka as a sink: a message for each change or key, with the epoch in a header; at least once.

Spark's executors send. A process that dies while it sends an epoch sends it again: readers know it by the header, and
where each key has its own message ('upsert') a second one changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rejoinder.connectors.delivery import Delivery
from rejoinder.connectors.delivery_hosts import gathered
from rejoinder.connectors.duplicate_keys import refuse_doubles
from rejoinder.connectors.sink_messages import MESSAGES, Encoder
from rejoinder.ir.catalog import Sink
from rejoinder.sql.definitions.sink_definition import key_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH_HEADER = "rejoinder.epoch"


@dataclass(frozen=True)
class KafkaTarget:
    """A topic."""

    sink: Sink
    session: SparkSession
    remembers: ClassVar[bool] = False

    def check(self) -> None:
        """Refuse a broker that does not answer, and a topic that is not there."""
        from rejoinder.exchange.connectors.kafka_topics import partitions_of

        partitions_of(self.session, f"sink `{self.sink.name}`", self.sink.options)

    def delivered(self) -> int | None:
        """It does not say."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Send the messages of an epoch; keys stay together, so that each has one message."""
        from rejoinder.exchange.connectors.kafka_topics import send
        from rejoinder.exchange.tasks.spark_tasks import frame_through

        encoder = encoder_of(delivery)
        if delivery.changes.parts <= 1:
            messages = self.session.createDataFrame(encoder.encode(gathered(delivery.changes)))
        else:
            keys = encoder.key if encoder.mode != "append" else ()
            messages = frame_through(delivery.whole(), keys, delivery.changes.parts, encoder.on_batches, MESSAGES)
        headers = {EPOCH_HEADER: str(delivery.epoch)}
        send(messages, f"sink `{self.sink.name}`", self.sink.options, headers)


@dataclass(frozen=True)
class LocalTopic:
    """A topic without a broker, for the test driver: messages with key, value and epoch, kept by the sink's name."""

    sink: Sink
    messages: dict[str, list[dict[str, Any]]]
    remembers: ClassVar[bool] = False

    def check(self) -> None:
        """There is nobody who could refuse."""

    def delivered(self) -> int | None:
        """It does not say."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Keep the messages of an epoch."""
        made = encoder_of(delivery).encode(gathered(delivery.changes)).to_pylist()
        self.messages.setdefault(self.sink.name, []).extend({**each, "epoch": delivery.epoch} for each in made)


def encoder_of(delivery: Delivery) -> Encoder:
    """What makes the messages of a delivery. Raises `SinkFailed` if the sink's key has several rows in the view."""
    sink, mode = delivery.sink, delivery.sink.options.get("mode", "append")
    encoder = Encoder.of(delivery, mode, key_of(sink, delivery.changes.schema))
    if mode != "append":
        refuse_doubles(delivery, encoder)
    return encoder
