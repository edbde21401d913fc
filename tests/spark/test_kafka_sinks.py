"""Kafka as a sink: what is sent of each epoch, read back by a table on the topic; again after a crash."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.connectors import delivery
from rejoinder.errors import MalformedInput, MissingInput, SinkFailed
from rejoinder.state.sink_progress import Delivered, write_progress
from tests.spark.broker import Broker, Client
from tests.spark.conftest import OpenFlow

EPOCH = "rejoinder.epoch"


def define(flow: rj.Flow, broker: Broker, *modes: str) -> None:
    flow.sql(
        "CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id));"
        "CREATE TABLE pets (id BIGINT, owner BIGINT, pet STRING, PRIMARY KEY (id));"
        "CREATE VIEW v AS SELECT pets.id, pet, name FROM pets JOIN people ON owner = people.id"
    )
    for mode in modes:
        key = ", key 'id'" if mode != "append" else ""
        flow.sql(
            f"CREATE SINK to_{mode} FROM v USING kafka "
            f"OPTIONS (bootstrap '{broker.address}', topic '{mode}', mode '{mode}'{key})"
        )


def sent(client: Client, topic: str, epoch: int) -> list[tuple[Any, Any]]:
    """Keys and values of an epoch."""
    records = [record for record in client.read(topic) if record["headers"][EPOCH] == str(epoch)]
    return sorted(((r["key"], r["value"] and json.loads(r["value"])) for r in records), key=str)


def test_all_modes(open_flow: OpenFlow, broker: Broker, client: Client) -> None:
    modes = ("append", "upsert", "debezium")
    for mode in modes:
        client.create(mode, 3)
    flow = open_flow()
    define(flow, broker, *modes)
    flow.insert("people", [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}])
    flow.insert("pets", [{"id": 10, "owner": 1, "pet": "cat"}, {"id": 11, "owner": 2, "pet": "dog"}])
    flow.run()
    flow.insert("people", [{"id": 1, "name": "Eve"}])
    flow.delete("pets", [{"id": 11}])
    flow.run()
    cat, dog, moved = (
        {"id": i, "pet": p, "name": n} for i, p, n in ((10, "cat", "Ada"), (11, "dog", "Bob"), (10, "cat", "Eve"))
    )
    assert sent(client, "append", 0) == [
        (None, {**cat, "_epoch": 0, "_diff": 1}),
        (None, {**dog, "_epoch": 0, "_diff": 1}),
    ]
    assert len(sent(client, "append", 1)) == 3
    assert sent(client, "upsert", 0) == [("10", cat), ("11", dog)]
    assert sent(client, "upsert", 1) == [("10", moved), ("11", None)]
    told = [(key, value["op"], value["before"], value["after"]) for key, value in sent(client, "debezium", 1)]
    assert told == [("10", "u", cat, moved), ("11", "d", dog, None)]

    # The process died after it sent epoch 1 and before it noted that: it is sent again, and known by its header.
    engine = flow.engine
    assert engine.version.manifest is not None
    delivered = {sink.identity: Delivered(0, 0) for sink in engine.version.sinks.values()}
    write_progress(engine.store, engine.version.manifest, delivered)
    again = open_flow()
    again.run()
    assert sent(client, "upsert", 1) == [("10", moved), ("10", moved), ("11", None), ("11", None)]
    columns = "id BIGINT, pet STRING, name STRING, PRIMARY KEY (id)"
    for topic, more in (("upsert", ""), ("debezium", ", envelope 'debezium'")):
        place = f"bootstrap '{broker.address}', topic '{topic}'{more}"
        again.sql(f"CREATE TABLE {topic} ({columns}) USING kafka OPTIONS ({place})")
        again.sql(f"CREATE VIEW of_{topic} AS SELECT * FROM {topic}")
    again.run()
    assert again.arrow("v").to_pylist() == [moved]
    assert all(again.arrow(f"of_{topic}").to_pylist() == [moved] for topic in ("upsert", "debezium"))


def test_many_changes_are_sent_by_the_executors(
    flow: rj.Flow, broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is before and after a change of a key may lie in two parts of an epoch."""
    monkeypatch.setattr(delivery, "PART_ROWS", 50)
    client.create("many", 2)
    flow.sql("CREATE TABLE t (id BIGINT, x BIGINT, PRIMARY KEY (id)); CREATE VIEW v AS SELECT id, x FROM t")
    flow.sink("v", "kafka", bootstrap=broker.address, topic="many", mode="debezium", key="id")
    for x in (0, 1):
        flow.insert("t", [{"id": i, "x": x} for i in range(100)])
        flow.run()
    assert {value["op"] for _, value in sent(client, "many", 0)} == {"r"}, "it begins with a snapshot"
    changed = sent(client, "many", 1)
    assert len(changed) == 100
    assert all(value["before"]["x"] == 0 and value["after"]["x"] == 1 for _, value in changed)


