"""Aggregates and conversions of the document, case by case, and the rules that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

import rejoinder as rj
from rejoinder.testing import Driver
from tests.golden.kafka_streams.cells import DATA, START, day, sorted_records

CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in DATA["operator_cases"]}
RULES = {rule["id"] for rule in DATA["operators"]}
SHARDS = pytest.mark.parametrize("parallelism", [1, 3])


def changed(driver: Driver, key: str, value: str) -> dict[Any, Any]:
    """The last value of each key that a step changed; a key that is gone has none."""
    result: dict[Any, Any] = {}
    for row, diff in driver.step()["result"]:
        if diff > 0 or row[key] not in result:
            result[row[key]] = row[value] if diff > 0 else None
    return result


def expected(step: Mapping[str, Any]) -> dict[Any, Any]:
    return {each["key"]: each["value"] for each in step["out"]}


@SHARDS
def test_counts_of_a_table_by_value(parallelism: int) -> None:
    """ks-agg-ktable-count: the old value leaves its group. A group without rows is gone; the data leaves that open."""
    case = CASES["ks-agg-ktable-count"]
    assert case["ambiguous"]
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE TABLE users (u STRING, region STRING, PRIMARY KEY (u))")
    rj.Table.of(driver, "users").group_by("region").count().to("result")
    for number, step in enumerate(case["steps"]):
        if number == 2:
            driver.restart(parallelism=2)
        given = step["in"]
        if given["value"] is None:
            driver.delete("users", {"u": given["key"]})
        else:
            driver.insert("users", {"u": given["key"], "region": given["value"]})
        assert {key: n or 0 for key, n in changed(driver, "region", "count").items()} == expected(step)


@SHARDS
def test_sums_of_a_table_by_region(parallelism: int) -> None:
    """ks-agg-ktable-sum, ks-op-ktable-aggregate: the result is a table by the aggregation key."""
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE TABLE users (u STRING, region STRING, amount BIGINT, PRIMARY KEY (u))")
    totals = rj.Table.of(driver, "users").group_by("region").sum("amount")
    assert type(totals) is rj.Table and totals.key == ("region",)
    totals.to("result")
    for step in CASES["ks-agg-ktable-sum"]["steps"]:
        driver.insert("users", {"u": step["in"]["key"], **step["in"]["value"]})
        assert changed(driver, "region", "amount") == expected(step)


@SHARDS
def test_counts_by_key_and_day(parallelism: int) -> None:
    """ks-agg-windowed-tumbling, ks-op-windowed-aggregate: a row per key and window, joined by the key alone."""
    driver, views = _views(parallelism)
    views.windowed(rj.tumble("1 day")).count("n").to_stream("k", "n", "window").to("result")
    for number, step in enumerate(CASES["ks-agg-windowed-tumbling"]["steps"]):
        if number == 3:
            driver.restart(parallelism=2)
        driver.insert("views", {"k": step["in"]["key"], "ts": START + timedelta(milliseconds=step["in"]["ts"])})
        rows = [row for row, _ in driver.step()["result"]]
        found = [{"key": row["k"], "window": _day(row), "value": row["n"]} for row in rows]
        assert sorted_records(found) == sorted_records(step["out"])


@SHARDS
def test_counts_in_windows_that_overlap(parallelism: int) -> None:
    """ks-agg-windowed-hopping: a record counts in every window that holds it."""
    driver, views = _views(parallelism)
    views.windowed(rj.hop("30 seconds", every="10 seconds")).count("n").to_stream("k", "n", "window").to("result")
    for step in CASES["ks-agg-windowed-hopping"]["steps"]:
        driver.insert("views", {"k": step["in"]["key"], "ts": START + timedelta(seconds=step["in"]["ts"])})
        rows = [row for row, _ in driver.step()["result"]]
        found = [{"key": row["k"], "window": _seconds(row), "value": row["n"]} for row in rows]
        assert sorted_records(found) == sorted_records(step["out"])


CONVERTED = {
    "ks-conv-wtable-kw": ("concat(k, '@', datediff(window.start, DATE'1970-01-01')) AS k1", "n AS v1"),
    "ks-conv-wtable-k": ("k AS k1", "array(n, datediff(window.start, DATE'1970-01-01')) AS v1"),
}


@SHARDS
@pytest.mark.parametrize("name", CONVERTED)
def test_a_windowed_table_becomes_a_stream_by_other_keys(name: str, parallelism: int) -> None:
    """ks-op-wtable-tostream, -conv-kw and -conv-k: what becomes of the window is said there, and nowhere else."""
    driver, views = _views(parallelism)
    stream = views.windowed(rj.tumble("1 day")).count("n").to_stream(*CONVERTED[name])
    stream.to("result")
    stream.to_table("k1").to("table")
    for step in CASES[name]["steps"]:  # the value of a window goes up by one with each record
        driver.insert("views", {"k": step["in"]["key"], "ts": day(step["in"]["window"])})
        rows = [row for row, _ in driver.step()["result"]]
        assert sorted_records({"key": row["k1"], "value": row["v1"]} for row in rows) == sorted_records(step["out"])
    assert {row["k1"]: row["v1"] for row in driver.table("table")} == CASES[name]["read_as_ktable"]


def test_a_table_is_the_last_value_of_each_key() -> None:
    """ks-op-ktable: and leaving out what was replaced changes nothing."""
    records = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]
    compacted = [("c", 4), ("b", 5), ("a", 6)]
    found = []
    for given in (records, compacted):
        driver = Driver(parallelism=2)
        driver.sql("CREATE STREAM topic (k STRING, v BIGINT)")
        rj.Stream.of(driver, "topic").to_table("k").to("result")
        for key, value in given:
            driver.insert("topic", {"k": key, "v": value})
            driver.step()
        found.append(driver.table("result"))
    assert found[0] == found[1] == [{"k": "a", "v": 6}, {"k": "b", "v": 5}, {"k": "c", "v": 4}]


def test_an_aggregate_by_another_key_repartitions_by_itself() -> None:
    """ks-op-windowed-aggregate-nonkey: the plan sends rows to the bucket of the new key, as it does for every key."""
    driver, _ = _views(3)
    by_letter = rj.Stream.of(driver, "views", time="ts").select("upper(k) AS letter", "ts").group_by("letter")
    by_letter.windowed(rj.tumble("1 day")).count("n").to_stream().to("result")
    driver.insert("views", *({"k": key, "ts": START} for key in "aAbBaB"))
    assert sorted((row["letter"], row["n"]) for row, _ in driver.step()["result"]) == [("A", 3), ("B", 3)]


def test_a_table_goes_through_a_stream_and_back() -> None:
    driver = Driver(parallelism=2)
    driver.sql("CREATE TABLE prices (item STRING, price BIGINT, PRIMARY KEY (item))")
    prices = rj.Table.of(driver, "prices")
    prices.to_stream().to("values")
    prices.to_stream(deletes="gone").to_table("item", deleted="gone").select("item", "price").to("back")
    driver.insert("prices", {"item": "tea", "price": 3}, {"item": "cup", "price": 9})
    driver.step()
    driver.insert("prices", {"item": "tea", "price": 4}, {"item": "cup", "price": 9})
    assert driver.step()["values"] == [({"item": "tea", "price": 4}, 1)]  # a row that stays as it was is not a change
    driver.delete("prices", {"item": "cup"})
    assert driver.step() == {"values": [], "back": [({"item": "cup", "price": 9}, -1)]}
    driver.restart(parallelism=1)
    driver.insert("prices", {"item": "cup", "price": 1})
    assert driver.step()["back"] == [({"item": "cup", "price": 1}, 1)]
    assert driver.table("back") == [{"item": "cup", "price": 1}, {"item": "tea", "price": 4}]


def test_every_rule_of_the_document_is_named_by_a_test() -> None:
    here = "".join(value.__doc__ or "" for value in globals().values() if callable(value))
    matrix = {"ks-op-join-key", "ks-op-wtable-no-topic", "ks-op-wtable-created", "ks-op-no-right-join"}
    matrix |= {"ks-op-result-type", "ks-op-wtable-conv-kw", "ks-op-wtable-conv-k"}
    assert {rule for rule in RULES if rule not in here} == matrix


def _views(parallelism: int) -> tuple[Driver, Any]:
    driver = Driver(parallelism=parallelism)
    driver.sql("CREATE STREAM views (k STRING, ts TIMESTAMP)")
    return driver, rj.Stream.of(driver, "views", time="ts").group_by("k")


def _seconds(row: Mapping[str, Any]) -> int:
    start = row["window"]["start"]
    found = datetime.fromisoformat(start) if isinstance(start, str) else start
    return round((found.replace(tzinfo=START.tzinfo) - START).total_seconds())


def _day(row: Mapping[str, Any]) -> int:
    return _seconds(row) // 86400
