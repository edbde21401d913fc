"""Changes of an epoch as messages: every change, the last row of each key, or what was before and is after."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.connectors.kafka.message_values import Values
from rejoinder.connectors.kafka.sink_messages import Encoder
from rejoinder.errors import SinkFailed
from rejoinder.ir.catalog import Sink
from rejoinder.testing import Driver
from tests.unit.connectors.kafka.test_topic_records import NOON, epoch, handed_over

Messages = list[tuple[str | None, Any]]
JSON, AVRO = Values(Sink("s", "v", "kafka")), Values(Sink("s", "v", "kafka", {"value_format": "avro"}))
CHANGES = [(1, "a", -1), (1, "b", 1), (2, "c", -1), (3, "d", 1)]


def sent(
    mode: str, changes: list[tuple[Any, Any, int]], key: tuple[str, ...] = ("id",), *, is_snapshot: bool = False
) -> Messages:
    ids, names, diffs = zip(*changes, strict=True)
    kind = pa.timestamp("us", tz="UTC") if isinstance(ids[0], datetime) else pa.int64()
    table = pa.table(
        {"id": pa.array(ids, kind), "name": names, "_epoch": pa.array([7] * len(ids)), "_diff": pa.array(diffs)}
    )
    messages = Encoder("s", "v", mode, key, JSON, is_snapshot).encode(table).to_pylist()
    found = [(row["key"] and row["key"].decode(), row["value"] and json.loads(row["value"])) for row in messages]
    return sorted(found, key=str)


def test_append_sends_every_change() -> None:
    row = {"id": 1, "name": "a", "_epoch": 7}
    assert sent("append", [(1, "a", -1), (1, "a", 2)]) == [("1", {**row, "_diff": -1}), ("1", {**row, "_diff": 2})]
    assert sent("append", [(1, "a", 1)], key=()) == [(None, {**row, "_diff": 1})]
    assert sent("append", [(None, "a", 1)])[0][0] is None


def test_upsert_sends_the_last_row_of_each_key_or_none() -> None:
    assert sent("upsert", CHANGES) == [("1", {"id": 1, "name": "b"}), ("2", None), ("3", {"id": 3, "name": "d"})]


def test_debezium_sends_both_sides() -> None:
    found = sent("debezium", CHANGES)
    assert [(key, value["op"]) for key, value in found] == [("1", "u"), ("2", "d"), ("3", "c")]
    assert [(value["before"], value["after"]) for _, value in found] == [
        ({"id": 1, "name": "a"}, {"id": 1, "name": "b"}),
        ({"id": 2, "name": "c"}, None),
        (None, {"id": 3, "name": "d"}),
    ]
    assert found[0][1]["source"] == {"connector": "rejoinder", "table": "v", "sink": "s", "epoch": 7}
    assert sent("debezium", [(1, "a", 1)], is_snapshot=True)[0][1]["op"] == "r"


def test_a_key_of_several_columns_is_json() -> None:
    assert sent("upsert", [(1, "x", 1)], key=("id", "name"))[0][0] == '{"id":1,"name":"x"}'
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    assert sent("append", [(noon, "x", 1)])[0][0] == "2026-01-01 12:00:00"


@pytest.mark.parametrize(
    ("declared", "keys"),
    [
        ("STRING", ["", "a", '{"k": 1}']),
        ("BIGINT", [-(2**63), 7]),
        ("DECIMAL(38, 10)", [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.5")]),
        ("BOOLEAN", [False, True]),
        ("DATE", [date(1, 1, 1), date(2026, 1, 1)]),
        ("TIMESTAMP", [NOON, NOON.replace(microsecond=123456), NOON.replace(year=1)]),
        ("TIMESTAMP_NTZ", [NOON.replace(tzinfo=None)]),
        ("DOUBLE", [float("-inf"), 1e-7, 0.1, 1e22, float("inf")]),
        ("FLOAT", [0.5, 1.5]),
        ("BINARY", [b"", b"\xff\x00"]),
        ("STRUCT<a: INT>", [{"a": 1}, {"a": None}]),
    ],
)
@pytest.mark.parametrize(("mode", "values"), [("upsert", JSON), ("debezium", JSON), ("upsert", AVRO)])
def test_what_a_sink_sends_gives_the_view_again(mode: str, values: Values, declared: str, keys: list[Any]) -> None:
    columns = f"k {declared}, x DECIMAL(38, 10)"
    sender, receiver = Driver(), Driver()
    sender.sql(f"CREATE CHANGELOG s ({columns}); CREATE VIEW v AS SELECT * FROM s")
    schema = values.schema(sender.catalog.get("v").schema)
    how = f", format 'avro', avro_schema '{schema}'" if values is AVRO else ""
    how += ", envelope 'debezium'" if mode == "debezium" else ""
    receiver.sql(
        f"""CREATE TABLE s ({columns}, PRIMARY KEY (k))
              USING kafka OPTIONS (bootstrap 'here:9092', topic 't'{how});
            CREATE VIEW v AS SELECT * FROM s"""
    )
    sent: list[pa.Table] = []
    sender.foreach_epoch("v", lambda _, changes: sent.append(Encoder("s", "v", mode, ("k",), values).encode(changes)))
    rows = [{"k": key, "x": "1234567890123456789012345678.0123456789"} for key in keys]
    for number, change in enumerate((sender.insert, sender.delete)):
        change("s", *rows)
        sender.step()
        messages = [(row["key"], row["value"]) for row in sent[number].to_pylist()]
        epoch(receiver, handed_over(*messages, first=10 * number))
        assert receiver.table("v") == sender.table("v")
        assert len(receiver.table("v")) == (0 if number else len(keys))


@pytest.mark.parametrize("mode", ["upsert", "debezium"])
def test_rows_that_the_key_does_not_tell_apart(mode: str) -> None:
    with pytest.raises(SinkFailed, match="has more than one row in `v`") as caught:
        sent(mode, [(1, "a", 1), (1, "b", 1)])
    assert "epoch 7" in str(caught.value) and caught.value.values == "id = 1"
    with pytest.raises(SinkFailed, match="more than one row"):
        sent(mode, [(1, "a", 2)])
    with pytest.raises(SinkFailed, match="is NULL"):
        sent(mode, [(None, "a", 1)])
