"""JDBC sinks on Derby, which comes with Spark: other types, other case of names; and names that are no plain ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.errors import SinkFailed
from rejoinder.exchange.jdbc import Connection

pytestmark = pytest.mark.spark
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


@pytest.mark.parametrize("table", ["people WHERE 1 = 0; DROP TABLE people; --", "(SELECT id, n FROM people) x"])
def test_what_is_no_table_is_refused_as_a_name(flow: rj.Flow, derby: Derby, table: str) -> None:
    derby.update("CREATE TABLE people (id BIGINT, n INT)", "INSERT INTO people VALUES (1, 1)")
    with pytest.raises(SinkFailed, match="cannot be read"):
        _sink(flow, derby, table, mode="upsert", key="id")
    assert derby.number("SELECT COUNT(*) FROM people") == 1
