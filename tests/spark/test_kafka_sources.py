"""Topics of a real broker as sources: formats, keys, tombstones, places of records, refusals."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoinder as rj
from rejoinder.errors import MalformedInput, MissingInput, RuntimeMismatch
from rejoinder.exchange.session.jars import Package, provide
from rejoinder.formats.text.plain_rows import plain_rows
from rejoinder.kernels.duckdb.json_text import json_rows
from rejoinder.testing import Driver
from tests.spark import test_dsl
from tests.spark.broker import Broker, Client, Record, free_ports
from tests.spark.rows import bag


def rows(flow: rj.Flow, view: str) -> list[dict[str, Any]]:
    return sorted(flow.arrow(view).to_pylist(), key=str)


def test_json(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """Values, keys, time, place and headers of records become columns; unreadable records are reported."""
    client.create("page_clicks", 2)
    flow.sql(
        f"""CREATE STREAM clicks (id BIGINT, page STRING, user STRING, ts TIMESTAMP, p INT, o BIGINT,
              h ARRAY<STRUCT<key: STRING, value: BINARY>>, WATERMARK ts DELAY OF INTERVAL 1 SECOND)
            USING kafka OPTIONS (bootstrap '{broker.address}', topic 'page_clicks', key 'user', timestamp 'ts',
              partition 'p', offset 'o', headers 'h', malformed 'divert');
            CREATE VIEW v AS SELECT id, page, user, UNIX_MILLIS(ts) AS ts, p, o, h[0].key AS h FROM clicks"""
    )
    client.send(
        "page_clicks",
        [
            Record('{"id": 1, "page": "a", "more": {}}', "ada", 0, 1000, {"trace": b"x"}),
            Record('{"id": 2', "ada", 0, 1001),
            Record(' {"id": 3}\n', None, 1, 1002),
            Record(b"\xff\xfe", None, 1, 1003),
        ],
    )
    assert len(flow.run()) == 1
    assert rows(flow, "v") == [
        {"id": 1, "page": "a", "user": "ada", "ts": 1000, "p": 0, "o": 0, "h": "trace"},
        {"id": 3, "page": None, "user": None, "ts": 1002, "p": 1, "o": 0, "h": None},
    ]
    rejected = rows(flow, "clicks.rejected")
    assert [(row["topic"], row["partition"], row["offset"], row["text"]) for row in rejected] == [
        ("page_clicks", 0, 1, '{"id": 2'),
        ("page_clicks", 1, 1, "\ufffd\ufffd"),
    ]
    client.send("page_clicks", [Record('{"id": 4}', "bob", 1)])
    flow.sql(
        f"""CREATE STREAM again (id BIGINT) USING kafka
              OPTIONS (bootstrap '{broker.address}', topic 'page_clicks', malformed 'divert');
            CREATE VIEW w AS SELECT id FROM again"""
    )
    flow.run()
    assert [row["id"] for row in rows(flow, "v")] == [1, 3, 4], "it goes on where it was"
    assert [row["id"] for row in rows(flow, "w")] == [1, 3, 4], "and a new source begins at the start"


AVRO = {
    "type": "record",
    "name": "rate",
    "fields": [
        {"name": "cur", "type": "string"},
        {"name": "rate", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def avro(client: Client, *rows: dict[str, Any]) -> list[bytes]:
    """Rows in the encoding of Avro's own library, which reads them as JSON."""
    java = client.jvm.org.apache.avro
    schema = java.Schema.Parser().parse(json.dumps(AVRO))
    result = []
    for row in rows:
        datum = java.generic.GenericDatumReader(schema).read(
            None, java.io.DecoderFactory.get().jsonDecoder(schema, json.dumps(row))
        )
        out = client.jvm.java.io.ByteArrayOutputStream()
        encoder = java.io.EncoderFactory.get().binaryEncoder(out, None)
        java.generic.GenericDatumWriter(schema).write(datum, encoder)
        encoder.flush()
        result.append(bytes(out.toByteArray()))
    return result


