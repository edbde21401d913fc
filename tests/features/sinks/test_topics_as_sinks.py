"""Topics as sinks, in the test driver: which messages there are, what their values hold, and which keys are none."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import rejoinder.connectors.delivery as delivery_module
from rejoinder.errors import InvalidSql, SinkFailed, UnknownName, Unsupported
from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.formats.avro.framed_records import decode_framed
from rejoinder.testing import Driver


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """A driver on disk with a changelog source and a view of all of it."""
    driver = Driver(store=tmp_path / "state", parallelism=2)
    driver.sql("CREATE CHANGELOG a (id BIGINT, name STRING); CREATE VIEW v AS SELECT id, name FROM a")
    return driver


def test_a_key_is_named_in_any_case(driver: Driver) -> None:
    driver.sql("CREATE SINK s FROM v USING kafka OPTIONS (bootstrap 'b:1', topic 't', mode 'upsert', key 'ID')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    assert driver.messages("S") == [{"key": b"1", "value": b'{"id":1,"name":"x"}', "epoch": 0}]


@pytest.mark.parametrize("mode", ["upsert", "debezium"])
def test_rows_of_one_key_that_come_in_two_epochs(driver: Driver, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message for the second would hide the first one, and its end would delete it."""
    monkeypatch.setattr(delivery_module, "PART_ROWS", 2)
    driver.sql(f"CREATE SINK s FROM v USING kafka OPTIONS (bootstrap 'b:1', topic 't', mode '{mode}', key 'id')")
    driver.insert("a", *({"id": number, "name": "a"} for number in range(5)))
    driver.step()
    driver.delete("a", {"id": 2, "name": "a"})
    driver.insert("a", {"id": 2, "name": "b"}, {"id": 7, "name": "b"})
    driver.step()
    driver.insert("a", {"id": 1, "name": "b"}, {"id": 8, "name": "b"})
    with pytest.raises(SinkFailed, match="a key of sink `s` has more than one row in `v`") as failure:
        driver.step()
    assert "epoch 2" in str(failure.value.detail) and failure.value.values == "id = 1"
    assert {message["epoch"] for message in driver.messages("s")} == {0, 1}


def test_what_the_test_driver_sends(driver: Driver) -> None:
    driver.sql("CREATE SINK s FROM v USING kafka OPTIONS (bootstrap 'b:1', topic 't')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    assert [json.loads(message["value"]) for message in driver.messages("s")] == [
        {"id": 1, "name": "x", "_epoch": 0, "_diff": 1}
    ]
    with pytest.raises(UnknownName, match="there is no sink `t`"):
        driver.messages("t")


TOPIC = "USING kafka OPTIONS (bootstrap 'b:1', topic 't'"


def test_messages_in_avro(driver: Driver) -> None:
    driver.sql(f"CREATE SINK s FROM v {TOPIC}, value_format 'avro')")
    driver.sql(f"CREATE SINK u FROM v {TOPIC}, value_format 'avro', avro_schema_id '7', mode 'upsert', key 'id')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    driver.delete("a", {"id": 1, "name": "x"})
    driver.step()
    shown = {row["sink"]: row["options"].partition("avro_schema '")[2].rstrip("'") for row in driver.sql("SHOW SINKS")}
    values = pa.array([message["value"] for message in driver.messages("s")], pa.binary())
    assert decode_avro(values, shown["s"]).to_pylist() == [
        {"id": 1, "name": "x", "_epoch": 0, "_diff": 1},
        {"id": 1, "name": "x", "_epoch": 1, "_diff": -1},
    ]
    first, last = driver.messages("u")
    framed = pa.array([first["value"]], pa.binary())
    columns = [pa.field("id", pa.int64()), pa.field("name", pa.string())]
    assert decode_framed(framed, {7: shown["u"]}, columns).to_pylist() == [{"id": 1, "name": "x"}]
    assert first["value"][:5] == b"\0\0\0\0\x07" and last == {"key": b"1", "value": None, "epoch": 1}


def test_an_avro_schema_that_is_given(driver: Driver) -> None:
    fields = [{"name": "Name", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    driver.sql(f"CREATE SINK s FROM v {TOPIC}, value_format 'avro', avro_schema '{schema}', mode 'upsert', key 'id')")
    driver.insert("a", {"id": 1, "name": "x"})
    driver.step()
    assert driver.messages("s")[0]["value"] == b"\x02x"
    driver.insert("a", {"id": 2})
    with pytest.raises(SinkFailed, match="sink `s` failed at epoch 1") as failure:
        driver.step()
    assert "NULL in field `Name`, which takes none" in str(failure.value)


def test_one_column_as_it_is(driver: Driver) -> None:
    driver.sql("CREATE STREAM lines (id BIGINT, line BINARY, words STRING); CREATE VIEW raw AS SELECT line FROM lines")
    driver.sql("CREATE VIEW texts AS SELECT id, words FROM lines")
    driver.sql(f"CREATE SINK r FROM raw {TOPIC}, value_format 'raw')")
    driver.sql(f"CREATE SINK t FROM texts {TOPIC}, value_format 'text', mode 'upsert', key 'ID')")
    driver.insert("lines", {"id": 1, "line": b"a\xff", "words": "ä"})
    driver.step()
    assert driver.messages("r") == [{"key": None, "value": b"a\xff", "epoch": 0}]
    assert driver.messages("t") == [{"key": b"1", "value": "ä".encode(), "epoch": 0}]
    driver.insert("lines", {"id": 2})
    with pytest.raises(SinkFailed, match="a key of sink `t` has NULL for its value, which would delete it"):
        driver.step()


RECORD = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "%s"}]}'
BAD_VALUES = {
    "value_format 'arvo'": (InvalidSql, "option `value_format` of sink `s` is 'arvo'"),
    "avro_schema '{}'": (InvalidSql, "has avro_schema, and its values are not Avro"),
    "value_format 'avro', mode 'debezium', key 'id'": (Unsupported, "envelopes are written as JSON"),
    "value_format 'raw', mode 'upsert', key 'id'": (InvalidSql, "which is one column of type BINARY"),
    "value_format 'text'": (InvalidSql, "id bigint, name string"),
    "value_format 'avro', avro_schema_id 'x'": (InvalidSql, "option `avro_schema_id`"),
    f"value_format 'avro', avro_schema '{RECORD % 'long'}'": (Unsupported, "would not show"),
    f"value_format 'avro', avro_schema '{RECORD % 'string'}'": (InvalidSql, "field `id` is Avro's string"),
    "value_format 'avro', avro_schema '{'": (InvalidSql, "cannot be written as Avro"),
}


@pytest.mark.parametrize("text", BAD_VALUES)
def test_values_that_cannot_be_written(driver: Driver, text: str) -> None:
    kind, words = BAD_VALUES[text]
    with pytest.raises(kind) as refused:
        driver.sql(f"CREATE SINK s FROM v {TOPIC}, {text})")
    assert words in str(refused.value) and refused.value.hint
