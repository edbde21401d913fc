"""SUBSCRIBE: a subscription has every change once, from any process, from now or from an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoinder.engine.queries.subscription import Subscription
from rejoinder.errors import InvalidSql, NotCommitted, UnknownName, Unsupported
from rejoinder.runtime.steps import emit
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from tests.kit import flow

VIEW = "CREATE CHANGELOG a (k INT, s STRING); CREATE VIEW v AS SELECT k, s FROM a"


def stepped(driver: Driver, *ks: int) -> None:
    for k in ks:
        driver.insert("a", {"k": k, "s": "even" if k % 2 == 0 else "odd"})
        driver.step(at=1000 * k)


def polled(subscription: Subscription) -> list[tuple[int, int, int]]:
    return [(changes.epoch, row["k"], diff) for changes in subscription.poll() for row, diff in changes.rows]


def test_every_change_is_seen_once() -> None:
    driver = flow(VIEW)
    stepped(driver, 0)
    subscription = driver.subscribe("V")
    assert subscription.view == "v" and subscription.poll() == []
    stepped(driver, 1, 2)
    driver.delete("a", {"k": 1, "s": "odd"})
    driver.step()
    assert polled(subscription) == [(1, 1, 1), (2, 2, 1), (3, 1, -1)]
    assert subscription.poll() == []


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("FROM 1", [(1, 1, 1), (2, 2, 1)]),
        ("AS OF 1", [(1, 0, 1), (1, 1, 1), (2, 2, 1)]),
        ("FROM 0 WHERE s = 'even'", [(0, 0, 1), (2, 2, 1)]),
        ("WHERE k > 0 AND s IS NOT NULL FROM 0", [(1, 1, 1), (2, 2, 1)]),
        ("WHERE k IS DISTINCT FROM 1 AS OF 1", [(1, 0, 1), (2, 2, 1)]),
    ],
)
def test_it_starts_at_an_epoch(clause: str, expected: list[tuple[int, int, int]]) -> None:
    driver = flow(VIEW)
    stepped(driver, 0, 1, 2)
    assert polled(driver.sql(f"SUBSCRIBE v {clause}")) == expected


def test_a_condition_may_end_in_distinct_from_a_number() -> None:
    driver = flow(VIEW)
    stepped(driver, 0)
    subscription = driver.sql("SUBSCRIBE TO v WHERE k IS DISTINCT FROM 1")
    stepped(driver, 1, 2)
    assert polled(subscription) == [(2, 2, 1)]


def test_another_process_follows_a_state_that_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "CHANGELOG_FAN", 2)
    driver = flow(VIEW, store=tmp_path / "state")
    subscription = Subscription(open_store(str(tmp_path / "state")), "v", start=0)
    seen = []
    for k in range(130):
        stepped(driver, k)
        if k % 50 == 0 or k == 129:
            while changes := subscription.poll():
                seen += [row["k"] for entry in changes for row, _ in entry.rows]
    assert seen == list(range(130))


def test_a_history_that_has_passed_is_an_error() -> None:
    driver = flow(VIEW, history=2)
    stepped(driver, 0)
    subscription = driver.subscribe("v")
    stepped(driver, *range(1, 6))
    with pytest.raises(NotCommitted, match="the changes of `v` after epoch 0 are no longer kept"):
        subscription.poll()
    with pytest.raises(NotCommitted, match="cannot be read as of epoch 0"):
        driver.subscribe("v", start=0)


def test_a_dropped_or_replaced_view_says_so() -> None:
    driver = flow(VIEW)
    stepped(driver, 0)
    first = driver.subscribe("v")
    stepped(driver, 1)
    driver.sql("CREATE OR REPLACE VIEW v AS SELECT k FROM a")
    with pytest.raises(UnknownName, match="`v` was replaced while it was followed"):
        first.poll()
    second = driver.subscribe("v")
    driver.drop("v")
    with pytest.raises(UnknownName, match="`v` was dropped while it was followed"):
        second.poll()


@pytest.mark.parametrize(
    ("text", "error", "fact"),
    [
        ("SUBSCRIBE w", UnknownName, "there is no relation `w`"),
        ("SUBSCRIBE a", UnknownName, "`a` is a source: only a view can be followed"),
        ("SUBSCRIBE v WHERE z = 1", UnknownName, "z"),
        ("SUBSCRIBE v WHERE k IN (SELECT 1)", Unsupported, "condition is not supported here"),
        ("SUBSCRIBE v FROM now", InvalidSql, "`now` is not the number of an epoch"),
        ("SUBSCRIBE v FROM 99", None, ""),
        ("SUBSCRIBE v AS OF 99", NotCommitted, "epoch 99 is not committed yet"),
        ("SUBSCRIBE v LIMIT 3", InvalidSql, "expected `WHERE`"),
    ],
)
def test_bad_subscriptions(text: str, error: Any, fact: str) -> None:
    driver = flow(VIEW)
    stepped(driver, 0)
    if error is None:  # a later epoch is waited for
        assert driver.sql(text).poll() == []
        return
    with pytest.raises(error) as refused:
        driver.sql(text)
    assert fact in refused.value.fact + (refused.value.detail or "")
