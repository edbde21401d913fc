"""Streams, tables and windowed tables as objects: what they say in SQL, what they know, what they refuse."""

from __future__ import annotations

import doctest
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.api.relations import named_rows, time_windows
from rejoinder.errors import DefinitionConflict, InvalidSql, PlanningError, Unsupported
from rejoinder.ir.catalog import Catalog
from rejoinder.testing import Driver


@pytest.fixture
def shop() -> Driver:
    driver = Driver(parallelism=2)
    driver.sql("CREATE STREAM orders (id BIGINT, cust BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 5 SECONDS)")
    driver.sql("CREATE STREAM payments (id BIGINT, `from` BIGINT, at TIMESTAMP)")
    driver.sql("CREATE TABLE customers (id BIGINT, name STRING, country STRING, PRIMARY KEY (id))")
    return driver


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """What an enrichment says of an order."""
    return {"double": row["id"] * 2}


def test_what_a_stream_knows(shop: Driver) -> None:
    orders = rj.Stream.of(shop, "ORDERS")
    assert (orders.name, orders.time, orders.columns) == ("orders", "ts", ["id", "cust", "ts"])
    assert rj.Stream.of(shop, "payments").time is None
    assert rj.Stream.of(shop, "payments").with_time("AT").time == "at"
    assert orders.select("id", "ts AS placed").time is None and orders.filter("id > 1").time == "ts"
    assert orders.alias("o").filter("o.id > 1").query == "SELECT * FROM orders AS o WHERE o.id > 1"
    assert orders.merge(orders.filter("id = 1")).columns == orders.columns


def test_names_that_need_quotes(shop: Driver) -> None:
    orders, payments = rj.Stream.of(shop, "orders"), rj.Stream.of(shop, "payments", time="at")
    joined = orders.join(payments, on={"id": "from"}, within=timedelta(minutes=1))
    assert joined.columns == ["id", "cust", "ts", "payments_id", "from", "at"]
    assert "payments.`from`" in joined.query
    joined.to("paid in time")
    shop.insert("orders", {"id": 1, "cust": 2, "ts": "2026-01-01 00:00:00"})
    shop.insert("payments", {"id": 9, "from": 1, "at": "2026-01-01 00:01:00"})
    assert [row["payments_id"] for row, _ in shop.step()["paid in time"]] == [9]


def test_a_view_can_be_a_stream_or_a_table_again(shop: Driver) -> None:
    orders, customers = rj.Stream.of(shop, "orders"), rj.Table.of(shop, "customers")
    seen = orders.left_join(customers, on={"cust": "id"}, select=["orders.id", "cust", "name", "ts"]).through("seen")
    assert type(seen) is rj.Stream and (seen.name, seen.time) == ("seen", "ts")
    assert rj.Stream.of(shop, "seen").columns == seen.columns
    counts = seen.group_by("name").count("n").through("counts")
    assert counts.key == ("name",) and counts.query == "SELECT * FROM counts"
    with pytest.raises(InvalidSql, match="`counts` is not a stream"):
        rj.Stream.of(shop, "counts")
    with pytest.raises(InvalidSql, match="key of `counts` is not known"):
        rj.Table.of(shop, "counts")
    shop.insert("customers", {"id": 2, "name": "Ada"})
    shop.insert("orders", {"id": 1, "cust": 2, "ts": "2026-01-01 00:00:00"}, {"id": 2, "cust": 3})
    shop.step()
    shop.insert("customers", {"id": 2, "name": "Bea"}, {"id": 3, "name": "Cem"})
    assert shop.step() == {"seen": [], "counts": []}  # what was joined stays as it was joined
    assert [(row["name"], row["n"]) for row in shop.table("counts")] == [(None, 1), ("Ada", 1)]


def test_a_definition_can_be_said_again_but_not_otherwise(shop: Driver) -> None:
    customers = rj.Table.of(shop, "customers")
    for _ in range(2):
        customers.filter("country = 'UK'").to("british")
    shop.insert("customers", {"id": 1, "name": "Ada", "country": "UK"})
    shop.step()
    with pytest.raises(DefinitionConflict, match="`british` differs from the definition"):
        customers.filter("country = 'PT'").to("british")


