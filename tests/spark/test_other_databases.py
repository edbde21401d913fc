"""JDBC sinks on Derby, which comes with Spark: other types, other case of names; and names that need quotes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.connectors.jdbc.spark.connections import Connection
from rejoinder.errors import SinkFailed

pytestmark = pytest.mark.spark
MOMENT, SECOND = datetime(2024, 2, 29, 1, 2, 3, 4), timedelta(seconds=1)
DRIVER = "org.apache.derby.jdbc.EmbeddedDriver"
HOSTILE = 'odd "name"; DROP TABLE people; --'


class Derby:
    """A database in memory of the JVM."""

    def __init__(self, flow: rj.Flow, name: str) -> None:
        self.url = f"jdbc:derby:memory:{name};create=true"
        self.flow = flow

    def connected(self, act: Callable[[Connection], Any]) -> Any:
        connection = Connection(self.flow.spark, {"url": self.url, "driver": DRIVER, "dbtable": "x"})
        try:
            result = act(connection)
            connection.commit()
            return result
        finally:
            connection.close()

    def update(self, *statements: str) -> None:
        self.connected(lambda connection: [connection.update(statement) for statement in statements])

    def number(self, sql: str) -> int:
        return int(self.connected(lambda connection: connection.number(sql)))


@pytest.fixture
def derby(flow: rj.Flow, tmp_path: Path) -> Derby:
    flow.sql("CREATE TABLE a (id BIGINT, n INT, PRIMARY KEY (id)); CREATE VIEW v AS SELECT id, n FROM a")
    return Derby(flow, tmp_path.name)


def _sink(flow: rj.Flow, derby: Derby, table: str, **more: str) -> None:
    flow.sink("v", "jdbc", name="s", url=derby.url, driver=DRIVER, dbtable=table, **more)


def test_derby_takes_changes_and_a_row_per_key(flow: rj.Flow, derby: Derby) -> None:
    derby.update(
        "CREATE TABLE people (id BIGINT, n INT)", 'CREATE TABLE log (id BIGINT, n INT, "_epoch" BIGINT, "_diff" BIGINT)'
    )
    _sink(flow, derby, "people", mode="upsert", key="id")
    flow.sink("v", "jdbc", name="l", url=derby.url, driver=DRIVER, dbtable="log")
    flow.insert("a", [{"id": 1, "n": 10}, {"id": 2, "n": 20}])
    flow.run()
    flow.insert("a", [{"id": 1, "n": 11}])
    flow.delete("a", [{"id": 2}])
    flow.run()
    assert derby.number("SELECT COUNT(*) FROM people") == 1
    assert derby.number("SELECT n FROM people WHERE id = 1") == 11
    assert derby.number("SELECT COUNT(*) FROM log") == 5


def test_a_table_with_a_hostile_name_is_quoted_and_nothing_else_is_touched(flow: rj.Flow, derby: Derby) -> None:
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    derby.update("CREATE TABLE people (id BIGINT)", "INSERT INTO people VALUES (1)")
    derby.update(f"CREATE TABLE {quoted} (id BIGINT, n INT)")
    _sink(flow, derby, HOSTILE, mode="upsert", key="id")
    flow.insert("a", [{"id": 1, "n": 10}])
    flow.run()
    assert derby.number(f"SELECT COUNT(*) FROM {quoted}") == 1
    assert derby.number("SELECT COUNT(*) FROM people") == 1


def test_a_table_of_epochs_that_cannot_be_read_is_not_taken_for_none(flow: rj.Flow, derby: Derby) -> None:
    derby.update("CREATE TABLE people (id BIGINT, n INT)", "CREATE TABLE rejoinder_epochs (sink VARCHAR(64))")
    _sink(flow, derby, "people", mode="upsert", key="id")
    flow.insert("a", [{"id": 1, "n": 10}])
    with pytest.raises(SinkFailed, match=r"(?i)column 'EPOCH'"):
        flow.run()
    assert derby.number("SELECT COUNT(*) FROM people") == 0
    derby.update("DROP TABLE rejoinder_epochs")
    flow.run()
    assert derby.number("SELECT COUNT(*) FROM people") == 1


@pytest.mark.parametrize("table", ["people WHERE 1 = 0; DROP TABLE people; --", "(SELECT id, n FROM people) x"])
def test_what_is_no_table_is_refused_as_a_name(flow: rj.Flow, derby: Derby, table: str) -> None:
    derby.update("CREATE TABLE people (id BIGINT, n INT)", "INSERT INTO people VALUES (1, 1)")
    with pytest.raises(SinkFailed, match="cannot be read"):
        _sink(flow, derby, table, mode="upsert", key="id")
    assert derby.number("SELECT COUNT(*) FROM people") == 1


KEYS = {
    "text": ("STRING", "VARCHAR(20)", "'it''s'", "it's", "other"),
    "char": ("STRING", "CHAR(3)", "'abc'", "abc", "xyz"),
    "decimal": ("DECIMAL(30,10)", "DECIMAL(30,10)", "0.0000000001", Decimal("0.0000000001"), Decimal(7)),
    "date": ("DATE", "DATE", "DATE('2024-02-29')", date(2024, 2, 29), date(2024, 3, 1)),
    "timestamp": ("TIMESTAMP", "TIMESTAMP", "TIMESTAMP('2024-02-29 01:02:03.000004')", MOMENT, MOMENT + SECOND),
    "boolean": ("BOOLEAN", "BOOLEAN", "TRUE", True, False),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_find_their_row(flow: rj.Flow, tmp_path: Path, kind: str) -> None:
    ours, theirs, literal, value, other = KEYS[kind]
    derby = Derby(flow, tmp_path.name)
    derby.update(f"CREATE TABLE keyed (k {theirs}, n INT)")
    flow.sql(f"CREATE TABLE a (k {ours}, n INT, PRIMARY KEY (k)); CREATE VIEW v AS SELECT k, n FROM a")
    _sink(flow, derby, "keyed", mode="upsert", key="k")
    flow.insert("a", [{"k": value, "n": 1}, {"k": other, "n": 2}])
    flow.run()
    flow.insert("a", [{"k": value, "n": 3}])
    flow.delete("a", [{"k": other}])
    flow.run()
    assert derby.number("SELECT COUNT(*) FROM keyed") == 1
    assert derby.number(f"SELECT n FROM keyed WHERE k = {literal}") == 3


def test_a_key_of_several_columns_with_odd_names(flow: rj.Flow, tmp_path: Path) -> None:
    derby = Derby(flow, tmp_path.name)
    derby.update(
        'CREATE SCHEMA "odd schema"',
        'CREATE TABLE "odd schema"."a.b" ("order" VARCHAR(10), "the ""day""" DATE, "a.b" DECIMAL(9,2), "x`y" INT)',
    )
    flow.sql(
        'CREATE TABLE a (`order` STRING, `the "day"` DATE, `a.b` DECIMAL(9,2), `x``y` INT, '
        'PRIMARY KEY (`order`, `the "day"`)); CREATE VIEW v AS SELECT * FROM a'
    )
    _sink(flow, derby, '"odd schema"."a.b"', mode="upsert", key='order, the "day"')
    row = {"order": "x", 'the "day"': date(2024, 1, 1), "a.b": Decimal("1.50"), "x`y": 1}
    flow.insert("a", [row, {**row, "order": "y"}, {**row, 'the "day"': date(2024, 1, 2)}])
    flow.run()
    flow.insert("a", [{**row, "x`y": 2}])
    flow.delete("a", [{**row, "order": "y"}])
    flow.run()
    assert derby.number('SELECT COUNT(*) FROM "odd schema"."a.b"') == 2
    assert derby.number('SELECT SUM("x`y") FROM "odd schema"."a.b"') == 3


