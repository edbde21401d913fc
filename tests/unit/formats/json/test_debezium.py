"""Debezium's envelopes as changelogs and tables, from files and from topics; what is refused, and what is diverted."""

from __future__ import annotations

import json
import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import InvalidSql, MalformedInput
from rejoinder.testing import Driver
from tests.unit.connectors.kafka.test_topic_records import epoch, handed_over

Row = dict[str, Any]
COLUMNS = "id BIGINT, name STRING"


def change(op: str, before: Row | None, after: Row | None, *, wrapped: bool = False) -> str:
    """What Debezium writes of a change."""
    envelope = {"before": before, "after": after, "op": op, "source": {"table": "people"}, "ts_ms": 1767261600000}
    return json.dumps({"schema": {"type": "struct", "fields": []}, "payload": envelope} if wrapped else envelope)


class Feed:
    """A folder of files of envelopes, and a driver that reads it as a table and as a changelog."""

    def __init__(self, folder: Path, columns: str = COLUMNS, options: str = "") -> None:
        self.folder = folder
        self.files = 0
        self.driver = Driver(parallelism=2)
        given = f"USING json OPTIONS (path '{folder}', envelope 'debezium'{options})"
        self.driver.sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (id)) {given}; CREATE CHANGELOG c ({columns}) {given}")
        self.driver.sql("CREATE VIEW by_key AS SELECT * FROM t; CREATE VIEW by_row AS SELECT * FROM c")

    def step(self, *lines: str) -> list[Row]:
        """Read a file of these lines; the rows afterwards, which are the same either way."""
        self.files += 1
        path = self.folder / f"{self.files}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_000_000 + self.files,) * 2)
        self.driver.step()
        rows = self.driver.table("by_key")
        assert rows == self.driver.table("by_row")
        return list(rows)


@pytest.mark.parametrize("wrapped", [False, True])
def test_snapshot_changes_deletes_and_tombstones(tmp_path: Path, wrapped: bool) -> None:
    feed = Feed(tmp_path)
    ada, bob = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}

    def told(op: str, before: Row | None, after: Row | None) -> str:
        return change(op, before, after, wrapped=wrapped)

    assert feed.step(told("r", None, ada), told("c", None, bob)) == [ada, bob]
    new = {"id": 1, "name": "Ada Allen"}
    assert feed.step(told("u", ada, new), told("d", bob, None), "null", "") == [new]
    newer = {"id": 1, "name": None}
    lines = [
        told("u", new, ada),
        told("u", ada, newer),
        told("m", None, None),
        told("c", None, bob),
        told("d", bob, None),
    ]
    assert feed.step(*lines) == [newer], "several changes of a row in one file, in their order"


def test_values_as_debezium_writes_them(tmp_path: Path) -> None:
    columns = (
        "id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, amount DECIMAL(10, 2), ok BOOLEAN, share DOUBLE, "
        "raw BINARY, tags ARRAY<STRING>, place STRUCT<x: INT>"
    )
    feed = Feed(tmp_path, columns, ", time_unit 'microseconds'")
    numbers = {"id": 1, "at": 1767261600000001, "local": 1767261600000000, "day": 20454, "amount": "9.50"}
    texts = {"id": 2, "at": "2026-01-01T12:00:00+02:00", "local": "2026-01-01T10:00:00", "day": "2026-01-01"}
    nested = {"id": 3, "ok": True, "share": 0.5, "raw": "AQI=", "tags": ["a", "b"], "place": {"x": 1}}
    rows = feed.step(*[change("c", None, row) for row in (numbers, texts, nested)])
    ten = datetime(2026, 1, 1, 10)
    assert [rows[0][name] for name in ("at", "local", "day", "amount")] == [
        ten.replace(microsecond=1), ten, date(2026, 1, 1), Decimal("9.50"),
    ]  # fmt: skip
    assert [rows[1][name] for name in ("at", "local", "day", "amount")] == [ten, ten, date(2026, 1, 1), None]
    assert [rows[2][name] for name in ("ok", "share", "raw", "tags", "place")] == [
        True, 0.5, b"\x01\x02", ["a", "b"], {"x": 1},
    ]  # fmt: skip


