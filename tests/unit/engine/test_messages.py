"""Changes of an epoch as messages: every change, the last row of each key, or what was before and is after."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.engine.sinks.messages import Encoder
from rejoinder.errors import SinkFailed

Messages = list[tuple[str | None, Any]]
CHANGES = [(1, "a", -1), (1, "b", 1), (2, "c", -1), (3, "d", 1)]


def sent(
    mode: str, changes: list[tuple[Any, Any, int]], key: tuple[str, ...] = ("id",), *, is_snapshot: bool = False
) -> Messages:
    ids, names, diffs = zip(*changes, strict=True)
    kind = pa.timestamp("us", tz="UTC") if isinstance(ids[0], datetime) else pa.int64()
    table = pa.table(
        {"id": pa.array(ids, kind), "name": names, "_epoch": pa.array([7] * len(ids)), "_diff": pa.array(diffs)}
    )
    messages = Encoder("s", "v", mode, key, is_snapshot).encode(table).to_pylist()
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
    assert sent("append", [(noon, "x", 1)])[0][0] == '{"id":"2026-01-01 12:00:00"}'


@pytest.mark.parametrize("mode", ["upsert", "debezium"])
def test_rows_that_the_key_does_not_tell_apart(mode: str) -> None:
    with pytest.raises(SinkFailed, match="has more than one row in `v`") as caught:
        sent(mode, [(1, "a", 1), (1, "b", 1)])
    assert "id = 1; epoch 7" in str(caught.value)
    with pytest.raises(SinkFailed, match="more than one row"):
        sent(mode, [(1, "a", 2)])
    with pytest.raises(SinkFailed, match="is NULL"):
        sent(mode, [(None, "a", 1)])
