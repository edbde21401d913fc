"""Joins as of a time: both spellings are the join with validity windows, and what cannot be meant is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.errors import InvalidSql, RejoinderError, TypeMismatch, Unsupported
from rejoinder.testing import Driver
from tests.kit import at, flow

SOURCES = """
CREATE STREAM orders (id INT, cur STRING, ts TIMESTAMP, day DATE);
CREATE STREAM rates (cur STRING, rate INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE newest (cur STRING, rate INT, ts TIMESTAMP, PRIMARY KEY (cur), WATERMARK ts);
CREATE TABLE dated (cur STRING, rate INT, ts TIMESTAMP, PRIMARY KEY (cur, ts), WATERMARK ts);
CREATE STREAM bare (cur STRING, rate INT, ts TIMESTAMP);
"""


def play(driver: Driver, relation: str = "rates") -> list[tuple[Any, ...]]:
    driver.insert("orders", *({"id": minute, "cur": "e", "ts": at(minute)} for minute in (0, 2, 5)))
    driver.insert(relation, {"cur": "e", "rate": 114, "ts": at(2)}, {"cur": "u", "rate": 1, "ts": at(0)})
    driver.step()
    driver.insert(relation, {"cur": "e", "rate": 116, "ts": at(4)})
    driver.step()
    return sorted(tuple(row.values()) for row in driver.table("v"))


MATCH = "ON o.cur = r.cur"


@pytest.mark.parametrize(
    ("query", "relation", "expected"),
    [
        (f"ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) {MATCH}", "rates", [(2, 114), (5, 116)]),
        (f"ASOF JOIN rates r MATCH_CONDITION (r.ts <= o.ts) {MATCH}", "rates", [(2, 114), (5, 116)]),
        (f"ASOF JOIN rates r MATCH_CONDITION (o.ts > r.ts) {MATCH}", "rates", [(5, 116)]),
        ("ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) USING (cur)", "rates", [(2, 114), (5, 116)]),
        (f"JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r {MATCH}", "rates", [(2, 114), (5, 116)]),
        (f"JOIN dated FOR SYSTEM_TIME AS OF o.ts AS r {MATCH}", "dated", [(2, 114), (5, 116)]),
        (
            f"ASOF JOIN (SELECT * FROM bare WHERE rate < 115) r MATCH_CONDITION (o.ts >= r.ts) {MATCH}",
            "bare",
            [(2, 114), (5, 114)],
        ),
        (
            "ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) ON lower(o.cur) = lower(r.cur)",
            "rates",
            [(2, 114), (5, 116)],
        ),
    ],
)
def test_each_order_meets_the_version_of_its_time(query: str, relation: str, expected: list[tuple[Any, ...]]) -> None:
    assert play(flow(SOURCES, f"SELECT o.id, r.rate FROM orders o {query}", parallelism=2), relation) == expected


@pytest.mark.parametrize(
    "join",
    [
        f"ASOF LEFT JOIN rates r MATCH_CONDITION (o.ts >= r.ts) {MATCH}",
        f"LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r {MATCH}",
    ],
)
def test_an_order_before_the_first_version_is_padded(join: str) -> None:
    driver = flow(SOURCES, f"SELECT o.id, coalesce(r.rate, -1) AS rate FROM orders o {join}", parallelism=2)
    assert play(driver) == [(0, -1), (2, 114), (5, 116)]
    driver.insert("rates", {"cur": "e", "rate": 7, "ts": at(0)})
    assert driver.step()["v"] == [({"id": 0, "rate": -1}, -1), ({"id": 0, "rate": 7}, 1)]


def test_rows_of_equal_key_and_time_all_match() -> None:
    driver = flow(
        SOURCES,
        f"SELECT o.id, r.rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) {MATCH}",
        parallelism=2,
    )
    play(driver)
    driver.insert("rates", {"cur": "e", "rate": 117, "ts": at(4)})
    assert driver.step()["v"] == [({"id": 5, "rate": 117}, 1)]


def test_a_version_touches_only_the_rows_whose_answer_changes() -> None:
    """The window that it ends is not shown, so orders before it are not looked at again."""
    driver = flow(
        SOURCES,
        f"SELECT o.id, r.rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) {MATCH}",
        parallelism=2,
    )
    driver.insert("orders", *({"id": n, "cur": "e", "ts": at(n)} for n in range(50)))
    driver.insert("rates", {"cur": "e", "rate": 1, "ts": at(0)})
    assert len(driver.step()["v"]) == 50
    driver.insert("rates", {"cur": "e", "rate": 2, "ts": at(48)})
    driver.step()
    assert driver._engine.progress[-1].rows_out["v"] == 4, "two taken back, two added; nothing that cancels"


REFUSED = [
    (f"ASOF JOIN rates r {MATCH}", InvalidSql, "ASOF JOIN has no MATCH_CONDITION"),
    (f"ASOF JOIN rates r MATCH_CONDITION (o.ts) {MATCH}", InvalidSql, "MATCH_CONDITION compares two times"),
    (f"ASOF JOIN rates r MATCH_CONDITION (o.ts <= r.ts) {MATCH}", Unsupported, "a join with the next version"),
    (f"ASOF JOIN rates r MATCH_CONDITION (o.day >= r.ts) {MATCH}", TypeMismatch, "a time of type date"),
    (f"ASOF JOIN rates r MATCH_CONDITION (o.cur >= r.cur) {MATCH}", TypeMismatch, "MATCH_CONDITION on values of type"),
    (f"ASOF FULL JOIN rates r MATCH_CONDITION (o.ts >= r.ts) {MATCH}", Unsupported, "as of a time is not supported"),
    (
        "ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) ON o.cur <> r.cur",
        Unsupported,
        "supports only equalities in ON",
    ),
    (f"JOIN newest FOR SYSTEM_TIME AS OF o.ts AS r {MATCH}", InvalidSql, "keeps only the newest version of a key"),
    (
        f"JOIN bare FOR SYSTEM_TIME AS OF o.ts AS r {MATCH}",
        InvalidSql,
        "has no event-time column from which its rows are valid",
    ),
]


@pytest.mark.parametrize(("join", "error", "fact"), REFUSED, ids=[join for join, _, _ in REFUSED])
def test_what_cannot_be_meant_is_refused(join: str, error: type[RejoinderError], fact: str) -> None:
    with pytest.raises(error) as raised:
        flow(SOURCES, f"SELECT o.id, r.rate FROM orders o {join}", parallelism=2)
    assert fact in raised.value.fact and raised.value.detail and raised.value.hint
