"""Reading: TABLE, STREAM and TVR of one changelog agree with each other, now and as of every epoch that is kept."""

from __future__ import annotations

import itertools
import math
from datetime import datetime

import pytest

from rejoinder.errors import NotCommitted, RejoinderError
from rejoinder.runtime.steps import emit
from rejoinder.store.runs import spine
from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = "CREATE CHANGELOG a (k INT, d DOUBLE); CREATE VIEW v AS SELECT k, d FROM a"


def counted(driver: Driver, epochs: int) -> None:
    """Epoch e inserts row e and takes row e − 2 out."""
    for epoch in range(epochs):
        driver.insert("a", {"k": epoch, "d": 0.5})
        if epoch >= 2:
            driver.delete("a", {"k": epoch - 2, "d": 0.5})
        driver.step(at=1000 * epoch)


def held(epoch: int) -> list[int]:
    return [k for k in (epoch - 1, epoch) if k >= 0]


@pytest.mark.parametrize("parallelism", [1, 7])
def test_every_epoch_can_be_read(parallelism: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "CHANGELOG_FAN", 2)
    monkeypatch.setattr(spine, "SMALLEST_LEVEL_ROWS", 2)
    driver = flow(SOURCES, parallelism=parallelism)
    counted(driver, 30)
    for epoch in range(30):
        assert [row["k"] for row in driver.table("v", as_of=epoch)] == held(epoch)
    assert driver.table("v") == driver.table("v", as_of=29)


@pytest.mark.parametrize("history", [1, 5])
def test_only_the_history_that_was_asked_for_is_kept(history: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "CHANGELOG_FAN", 2)
    driver = flow(SOURCES, history=history)
    counted(driver, 30)
    for epoch in range(29 - history, 30):
        assert [row["k"] for row in driver.table("v", as_of=epoch)] == held(epoch)
    with pytest.raises(NotCommitted) as raised:
        driver.table("v", as_of=28 - history)
    assert raised.value.fact == f"`v` cannot be read as of epoch {28 - history}"
    assert raised.value.detail == f"its history starts at epoch {29 - history}"
    assert raised.value.hint
    with pytest.warns(UserWarning, match=f"starts at epoch {29 - history}"):
        assert len(driver.stream("v")) < 58


def test_an_epoch_that_is_not_there_cannot_be_read() -> None:
    driver = flow(
        SOURCES,
    )
    counted(driver, 2)
    with pytest.raises(NotCommitted, match="epoch 2 is not committed yet"):
        driver.table("v", as_of=2)
    driver.sql("CREATE VIEW later AS SELECT k FROM a")
    with pytest.raises(NotCommitted, match="`later` cannot be read as of epoch 0"):
        driver.table("later", as_of=0)
    assert [row["k"] for row in driver.table("later", as_of=1)] == [0, 1]


def test_the_stream_has_every_change_with_its_time() -> None:
    driver = flow(
        SOURCES,
    )
    driver.insert("a", {"k": 1, "d": 0.5}, {"k": 1, "d": 0.5})
    driver.step(at=datetime(2024, 2, 29, 12))
    driver.delete("a", {"k": 1, "d": 0.5})
    driver.insert("a", {"k": 2, "d": 0.5})
    driver.step(at=datetime(2024, 2, 29, 13))
    noon, one = datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 13)
    shown = [(row["k"], row["_epoch"], row["_emit_time"], row["_undo"]) for row in driver.stream("v")]
    assert shown == [(1, 0, noon, False), (1, 0, noon, False), (1, 1, one, True), (2, 1, one, False)]


def test_the_tvr_is_the_sequence_of_snapshots() -> None:
    driver = flow(
        SOURCES,
    )
    counted(driver, 4)
    driver.step(at=9000)
    snapshots = driver.tvr("v")
    assert [snapshot.epoch for snapshot in snapshots] == [-1, 0, 1, 2, 3]
    assert [[row["k"] for row in s.rows] for s in snapshots] == [[], [0], [0, 1], [1, 2], [2, 3]]
    assert all(before.until == after.since for before, after in itertools.pairwise(snapshots))
    assert snapshots[-1].until is None and snapshots[-1].rows == driver.table("v")


def test_nan_comes_and_goes() -> None:
    driver = flow(
        SOURCES,
    )
    driver.insert("a", {"k": 1, "d": math.nan}, {"k": 1, "d": -0.0})
    driver.step()
    driver.delete("a", {"k": 1, "d": math.nan}, {"k": 1, "d": 0.0})
    driver.step()
    assert driver.table("v") == [] == driver.tvr("v")[-1].rows


def test_rows_come_in_an_order_that_depends_on_the_values_only() -> None:
    rows = [{"k": k, "d": d} for k in (2, None, 1) for d in (math.nan, None, -1.0, math.inf)]
    orders = []
    for listed in (rows, rows[::-1]):
        driver = flow(SOURCES, parallelism=2)
        driver.insert("a", *listed)
        driver.step()
        orders.append(repr(driver.table("v")))
    assert orders[0] == orders[1]
    assert orders[0].startswith(
        "[{'k': None, 'd': None}, {'k': None, 'd': -1.0}, {'k': None, 'd': inf}, {'k': None, 'd': nan}"
    )


def test_views_read_at_one_epoch_belong_together() -> None:
    driver = Driver(parallelism=2)
    driver.sql(
        "CREATE CHANGELOG a (k INT); CREATE VIEW v AS SELECT k FROM a; CREATE VIEW w AS SELECT DISTINCT k FROM v"
    )
    for epoch in range(6):
        driver.insert("a", {"k": epoch}, {"k": epoch})
        driver.step()
    for epoch in range(6):
        v, w = driver.table("v", as_of=epoch), driver.table("w", as_of=epoch)
        assert len(v) == 2 * len(w) == 2 * (epoch + 1)


def test_a_source_or_an_unknown_view_cannot_be_read() -> None:
    driver = flow(
        SOURCES,
    )
    for name in ("a", "vv"):
        for read in (driver.table, driver.stream, driver.tvr):
            with pytest.raises(RejoinderError) as raised:
                read(name)
            assert f"`{name}`" in raised.value.fact and raised.value.hint
