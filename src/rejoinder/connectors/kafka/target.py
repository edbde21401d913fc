"""The Kafka sink: sends a message for each change or key, with the epoch in a header. At least once.

Spark's executors send the messages. After a crash, an epoch is sent again. Readers can recognise it by the header; with
mode 'upsert', a repeated message has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rejoinder.connectors.delivery import Delivery, Target
from rejoinder.connectors.kafka.duplicate_keys import refuse_duplicate_keys
from rejoinder.connectors.kafka.sink_messages import MESSAGES, Encoder
from rejoinder.connectors.sink_key import key_of
from rejoinder.ir.catalog import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH_HEADER = "rejoinder.epoch"


@dataclass(frozen=True)
class KafkaTarget(Target):
    """A topic."""

    sink: Sink
    session: SparkSession

    def check(self) -> None:
        """Raise if the broker does not respond, or the topic does not exist."""
        from rejoinder.connectors.kafka.spark.topics import partitions_of

        partitions_of(self.session, f"sink `{self.sink.name}`", self.sink.options)

    def deliver(self, delivery: Delivery) -> None:
        """Send the messages of an epoch. Changes of a key go to one task, so that each key has one message."""
        from rejoinder.connectors.kafka.spark.topics import send
        from rejoinder.exchange.tasks.spark_tasks import frame_through

        encoder = encoder_of(delivery)
        if delivery.changes.parts <= 1:
            messages = self.session.createDataFrame(encoder.encode(delivery.changes.gathered()))
        else:
            keys = encoder.key if encoder.mode != "append" else ()
            messages = frame_through(delivery.whole(), keys, delivery.changes.parts, encoder.on_batches, MESSAGES)
        headers = {EPOCH_HEADER: str(delivery.epoch)}
        send(messages, f"sink `{self.sink.name}`", self.sink.options, headers)


@dataclass(frozen=True)
class LocalTopic(Target):
    """A topic without a broker, for the test driver. Stores messages with key, value and epoch by sink."""

    sink: Sink
    messages: dict[str, list[dict[str, Any]]]

    def deliver(self, delivery: Delivery) -> None:
        """Store the messages of an epoch."""
        messages = encoder_of(delivery).encode(delivery.changes.gathered()).to_pylist()
        self.messages.setdefault(self.sink.name, []).extend(
            {**message, "epoch": delivery.epoch} for message in messages
        )


def encoder_of(delivery: Delivery) -> Encoder:
    """Return the encoder of a delivery. Raises `SinkFailed` if a key of the sink has several rows in the view."""
    sink, mode = delivery.sink, delivery.sink.options.get("mode", "append")
    encoder = Encoder.of(delivery, mode, key_of(sink, delivery.changes.schema))
    if mode != "append":
        refuse_duplicate_keys(delivery, encoder)
    return encoder