def test_avro_comes_back(flow: rj.Flow, broker: Broker, client: Client) -> None:
    """A table on the topic, with the schema that SHOW SINKS tells and its id, is the view again."""
    client.create("avro", 2)
    columns = "id BIGINT, at TIMESTAMP, price DECIMAL(10, 2), tags ARRAY<STRING>, PRIMARY KEY (id)"
    flow.sql(f"CREATE TABLE t ({columns}); CREATE VIEW v AS SELECT * FROM t")
    place = f"bootstrap '{broker.address}', topic 'avro'"
    framed = "value_format 'avro', avro_schema_id '7'"
    flow.sql(f"CREATE SINK s FROM v USING kafka OPTIONS ({place}, {framed}, mode 'upsert', key 'id')")
    rows = [{"id": 1, "at": datetime(2026, 1, 1), "price": Decimal("1.50"), "tags": ["a", None]}, {"id": 2}]
    flow.insert("t", rows)
    flow.run()
    flow.delete("t", [{"id": 2}])
    flow.run()
    schema = flow.sinks()[0]["options"].partition("avro_schema '")[2].rstrip("'")
    how = f"format 'avro', avro_framing 'confluent', avro_schema '{schema}'"
    flow.sql(f"CREATE TABLE back ({columns}) USING kafka OPTIONS ({place}, {how}, avro_schema_id '7')")
    flow.sql("CREATE VIEW again AS SELECT * FROM back")
    flow.run()
    assert flow.arrow("again").to_pylist() == flow.arrow("v").to_pylist() and flow.arrow("v").num_rows == 1
    flow.sql(f"CREATE TABLE other ({columns}) USING kafka OPTIONS ({place}, {how}, avro_schema_id '8')")
    flow.sql("CREATE VIEW never AS SELECT * FROM other")
    with pytest.raises(MalformedInput, match=r"schema id 7 is not declared \(declared: 8\)"):
        flow.run()


def test_a_second_row_of_a_key_in_a_later_epoch(
    flow: rj.Flow, broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors look for it in the view, each in a part."""
    monkeypatch.setattr(delivery, "PART_ROWS", 50)
    client.create("later")
    flow.sql("CREATE STREAM s (id BIGINT, x BIGINT); CREATE VIEW v AS SELECT * FROM s")
    flow.sink("v", "kafka", bootstrap=broker.address, topic="later", mode="upsert", key="id")
    flow.insert("s", [{"id": i, "x": 0} for i in range(120)])
    flow.run()
    flow.insert("s", [{"id": i, "x": 1} for i in range(200, 210)])
    flow.run()
    flow.insert("s", [{"id": 7, "x": 1}])
    with pytest.raises(SinkFailed, match="a key of sink `v_kafka` has more than one row") as failure:
        flow.run()
    assert "columns of the key: id; epoch 2" in str(failure.value) and len(client.read("later")) == 130


def test_what_is_refused(flow: rj.Flow, broker: Broker, client: Client, tmp_path: Path) -> None:
    client.create("doubles")
    flow.sql("CREATE STREAM s (id BIGINT, x BIGINT); CREATE VIEW v AS SELECT * FROM s")
    with pytest.raises(MissingInput, match="there is no topic `double`"):
        flow.sink("v", "kafka", bootstrap=broker.address, topic="double")
    assert flow.sinks() == []
    flow.sink("v", "kafka", bootstrap=broker.address, topic="doubles", mode="upsert", key="id")
    flow.insert("s", [{"id": 1, "x": 1}, {"id": 1, "x": 2}])
    with pytest.raises(SinkFailed, match="a key of sink `v_kafka` has more than one row"):
        flow.run()
    assert flow.epoch == 0 and client.read("doubles") == []