def test_decimals_have_all_their_digits(tmp_path: Path) -> None:
    """As numbers too, within others, and alone or in a payload."""
    feed = Feed(tmp_path, "id BIGINT, x DECIMAL(38, 10), more ARRAY<STRUCT<y: DECIMAL(20, 2)>>")
    big, cents = "1234567890123456789012345678.0123456789", "123456789012345678.12"
    row = '{"id": %d, "x": %s, "more": [{"y": %s}, null]}'
    lines = [
        '{"op": "c", "before": null, "after": %s}' % (row % (1, big, cents)),
        '{"payload": {"op": "c", "after": %s}}' % (row % (2, f'"{big}"', "5")),
        '{"op": "c", "after": {"id": 3}}',
    ]
    rows = feed.step(*lines)
    assert [row["x"] for row in rows] == [Decimal(big), Decimal(big), None]
    assert rows[0]["more"] == [{"y": Decimal(cents)}, None]
    (left,) = feed.step('{"op": "d", "before": %s}' % (row % (1, big, cents)), change("d", {"id": 3}, None))
    assert left["id"] == 2


def test_an_update_of_the_key_takes_the_old_row_away(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    ada, bob = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}
    feed.step(change("c", None, ada), change("c", None, bob))
    moved = {"id": 3, "name": "Ada"}
    assert feed.step(change("u", ada, moved), change("u", bob, bob)) == [bob, moved]
    assert feed.step(change("u", bob, ada), change("u", moved, bob)) == [ada, bob], "a key that another row leaves"


def test_a_table_needs_no_more_than_the_key_of_the_old_row(tmp_path: Path) -> None:
    """As PostgreSQL tells it unless REPLICA IDENTITY is FULL."""
    driver = Driver()
    driver.sql(
        f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (id)) USING json OPTIONS (path '{tmp_path}', envelope 'debezium')"
    )
    driver.sql("CREATE VIEW v AS SELECT * FROM t")
    lines = [change("c", None, {"id": i, "name": "x"}) for i in (1, 2)]
    lines += [change("u", None, {"id": 1, "name": "y"}), change("d", {"id": 2}, None)]
    (tmp_path / "1.json").write_text("\n".join(lines))
    driver.step()
    assert driver.table("v") == [{"id": 1, "name": "y"}]


MALFORMED = {
    "{": "it is not JSON",
    '{"id": 1}': "it has no `op`",
    change("c", None, None): "it has no `after`",
    change("x", None, {"id": 1}): "it has no `op` of c, r, u or d",
    change("u", None, {"id": 1}): "REPLICA IDENTITY FULL",
    change("c", None, {"id": "one"}): "the value of `id` in `after` does not fit its type",
    change("c", None, {"id": 7, "x": 1.238}): "1.238 requires scale 3",
    change("c", None, {"id": 7, "x": "AfQ="}): "decimal.handling.mode=string",
    change("c", None, {"id": 1.5}): "the value of `id` in `after` does not fit its type",
}


@pytest.mark.parametrize("line", MALFORMED)
def test_records_that_cannot_be_read(tmp_path: Path, line: str) -> None:
    """They fail the epoch with their line, or are diverted, and the others are read."""
    good = change("c", None, {"id": 7, "name": "x"})
    (tmp_path / "1.json").write_text(f"{good}\n{line}\n{good}\n")
    for malformed in ("fail", "divert"):
        driver = Driver()
        options = f"path '{tmp_path}', envelope 'debezium', malformed '{malformed}'"
        driver.sql(f"CREATE CHANGELOG c ({COLUMNS}, x DECIMAL(4, 2)) USING json OPTIONS ({options})")
        driver.sql("CREATE VIEW v AS SELECT * FROM c")
        if malformed == "fail":
            with pytest.raises(MalformedInput, match="line 2 of") as refused:
                driver.step()
            assert MALFORMED[line] in f"{refused.value} {refused.value.values}"
        else:
            driver.step()
            assert len(driver.table("v")) == 2
            rejected = driver.table("c.rejected")
            assert [(row["line"], row["text"]) for row in rejected] == [(2, line)]
            assert MALFORMED[line] in rejected[0]["reason"]