def test_tables_and_streams_go_to_sinks(shop: Driver, tmp_path: Path) -> None:
    customers = rj.Table.of(shop, "customers")
    customers.select("id", "name").to("names", "json", path=str(tmp_path / "it's"))
    customers.to_stream().select("id").to("ids", "json", path=str(tmp_path / "ids"))
    shop.insert("customers", {"id": 1, "name": "Ada"})
    shop.step()
    files = sorted((tmp_path / "it's").glob("*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["name"], row["_diff"]) for row in rows] == [(1, "Ada", 1)]
    assert list((tmp_path / "ids").glob("*.json"))
    with pytest.raises(InvalidSql, match="has options of a sink, and no format"):
        customers.to("more", path="x")


def test_a_table_goes_to_a_keyed_sink_by_its_key(shop: Driver) -> None:
    said: list[str] = []

    @dataclass
    class Noted:
        catalog: Catalog
        sql = staticmethod(said.append)

    rj.Table.of(Noted(shop.catalog), "customers").to("kept", "kafka", bootstrap="nowhere:9092", topic="kept")
    assert said == [
        "CREATE VIEW kept AS SELECT * FROM customers;\nCREATE SINK kept_kafka FROM kept USING kafka "
        "OPTIONS (bootstrap 'nowhere:9092', topic 'kept', mode 'upsert', key 'id')",
    ]


@pytest.mark.parametrize(
    ("form", "options", "said"),
    [
        ("KAFKA", {}, "kept_kafka FROM kept USING kafka OPTIONS (bootstrap 'b:1', topic 't', mode 'upsert', key 'id')"),
        ("kafka", {"key": "name"}, "(bootstrap 'b:1', topic 't', key 'name', mode 'upsert')"),
        ("kafka", {"mode": "debezium"}, "(bootstrap 'b:1', topic 't', mode 'debezium', key 'id')"),
        ("kafka", {"mode": "append"}, "(bootstrap 'b:1', topic 't', mode 'append')"),
    ],
)
def test_what_a_user_says_of_a_sink_counts(shop: Driver, form: str, options: dict[str, str], said: str) -> None:
    texts: list[str] = []

    @dataclass
    class Noted:
        catalog: Catalog
        sql = staticmethod(texts.append)

    rj.Table.of(Noted(shop.catalog), "customers").to("kept", form, bootstrap="b:1", topic="t", **options)
    assert texts[0].endswith(said)


@pytest.mark.parametrize(
    ("form", "options", "words"),
    [
        ("parket", {"path": "x"}, "format `parket` of sink `v_parket` is not known"),
        ("parquet", {}, "has no path"),
        ("delta", {"path": "x", "key": "nam"}, "has no column `nam`"),
    ],
)
def test_a_sink_that_is_none_leaves_no_view(shop: Driver, form: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(PlanningError) as refused:
        rj.Table.of(shop, "customers").to("v", form, **options)
    assert words in str(refused.value) and shop.catalog.find("v") is None


def test_deletes_of_a_null_key_are_reported_when_they_happen(shop: Driver) -> None:
    counts = rj.Table.of(shop, "customers").group_by("country").count("n")
    counts.to_stream(deletes="gone").to("changes")
    shop.insert("customers", {"id": 1}, {"id": 2})
    shop.step()
    shop.insert("customers", {"id": 2, "country": "PT"})
    found = shop.step()["changes"]
    assert sorted((str(row["country"]), row["n"], row["gone"]) for row, _ in found) == [
        ("None", 1, False),
        ("PT", 1, False),
    ]
    shop.delete("customers", {"id": 1})
    assert shop.step()["changes"] == [({"country": None, "n": 1, "gone": True}, 1)]


def test_an_outer_join_has_its_key_from_both_sides(shop: Driver) -> None:
    shop.sql("CREATE TABLE notes (id BIGINT, note STRING, PRIMARY KEY (id))")
    customers, notes = rj.Table.of(shop, "customers"), rj.Table.of(shop, "notes")
    with pytest.raises(InvalidSql, match="result key `id` comes from only one side"):
        customers.outer_join(notes, select=["customers.id", "name", "note"])
    columns = ["COALESCE(customers.id, notes.id) AS id", "name", "note"]
    assert customers.outer_join(notes, select=columns).columns == ["id", "name", "note"]
    orders = rj.Stream.of(shop, "orders")
    daily = orders.group_by("cust").windowed(rj.tumble("1 day")).count("n")
    other = orders.alias("o").group_by("cust").windowed(rj.tumble(timedelta(hours=24))).count("m")
    with pytest.raises(InvalidSql, match="result key `window` comes from"):
        daily.outer_join(other, select=["COALESCE(orders.cust, o.cust) AS cust", "o.window", "n", "m"])
    assert daily.outer_join(other).columns == ["cust", "window", "n", "m"], "windows of one size, however it is said"


def test_joins_that_could_not_mean_anything(shop: Driver) -> None:
    orders, customers = rj.Stream.of(shop, "orders"), rj.Table.of(shop, "customers")
    daily = orders.alias("day").group_by("cust").windowed(rj.tumble("1 day")).count("n")
    for window, words in (
        ("HOP(ts, INTERVAL 1 HOUR, INTERVAL 1 DAY)", "selects several windows"),
        ("TUMBLE(ts, INTERVAL 1 HOUR)", "are of another size, INTERVAL 1 day"),
    ):
        with pytest.raises(PlanningError) as refused:
            orders.left_join(daily, window=window)
        assert words in str(refused.value)
    assert orders.left_join(daily, window="TUMBLE(ts, INTERVAL 24 HOURS)").columns
    payments = rj.Stream.of(shop, "payments", time="at")
    with pytest.raises(InvalidSql, match="is within no time"):
        orders.join(payments, on="id", within="-5 minutes")
    with pytest.raises(Unsupported, match="is within months"):
        orders.join(payments, on="id", within=("0 days", "1 month"))
    with pytest.raises(InvalidSql, match="is within two lengths, not 1"):
        orders.join(payments, on="id", within=("1 hour",))  # type: ignore[arg-type]
    with pytest.raises(InvalidSql, match="soon"):
        orders.join(payments, on="id", within="soon")
    assert orders.join(payments, on="id", within=("-5 minutes", "10 minutes")).columns
    with pytest.raises(InvalidSql, match="`customers` is joined by its key") as refused:
        orders.select("cust", "ts").left_join(customers)
    assert 'on={"expression of orders": "id"}' in str(refused.value.hint)
    with pytest.raises(Unsupported, match="`customers` is not a stream"):
        orders.merge(customers)  # type: ignore[arg-type]
    other = rj.Stream.of(shop, "orders").alias("o")
    elsewhere = Driver()
    elsewhere.sql("CREATE STREAM orders (id BIGINT, cust BIGINT, ts TIMESTAMP)")
    foreign = rj.Stream.of(elsewhere, "orders", time="ts")
    with pytest.raises(InvalidSql, match="belong to different flows"):
        foreign.join(other, on="id", within="1 day")
    with pytest.raises(InvalidSql, match="belong to different flows"):
        other.merge(foreign)


def test_functions_answer_for_rows(shop: Driver) -> None:
    orders = rj.Stream.of(shop, "orders").select("id").enrich(answer, columns={"double": "BIGINT"})
    assert type(orders) is rj.Stream and orders.columns == ["id", "double"]
    orders.to("asked")
    shop.insert("orders", {"id": 4, "ts": "2026-01-01 00:00:00"})
    assert shop.step()["asked"] == [({"id": 4, "double": 8}, 1)]


def test_groups(shop: Driver) -> None:
    customers = rj.Table.of(shop, "customers")
    named = customers.group_by("upper(country) AS land", "length(name) AS size").aggregate("max(name) AS last")
    assert named.key == ("land", "size") and named.columns == ["land", "size", "last"]
    windowed = rj.Stream.of(shop, "orders").group_by("cust").windowed(rj.hop("1 hour", every="10 minutes")).sum("id")
    assert windowed.columns == ["cust", "window", "id"] and windowed.key == ("cust",)
    assert windowed.filter("id > 3").select("cust", "window", "id + 1 AS more").columns == ["cust", "window", "more"]
    with pytest.raises(InvalidSql, match="the time of `payments` is not known"):
        rj.Stream.of(shop, "payments").group_by("from").windowed(rj.tumble("1 day"))


def test_windows_of_integers(shop: Driver) -> None:
    shop.sql("CREATE STREAM ticks (k INT, n INT, t INT); CREATE STREAM asked (k INT, t BIGINT)")
    ticks, asked = rj.Stream.of(shop, "ticks", time="t"), rj.Stream.of(shop, "asked")
    sessions = ticks.group_by("k").windowed(rj.session(5)).count("n").select("k", "window", "n")
    assert "SESSION(" in sessions.item and sessions.columns == ["k", "window", "n"]
    assert "CUMULATE(" in ticks.group_by("k").windowed(rj.cumulate(10, step=5)).count("n").item
    tens = ticks.group_by("k").windowed(rj.tumble(10)).sum("n")
    shifted = tens.left_join(tens.alias("before"), shift=-10, select=["ticks.k", "ticks.window", "before.n AS n"])
    shop.sql(f"CREATE VIEW v AS {shifted.query}")
    asked.left_join(tens.alias("w"), window="t", select=["asked.t", "n"]).to("answers")
    fives = ticks.group_by("k").windowed(rj.hop(10, every=5)).count("n").select("k", "window", "n")
    fives.to_stream("window.start AS start", "n").to("hops")
    shop.insert("ticks", {"k": 1, "n": 3, "t": -4}, {"k": 1, "n": 4, "t": 7})
    shop.insert("asked", {"k": 1, "t": -10})
    changes = shop.step()
    assert sorted((row["window"]["start"], row["n"]) for row, _ in changes["v"]) == [(-10, None), (0, 3)]
    assert changes["answers"] == [({"t": -10, "n": 3}, 1)]
    assert sorted(row["start"] for row, _ in changes["hops"]) == [-10, -5, 0, 5]
    with pytest.raises(InvalidSql, match="windows of different sizes"):
        tens.join(ticks.alias("o").group_by("k").windowed(rj.tumble(20)).count())
    with pytest.raises(InvalidSql, match="longer than nothing"):
        _ = ticks.group_by("k").windowed(rj.tumble(0)).count().columns


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SELECT c.id FROM customers c JOIN orders FOR SYSTEM_TIME AS OF now() AS o ON o.cust = c.id",
            "`customers` is",
        ),
        ("SELECT 1 AS x FROM orders o RIGHT JOIN customers FOR SYSTEM_TIME AS OF now() AS c ON o.cust = c.id", "RIGHT"),
        ("SELECT 1 AS x FROM orders o FULL JOIN customers FOR SYSTEM_TIME AS OF now() AS c ON o.cust = c.id", "right"),
        ("SELECT id FROM LATEST(TABLE customers, DESCRIPTOR(id))", "the input of LATEST must be append-only"),
        (
            "SELECT id FROM LATEST(TABLE (SELECT cust AS id, count(*) AS n FROM orders GROUP BY cust), DESCRIPTOR(id))",
            "a GROUP BY is not",
        ),
        ("SELECT id FROM LATEST(TABLE orders)", "wrong arguments of LATEST"),
        ("SELECT id FROM LATEST(TABLE orders, id)", "LATEST takes columns as DESCRIPTOR"),
        ("SELECT id FROM LATEST(TABLE orders, DESCRIPTOR(id), DESCRIPTOR(id, ts))", "LATEST orders by one column"),
        ("SELECT id FROM CHANGES(TABLE orders, DESCRIPTOR(id))", "wrong arguments of CHANGES"),
        ("SELECT id FROM CHANGES(TABLE (SELECT id, 1 AS _undo FROM orders))", "`_undo` appears twice"),
    ],
)
def test_what_sql_refuses(shop: Driver, text: str, words: str) -> None:
    with pytest.raises((InvalidSql, Unsupported)) as refused:
        shop.sql(f"CREATE VIEW v AS {text}")
    assert words in str(refused.value)


def test_the_past_of_a_query_at_arrival(shop: Driver) -> None:
    """SELECT STREAM plays the epochs again: each row meets the table of its own epoch."""
    for name in ("Ada", "Bea"):
        shop.insert("customers", {"id": 1, "name": name})
        shop.insert("orders", {"id": len(name + name), "cust": 1, "ts": "2026-01-01 00:00:00"})
        shop.step()
    query = (
        "o.cust, c.name FROM orders o LEFT JOIN customers FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS c ON cust = c.id"
    )
    assert [row["name"] for row in shop.sql(f"SELECT STREAM {query}")] == ["Ada", "Bea"]
    assert [row["name"] for row in shop.sql(f"SELECT {query}")] == ["Bea", "Bea"]  # all rows meet what is there now


@pytest.mark.parametrize("module", [named_rows, time_windows])
def test_examples_in_docstrings(module: Any) -> None:
    results = doctest.testmod(module)
    assert results.attempted and not results.failed