@pytest.mark.parametrize(
    ("table", "made"), [("order", '"ORDER"'), ("APP.Select", 'APP."SELECT"'), ('"lower"', '"lower"'), ("a b", '"a b"')]
)
def test_a_table_may_be_named_as_it_likes(flow: rj.Flow, derby: Derby, table: str, made: str) -> None:
    derby.update(f'CREATE TABLE {made} (id BIGINT, n INT, "_epoch" BIGINT, "_diff" BIGINT)')
    _sink(flow, derby, table)
    flow.insert("a", [{"id": 1, "n": 10}])
    flow.run()
    assert derby.number(f"SELECT COUNT(*) FROM {made}") == 1


def test_a_text_that_is_too_long_for_the_table_is_not_cut(flow: rj.Flow, tmp_path: Path) -> None:
    derby = Derby(flow, tmp_path.name)
    derby.update("CREATE TABLE keyed (k VARCHAR(3), n INT)")
    flow.sql("CREATE TABLE a (k STRING, n INT, PRIMARY KEY (k)); CREATE VIEW v AS SELECT k, n FROM a")
    _sink(flow, derby, "keyed", mode="upsert", key="k")
    flow.insert("a", [{"k": "CANARY", "n": 1}])
    with pytest.raises(SinkFailed) as failed:
        flow.run()
    assert "CANARY" not in str(failed.value)
    assert derby.number("SELECT COUNT(*) FROM keyed") == 0
