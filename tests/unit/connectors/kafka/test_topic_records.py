"""Records of a topic as rows, without a broker: what Spark hands over, in every format, and what cannot be read."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from rejoinder.errors import MalformedInput
from rejoinder.ir.splits import RecordsSplit, split_batch
from rejoinder.kernels.arrow.scatter import encode
from rejoinder.testing import Driver

NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
PLACE = "bootstrap 'here:9092', topic 't'"
Record = tuple[bytes | None, bytes | None]


def handed_over(*records: Record, partition: int = 0, first: int = 0) -> bytes:
    """Keys and values as Spark packs them."""
    keys, values = zip(*records, strict=True)
    count = len(records)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "partition": pa.array([partition] * count, pa.int32()),
        "offset": pa.array(range(first, first + count), pa.int64()),
        "timestamp": pa.array([NOON] * count, pa.timestamp("us", tz="UTC")),
        "headers": pa.array([[{"key": "h", "value": b"x"}]] * count, pa.list_(HEADER)),
    }
    return encode(pa.table(columns))


HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def epoch(driver: Driver, *payloads: bytes) -> None:
    engine = driver._engine
    engine.run_epoch(engine.epoch + 1, [split_batch([RecordsSplit("s", "t", payload, 0) for payload in payloads])])


def read(definition: str, *records: Record, options: str = "") -> list[dict[str, Any]]:
    driver = Driver()
    driver.sql(f"CREATE {definition} USING kafka OPTIONS ({PLACE}{options}); CREATE VIEW v AS SELECT * FROM s")
    epoch(driver, handed_over(*records))
    return list(driver.table("v"))


def test_json_values() -> None:
    found = read(
        "STREAM s (id BIGINT, at TIMESTAMP, more STRUCT<a: INT>)",
        (None, b'{"id": 1, "at": "2026-01-01 12:00:00", "more": {"a": 2}, "unknown": []}'),
        (None, b' {"id":\n2}\r\n'),
        (None, b"{}"),
    )
    at = NOON.replace(tzinfo=None)
    rows = [(None, None, None), (1, at, {"a": 2}), (2, None, None)]
    assert found == [dict(zip(("id", "at", "more"), row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("x STRING", [b"a", "ü".encode()], ["a", "ü"]),
        ("x BIGINT", [b"-4"], [-4]),
        ("x DECIMAL(5, 2)", [b"1.25"], ["1.25"]),
        (
            "x TIMESTAMP",
            [b"2026-01-01 12:00:00", b"2026-01-01T12:00:00Z", b"2026-01-01T14:00:00.0+02:00", b"2026-01-01"],
            ["2026-01-01 00:00:00", *["2026-01-01 12:00:00"] * 3],
        ),
    ],
)
def test_text_values(column: str, values: list[bytes], expected: list[Any]) -> None:
    found = read(f"STREAM s ({column})", *[(None, value) for value in values], options=", format 'text'")
    assert [row["x"] if isinstance(expected[0], int) else str(row["x"]) for row in found] == expected


def test_raw_values_and_all_other_parts() -> None:
    found = read(
        "STREAM s (x BINARY, k STRING, ts BIGINT, p INT, o BIGINT, h ARRAY<STRUCT<key: STRING, value: BINARY>>)",
        (b"a", b"\xff\x00"),
        (None, None),
        options=", format 'raw', key 'k', timestamp 'ts', partition 'p', offset 'o', headers 'h'",
    )
    same = {"ts": round(NOON.timestamp() * 1000), "p": 0, "h": [{"key": "h", "value": b"x"}]}
    assert found == [{"x": None, "k": None, "o": 1, **same}, {"x": b"\xff\x00", "k": "a", "o": 0, **same}]


def test_avro_values() -> None:
    fields = [{"name": "ID", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    options = f", format 'avro', avro_schema '{schema}'"
    found = read("STREAM s (id BIGINT, name STRING)", (None, b"\x02\x02\x02a"), (None, b"\x04\x00"), options=options)
    assert found == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def schema_of(*fields: tuple[str, object]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": name, "type": t} for name, t in fields]})


OLD, NEW = schema_of(("id", "int"), ("gone", "string")), schema_of(("name", "string"), ("ID", "long"))
EVOLVED = f", format 'avro', avro_framing 'confluent', avro_schema '{NEW}', avro_schema_id '9', avro_schema.7 '{OLD}'"


def test_each_record_is_read_by_the_schema_of_its_id() -> None:
    records: list[Record] = [
        (None, b"\0\0\0\0\x07\x02\x02z"),
        (None, b"\0\0\0\0\x09\x02b\x04"),
        (None, None),
        (None, b"\0\0\0\0\x07\x06\x02z"),
    ]
    found = read("STREAM s (id BIGINT, name STRING, o BIGINT)", *records, options=f"{EVOLVED}, offset 'o'")
    rows = [(None, None, 2), (1, None, 0), (2, "b", 1), (3, None, 3)]
    assert found == [dict(zip(("id", "name", "o"), row, strict=True)) for row in rows]


def test_a_schema_id_that_is_not_declared() -> None:
    """All records of a new schema are rejected at once: to halve a chunk for each of them would take minutes."""
    values = [b"\0\0\0\0" + (b"\x09\x02b\x04" if at % 2 else b"\x0a\x00") for at in range(20_000)]
    driver = Driver()
    driver.sql(f"CREATE STREAM s (id BIGINT, name STRING) USING kafka OPTIONS ({PLACE}{EVOLVED}, malformed 'divert')")
    driver.sql("CREATE VIEW v AS SELECT COUNT(*) AS n FROM s")
    epoch(driver, handed_over(*[(None, value) for value in values]))
    assert driver.table("v") == [{"n": 10_000}]
    rejected = driver.table("s.rejected")
    reason = "schema id 10 is not declared (declared: 7, 9); add option `avro_schema.10` with its schema"
    assert len(rejected) == 10_000 and {row["reason"] for row in rejected} == {reason}
    with pytest.raises(MalformedInput, match="offset 0 of partition 0 of topic `t`") as caught:
        read("STREAM s (id BIGINT, name STRING)", *[(None, value) for value in values], options=EVOLVED)
    assert reason in str(caught.value)


def test_a_compacted_topic_is_a_table() -> None:
    """A new value replaces the one of its key, a record without a value deletes it; offsets tell what came last."""
    driver = Driver(parallelism=3)
    driver.sql(f"CREATE TABLE s (id BIGINT, x STRING, PRIMARY KEY (id)) USING kafka OPTIONS ({PLACE})")
    driver.sql("CREATE VIEW v AS SELECT * FROM s")
    late = handed_over((b"1", b'{"x": "c"}'), (b"2", None), (b"4", b'{"x": "e"}'), first=4)
    early = handed_over((b"1", b'{"x": "a"}'), (b"2", b'{"x": "b"}'), (b"3", b'{"x": "d"}'), (b"4", None))
    epoch(driver, late, early)
    assert [(row["id"], row["x"]) for row in driver.table("v")] == [(1, "c"), (3, "d"), (4, "e")]
    epoch(driver, handed_over((b"3", None), (b"9", None), first=7))
    assert [(row["id"], row["x"]) for row in driver.table("v")] == [(1, "c"), (4, "e")]


def test_a_key_of_several_fields() -> None:
    definition = "TABLE s (a INT, b STRING, x INT, PRIMARY KEY (a, b))"
    found = read(definition, (b'{"a": 1, "b": "y"}', b'{"x": 5, "a": 9}'), (b'{"b": "z", "a": 1}', b'{"x": 6}'))
    assert found == [{"a": 1, "b": "y", "x": 5}, {"a": 1, "b": "z", "x": 6}]


def test_a_changelog() -> None:
    """An op in the value tells what happens; a record without a value is for the broker only."""
    found = read(
        "CHANGELOG s (id BIGINT)",
        (b"1", b'{"id": 1, "what": "c"}'),
        (b"2", b'{"id": 2, "what": "c"}'),
        (b"2", b'{"id": 2, "what": "d"}'),
        (b"2", None),
        options=", op 'what'",
    )
    assert found == [{"id": 1}]


ODD = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"5",
    b'{"id": "x"}',
    b'{"id": 1}{"id": 2}',
    b'{"id": 1}\n',
    b'{"x": "\xff"}',
    b'{"x": "',
]


def test_records_that_cannot_be_read_are_diverted() -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM s (id BIGINT, x STRING) USING kafka OPTIONS ({PLACE}, malformed 'divert')")
    driver.sql("CREATE VIEW v AS SELECT * FROM s")
    records = [(None, value) for odd in ODD for value in (b'{"id": 7}', odd)]
    epoch(driver, handed_over(*records, partition=2, first=10))
    good = [row["id"] for row in driver.table("v")]
    assert good == [1] + [7] * len(ODD), "white space around an object is not a fault"
    rejected = sorted(driver.table("s.rejected"), key=lambda row: row["offset"])
    faults = [at for at, odd in enumerate(ODD) if odd != b'{"id": 1}\n']
    assert [(row["topic"], row["partition"], row["offset"]) for row in rejected] == [
        ("t", 2, 11 + 2 * at) for at in faults
    ]
    assert [row["text"] for row in rejected] == [ODD[at].decode(errors="replace") for at in faults]
    assert all(row["reason"] for row in rejected)


@pytest.mark.parametrize(
    ("definition", "options", "record", "reason"),
    [
        ("STREAM s (id BIGINT)", "", (None, b"{"), "offset 1 of partition 0 of topic `t` cannot be read"),
        ("STREAM s (id BIGINT)", ", format 'text'", (None, b"x"), "offset 1 of partition 0"),
        ("STREAM s (id BIGINT, k BIGINT)", ", key 'k'", (b"x", b"{}"), "offset 1 of partition 0"),
        (
            "TABLE s (id BIGINT, PRIMARY KEY (id))",
            ", key_format 'none'",
            (b"1", None),
            "no column is read from its key",
        ),
    ],
)
def test_a_record_that_cannot_be_read_fails_the_epoch(
    definition: str, options: str, record: Record, reason: str
) -> None:
    good: Record = (b"1", b'{"id": 1}') if "text" not in options else (None, b"1")
    with pytest.raises(MalformedInput, match=reason) as caught:
        read(definition, good, record, options=options)
    assert "malformed 'divert'" in str(caught.value)


SMALL = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]})


@pytest.mark.parametrize(
    ("definition", "options", "good", "odd", "reason"),
    [
        (
            "TABLE s (id BIGINT, x INT, PRIMARY KEY (id))",
            "",
            (b"1", b'{"x": 1}'),
            [(None, b'{"x": 2}'), (None, None)],
            "NULL in column `id`, which is part of the primary key",
        ),
        (
            "CHANGELOG s (id BIGINT)",
            ", op 'op'",
            (None, b'{"id": 1, "op": "c"}'),
            [(None, b'{"id": 1, "op": "x"}'), (None, b'{"id": 1}')],
            "op",
        ),
        (
            "CHANGELOG s (id BIGINT)",
            ", diff 'd'",
            (None, b'{"id": 1, "d": 1}'),
            [(None, b'{"id": 1}')],
            "NULL in the diff column `d`",
        ),
        (
            "STREAM s (n INT)",
            f", format 'avro', avro_schema '{SMALL}'",
            (None, b"\x02"),
            [(None, b"\x80\x80\x80\x80\x10")],
            "Integer value 2147483648 not in range",
        ),
    ],
    ids=["key", "op", "diff", "avro"],
)
def test_records_that_can_be_read_and_not_used(
    definition: str, options: str, good: Record, odd: list[Record], reason: str
) -> None:
    """They are as malformed as others: diverted, or named with their place."""
    driver = Driver()
    driver.sql(f"CREATE {definition} USING kafka OPTIONS ({PLACE}{options}, malformed 'divert')")
    driver.sql("CREATE VIEW v AS SELECT * FROM s")
    epoch(driver, handed_over(good, *odd))
    assert len(driver.table("v")) == 1
    rejected = driver.table("s.rejected")
    assert sorted(row["offset"] for row in rejected) == [1, 2][: len(odd)]
    assert all(reason in row["reason"] for row in rejected)
    with pytest.raises(MalformedInput, match="offset 1 of partition 0 of topic `t`"):
        read(definition, good, *odd, options=options)


def test_each_partition_has_its_watermark() -> None:
    driver = Driver()
    columns = "ts BIGINT, WATERMARK ts DELAY OF 1"
    driver.sql(f"CREATE STREAM s ({columns}) USING kafka OPTIONS ({PLACE}); CREATE VIEW v AS SELECT * FROM s")
    epoch(driver, *[handed_over((None, b'{"ts": %d}' % ts), partition=part) for part, ts in ((0, 100), (1, 50))])
    assert driver._engine.version.watermarks.of("s", "ts") == 49


def test_many_records_at_once() -> None:
    """One bad record among many costs some halvings, not a loop over all of them."""
    values = [b'{"id": %d}' % number for number in range(20_000)]
    values[12_345] = b"?"
    driver = Driver()
    driver.sql(f"CREATE STREAM s (id BIGINT) USING kafka OPTIONS ({PLACE}, malformed 'divert')")
    driver.sql("CREATE VIEW v AS SELECT COUNT(*) AS n, SUM(id) AS total FROM s")
    epoch(driver, handed_over(*[(None, value) for value in values]))
    assert driver.table("v") == [{"n": 19_999, "total": sum(range(20_000)) - 12_345}]


def test_rows_from_the_future_are_rejected_with_their_place() -> None:
    driver = Driver()
    columns = "id BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND"
    driver.sql(f"CREATE STREAM s ({columns}) USING kafka OPTIONS ({PLACE}, max_ahead '1 hour', malformed 'divert')")
    driver.sql("CREATE VIEW v AS SELECT id FROM s")
    values = [b'{"id": 1, "ts": "2026-01-01 12:00:00"}', b'{"id": 2, "ts": "2999-01-01 12:00:00"}']
    epoch(driver, handed_over(*[(None, value) for value in values], partition=3, first=5))
    assert driver.table("v") == [{"id": 1}]
    (rejected,) = driver.table("s.rejected")
    assert (rejected["topic"], rejected["partition"]) == ("t", 3) and "max_ahead" in rejected["reason"]
    assert '"id":2' in rejected["text"]