def test_a_row_without_a_key(tmp_path: Path) -> None:
    feed = Feed(tmp_path, options=", malformed 'divert'")
    feed.driver.sql("DROP VIEW by_row; DROP CHANGELOG c; CREATE VIEW by_row AS SELECT * FROM t")
    ada = {"id": 1, "name": "Ada"}
    lines = [change("c", None, ada), change("c", None, {"name": "x"}), change("d", {}, None), change("u", {}, ada)]
    assert feed.step(*lines) == [ada]
    rejected = feed.driver.table("t.rejected")
    assert [(row["line"], "of the primary key" in row["reason"]) for row in rejected] == [(2, True), (3, True)]


def test_numbers_for_times_need_a_unit(tmp_path: Path) -> None:
    feed = Feed(tmp_path, "id BIGINT, at TIMESTAMP")
    with pytest.raises(MalformedInput, match="time_unit 'milliseconds'"):
        feed.step(change("c", None, {"id": 1, "at": 1767261600000}))


def test_truncation_is_refused(tmp_path: Path) -> None:
    feed = Feed(tmp_path, options=", malformed 'divert'")
    with pytest.raises(MalformedInput, match="the table behind `t` was truncated"):
        feed.step(change("t", None, None))


@pytest.mark.parametrize(
    ("definition", "fact"),
    [
        ("STREAM s (id BIGINT) USING json OPTIONS (path 'x', envelope 'debezium')", "a STREAM is append-only"),
        ("CHANGELOG s (id BIGINT) USING parquet OPTIONS (path 'x', envelope 'debezium')", "is around JSON"),
        ("CHANGELOG s (id BIGINT) USING json OPTIONS (path 'x', envelope 'maxwell')", "is not known"),
        ("CHANGELOG s (id BIGINT) USING json OPTIONS (path 'x', envelope 'debezium', op 'op')", "says itself"),
        ("STREAM s (id BIGINT) USING json OPTIONS (path 'x', time_unit 'milliseconds')", "is for envelopes"),
        (
            "CHANGELOG s (id BIGINT) USING json OPTIONS (path 'x', envelope 'debezium', time_unit 'days')",
            "option `time_unit` of `s` is 'days'",
        ),
    ],
)
def test_definitions_that_do_not_fit(definition: str, fact: str) -> None:
    with pytest.raises(InvalidSql, match=fact):
        Driver().sql(f"CREATE {definition}")


@pytest.mark.parametrize("kind", [f"TABLE s ({COLUMNS}, PRIMARY KEY (id))", f"CHANGELOG s ({COLUMNS})"])
def test_topics(kind: str) -> None:
    """The same envelopes as records of Kafka, tombstones as it has them."""
    driver = Driver()
    driver.sql(
        f"""CREATE {kind} USING kafka
              OPTIONS (bootstrap 'here:9092', topic 't', envelope 'debezium', malformed 'divert');
            CREATE VIEW v AS SELECT * FROM s"""
    )
    ada, bob = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}
    epoch(driver, handed_over((b"1", change("c", None, ada).encode()), (b"2", change("c", None, bob).encode())))
    new = {"id": 1, "name": "Ada Allen"}
    records = [change("u", ada, new).encode(), change("d", bob, None).encode(), None, b"{", b"\xff"]
    epoch(driver, handed_over(*[(b"k", record) for record in records], first=2))
    assert driver.table("v") == [new]
    assert [row["offset"] for row in driver.table("s.rejected")] == [5, 6]