def test_tables_of_avro_and_text_and_a_changelog(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """Compacted topics are tables, in which a record without a value deletes; declared in Python, joined in SQL."""
    for topic in ("rates", "names", "orders"):
        client.create(topic, 2, cleanup_policy="compact" if topic != "orders" else "delete")
    place = broker.address
    columns = {"cur": "STRING", "rate": "DECIMAL(10, 2)", "at": "TIMESTAMP"}
    schema = json.dumps(AVRO)
    flow.kafka(
        "rates",
        columns,
        topic="rates",
        kind="table",
        key="cur",
        format="avro",
        avro_schema=schema,
        bootstrap=place,
    )
    text = {"cur": "STRING", "name": "STRING"}
    flow.kafka("names", text, topic="names", kind="table", key="cur", format="text", bootstrap=place)
    flow.kafka("orders", {"id": "BIGINT", "cur": "STRING"}, topic="orders", kind="changelog", op="op", bootstrap=place)
    flow.view("v", "SELECT id, name, rate FROM orders JOIN rates USING (cur) JOIN names USING (cur)")
    euro, dollar, cheap = avro(
        client,
        {"cur": "EUR", "rate": {"bytes": "\u0001\u0000"}, "at": 0},
        {"cur": "USD", "rate": {"bytes": "\u00ff"}, "at": 0},
        {"cur": "EUR", "rate": None, "at": 1},
    )
    client.send("rates", [Record(euro, "EUR"), Record(dollar, "USD")])
    client.send("names", [Record("Euro", "EUR"), Record("Dollar", "USD")])
    changes = [("c", 1, "EUR"), ("c", 2, "USD"), ("c", 3, "EUR"), ("d", 3, "EUR")]
    client.send("orders", [Record(json.dumps({"op": op, "id": i, "cur": cur}), str(i)) for op, i, cur in changes])
    flow.run()
    assert [(row["id"], row["name"], str(row["rate"])) for row in rows(flow, "v")] == [
        (1, "Euro", "2.56"),
        (2, "Dollar", "-0.01"),
    ]
    client.send("rates", [Record(None, "USD"), Record(cheap, "EUR")])
    client.send("names", [Record("€", "EUR")])
    flow.run()
    assert rows(flow, "v") == [{"id": 1, "name": "€", "rate": None}]


def test_what_is_not_there(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """A broker that does not answer, and a topic that is not there, are reported within seconds, by name."""
    client.create("payments")
    (port,) = free_ports(1)
    flow.sql(f"CREATE STREAM a (id BIGINT) USING kafka OPTIONS (bootstrap '127.0.0.1:{port}', topic 'payments')")
    flow.sql("CREATE VIEW v AS SELECT id FROM a")
    start = time.monotonic()
    with pytest.raises(MissingInput, match=f"no Kafka broker answers at 127.0.0.1:{port}"):
        flow.run()
    assert time.monotonic() - start < 20
    flow.sql("DROP VIEW v; DROP STREAM a")
    flow.sql(f"CREATE STREAM a (id BIGINT) USING kafka OPTIONS (bootstrap '{broker.address}', topic 'payment')")
    flow.sql("CREATE VIEW v AS SELECT id FROM a")
    with pytest.raises(MissingInput, match="there is no topic `payment`") as caught:
        flow.run()
    assert "did you mean `payments`" in str(caught.value)


def test_a_record_that_cannot_be_read(flow: rj.Flow, broker: Broker, client: Client) -> None:
    client.create("bad")
    client.send("bad", [Record('{"id": 1}'), Record("{")])
    flow.sql(f"CREATE STREAM bad (id BIGINT) USING kafka OPTIONS (bootstrap '{broker.address}', topic 'bad')")
    flow.sql("CREATE VIEW v AS SELECT id FROM bad")
    with pytest.raises(MalformedInput, match="the record at offset 1 of partition 0 of topic `bad` cannot be read"):
        flow.run()
    assert flow.epoch == -1


def test_records_that_are_gone(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """A topic that was made anew has other records at the offsets that were read: nothing is passed over in silence."""
    client.create("brief")
    client.send("brief", [Record('{"id": 1}'), Record('{"id": 2}')])
    flow.sql(f"CREATE STREAM brief (id BIGINT) USING kafka OPTIONS (bootstrap '{broker.address}', topic 'brief')")
    flow.sql("CREATE VIEW v AS SELECT id FROM brief")
    flow.run()
    client.delete("brief")
    client.create("brief")
    client.send("brief", [Record('{"id": 3}')])
    with pytest.raises(MissingInput, match="records of a topic were removed before they were read"):
        flow.run()
    assert flow.epoch == 0


def test_secrets_come_from_the_environment_and_are_not_shown(
    flow: rj.Flow, broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("safe")
    security = (
        "kafka.security.protocol 'SASL_PLAINTEXT', kafka.sasl.mechanism 'PLAIN', kafka.sasl.jaas.config 'env:JAAS'"
    )
    place = f"bootstrap '{broker.address}', topic 'safe', {security}"
    flow.sql(f"CREATE STREAM safe (id BIGINT) USING kafka OPTIONS ({place}); CREATE VIEW v AS SELECT id FROM safe")
    with pytest.raises(MissingInput, match="environment variable `JAAS` is not set"):
        flow.run()
    monkeypatch.setenv("JAAS", "hush-hush is not a configuration")
    with pytest.raises(rj.RejoinderError) as caught:
        flow.run()
    assert "hush" not in str(caught.value) and "hush" not in repr(caught.value.__cause__)
    assert flow.engine.version.manifest is not None and "hush" not in json.dumps(flow.engine.version.manifest.catalog)


def test_jars_are_seen_by_the_whole_of_spark(spark: SparkSession, client: Client) -> None:
    """Also by threads that were there before: one of them reads what a task says of its failure."""
    name, found = "org.apache.spark.sql.kafka010.KafkaIllegalStateException", []
    jvm: Any = spark._jvm

    def look() -> None:
        found.append(jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name).getName())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [name]


def test_jars_that_cannot_be_had(spark: SparkSession) -> None:
    package = Package("none", "no.such.Class", ["org.rejoinder:no-such-jar_{scala}:{spark}"])
    with pytest.raises(RuntimeMismatch, match="the jars for none cannot be downloaded") as caught:
        provide(spark, package)
    assert "no-such-jar_2.13:4" in str(caught.value) and "spark.jars.packages" in str(caught.value)


def test_every_kind_of_join_from_topics_to_topics(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """The cells of the matrix, from records to messages, are what the test driver gives for the same rows."""
    using = f"USING kafka OPTIONS (bootstrap '{broker.address}', topic 'matrix-{{}}')"
    driver = Driver()
    test_dsl.define(driver)
    for name in ("clicks", "shows", "ads", "owners", *test_dsl.VIEWS):
        client.create(f"matrix-{name}", 2)
    test_dsl.define(flow, using)
    for view in test_dsl.VIEWS:
        flow.sink(view, "kafka", bootstrap=broker.address, topic=f"matrix-{view}")
    for come, gone in test_dsl.rounds():
        for name, given in come.items():
            driver.insert(name, *given)
            key = "ad" if name != "owners" else "id"
            client.send(f"matrix-{name}", [Record(json.dumps(row, default=str), row[key]) for row in given])
        for name, given in gone.items():
            driver.delete(name, *given)
            client.send(f"matrix-{name}", [Record(None, *row.values()) for row in given])
        driver.step()
        flow.run()
    for view in test_dsl.VIEWS:
        wanted = driver.table(view)
        assert wanted and bag(plain_rows(flow.arrow(view))) == bag(wanted), view
        messages = [json.loads(message["value"]) for message in client.read(f"matrix-{view}")]
        changes = [(row, row.pop("_diff"), row.pop("_epoch")) for row in messages]
        net: Counter[str] = Counter()
        for row, diff, _ in changes:
            net[json.dumps(row, separators=(",", ":"), ensure_ascii=False)] += diff
        assert sorted(net.elements()) == sorted(json_rows(flow.arrow(view)).to_pylist()), view
