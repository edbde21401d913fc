"""A real Kafka broker for tests: KRaft, from Maven's jars, which the Ivy inside PySpark fetches; it can be killed.

The jars stay in Ivy's cache below the home folder, so that only the first run on a machine downloads them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from rejoinder.exchange.session.jars import KAFKA, SETTING, provide, resolver_lock

VERSION = "4.1.1"
START_SECONDS = 60
# The registry that tests may use holds the token provider of Spark 4.0 only; users' registries hold the one asked for.
TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_{scala}"
PACKAGES = f"org.apache.spark:spark-sql-kafka-0-10_{{scala}}:{{spark}}?exclude={TOKENS},{TOKENS}:4.0.0?transitive=false"
IVY = f"""
<ivy-module version="2.0">
  <info organisation="rejoinder" module="{{module}}"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="{{module}}" rev="{VERSION}" conf="default->runtime,master"/>
  </dependencies>
</ivy-module>
"""
SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
log.retention.ms=-1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """One broker with its data in a folder. `address` stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.classpath = fetch_jars(folder)
        port, controller = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self.settings = folder / "server.properties"
        self.settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
        self.process: subprocess.Popen[bytes] | None = None
        formatting = ("kafka.tools.StorageTool", "format", "-t", "rejoinder-tests-broker", "-c", str(self.settings))
        if self._java(*formatting).wait() != 0:
            raise RuntimeError(f"the broker's folder cannot be made:\n{self.log.read_text()[-4000:]}")

    def start(self) -> None:
        """Start, and wait until it answers. Raises with its last words if it does not."""
        assert self.process is None, "it is running"
        self.process = self._java("kafka.Kafka", str(self.settings))
        end = time.monotonic() + START_SECONDS
        host, _, port = self.address.partition(":")
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.kill()
                    raise RuntimeError(f"the broker does not start:\n{self.log.read_text()[-4000:]}") from None
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill it at once, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / "broker.log"

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        with self.log.open("ab") as log:
            command = [java(), *options, "-cp", self.classpath, *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)


def fetch_jars(folder: Path, module: str = "kafka_2.13") -> str:
    """The class path of a part of Kafka: downloaded, or found in Ivy's cache. Raises with what Ivy says."""
    description, found = folder / "ivy.xml", folder / "classpath"
    description.write_text(IVY.format(module=module))
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    command = [java(), "-jar", str(ivy), "-ivy", str(description), "-types", "jar", "bundle", "-cachepath", str(found)]
    said = ""
    for _ in range(2):  # a download may be cut off
        with resolver_lock():
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        said = done.stdout + done.stderr
        if done.returncode == 0 and found.exists():
            return found.read_text().strip()
    raise RuntimeError(f"the jars of Kafka {VERSION} cannot be downloaded from Maven Central:\n{said[-4000:]}")


def java() -> str:
    """The Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass(frozen=True)
class Record:
    """A record to send; text becomes UTF-8. Without a partition, Kafka picks it by the key."""

    value: str | bytes | None
    key: str | bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Client:
    """What tests do to a broker, through the Kafka client that Spark's connector brings along."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        spark.conf.set(SETTING + KAFKA.name, PACKAGES)
        provide(spark, KAFKA)
        jvm: Any = spark._jvm
        self.jvm = jvm
        self.settings = self.jvm.java.util.Properties()
        self.settings.put("bootstrap.servers", address)
        for side in ("key", "value"):
            name = "org.apache.kafka.common.serialization.ByteArray"
            self.settings.put(f"{side}.serializer", f"{name}Serializer")
            self.settings.put(f"{side}.deserializer", f"{name}Deserializer")

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic, and wait until somebody leads each of its partitions."""
        new = self.jvm.org.apache.kafka.clients.admin.NewTopic
        made = new(topic, self._optional(partitions), self.jvm.java.util.Optional.empty())
        made = made.configs({name.replace("_", "."): value for name, value in settings.items()})
        self._administer(lambda admin: admin.createTopics([made]))
        while not self._is_led(topic, partitions):
            time.sleep(0.05)

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self._administer(lambda admin: admin.deleteTopics([topic]))
        while topic in self._administer(lambda admin: admin.listTopics(), "names"):
            time.sleep(0.05)

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Send records, and wait until the broker has them."""
        producer = self.jvm.org.apache.kafka.clients.producer.KafkaProducer(self.settings)
        make = self.jvm.org.apache.kafka.clients.producer.ProducerRecord
        sent = []
        try:
            for record in records:
                made = make(topic, record.partition, record.timestamp, _bytes(record.key), _bytes(record.value))
                for name, value in record.headers.items():
                    made.headers().add(name, value)
                sent.append(producer.send(made))
            producer.flush()
            for each in sent:
                each.get()  # or what was not taken is lost in silence
        finally:
            producer.close()

    def read(self, topic: str) -> list[dict[str, Any]]:
        """All records of a topic, by partition and offset, with their headers."""
        consumer = self.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(self.settings)
        partition = self.jvm.org.apache.kafka.common.TopicPartition
        try:
            parts = [partition(topic, info.partition()) for info in consumer.partitionsFor(topic)]
            consumer.assign(parts)
            consumer.seekToBeginning(parts)
            ends = {part.partition(): end for part, end in consumer.endOffsets(parts).items()}
            found: list[dict[str, Any]] = []
            while any(consumer.position(part) < ends[part.partition()] for part in parts):
                records = consumer.poll(self.jvm.java.time.Duration.ofMillis(200)).iterator()
                while records.hasNext():
                    found.append(_plain(records.next()))
            return sorted(found, key=lambda record: (record["partition"], record["offset"]))
        finally:
            consumer.close()

    def _is_led(self, topic: str, partitions: int) -> bool:
        if topic not in self._administer(lambda admin: admin.listTopics(), "names"):
            return False
        found = self._administer(lambda admin: admin.describeTopics([topic]), "allTopicNames")[topic].partitions()
        return len(found) == partitions and all(part.leader() is not None for part in found)

    def _administer(self, act: Callable[[Any], Any], answer: str = "all") -> Any:
        admin = self.jvm.org.apache.kafka.clients.admin.Admin.create(self.settings)
        try:
            return getattr(act(admin), answer)().get()
        finally:
            admin.close()

    def _optional(self, value: int) -> Any:
        return self.jvm.java.util.Optional.of(value)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _plain(record: Any) -> dict[str, Any]:
    headers = {header.key(): bytes(header.value()).decode() for header in record.headers().toArray()}
    result = {"partition": record.partition(), "offset": record.offset(), "headers": headers}
    for name, value in (("key", record.key()), ("value", record.value())):
        result[name] = None if value is None else bytes(value).decode()
    return result
