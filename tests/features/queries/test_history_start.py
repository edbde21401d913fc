"""Renderings that reach beyond the history begin with the content at its first epoch, and say so."""

from __future__ import annotations

import warnings

import pytest

from rejoinder.engine.queries.view_serving import Serving
from rejoinder.errors import NotCommitted
from rejoinder.testing import Driver

NOTE = "history of `v` starts at epoch 3"


@pytest.fixture
def driver() -> Driver:
    driver = Driver(history=2)
    driver.sql("CREATE TABLE s (k INT, n INT, PRIMARY KEY (k)); CREATE VIEW v AS SELECT k, n FROM s")
    for epoch in range(6):
        driver.insert("s", {"k": epoch % 2, "n": epoch})
        driver.step(at=epoch * 60_000)
    return driver


CONTENT = [(0, 2, 3, False), (1, 3, 3, False)]
LATER = [(0, 2, 4, True), (0, 4, 4, False), (1, 3, 5, True), (1, 5, 5, False)]


@pytest.mark.parametrize("query", ["* FROM v", "k, n FROM v WHERE n >= 0"])
def test_a_stream_begins_with_the_content_at_the_first_epoch(driver: Driver, query: str) -> None:
    with pytest.warns(UserWarning, match=NOTE):
        rows = driver.sql(f"SELECT STREAM {query}")
    assert [(row["k"], row["n"], row["_epoch"], row["_undo"]) for row in rows] == CONTENT + LATER


def test_a_stream_of_an_aggregate_begins_with_its_value_then(driver: Driver) -> None:
    with pytest.warns(UserWarning, match=NOTE):
        rows = driver.sql("SELECT STREAM count(*) AS c, max(n) AS n FROM v")
    assert [(row["n"], row["_epoch"], row["_undo"]) for row in rows][:2] == [(3, 3, False), (3, 4, True)]


@pytest.mark.parametrize("query", ["* FROM v", "k, n FROM v WHERE n >= 0"])
def test_a_tvr_does_not_claim_to_know_the_beginning(driver: Driver, query: str) -> None:
    with pytest.warns(UserWarning, match=NOTE):
        snapshots = driver.sql(f"SELECT TVR {query}")
    assert [snapshot.epoch for snapshot in snapshots] == [3, 4, 5]
    assert snapshots[0].rows == [{"k": 0, "n": 2}, {"k": 1, "n": 3}]
    assert snapshots[0].since is not None


def test_methods_of_the_driver_say_so_too(driver: Driver) -> None:
    with pytest.warns(UserWarning, match=NOTE):
        assert len(driver.stream("v")) == len(CONTENT + LATER)
    with pytest.warns(UserWarning, match=NOTE):
        assert driver.tvr("v")[0].epoch == 3


def test_readers_of_changes_get_the_content_first(driver: Driver) -> None:
    serving, options = Serving(driver._store), {"view": "v", "what": "changes"}
    (part,) = serving.partitions(options, {})
    (batch,) = serving.read(options, part)
    rows = [(row["k"], row["n"], row["_epoch"], row["_undo"]) for row in batch.to_pylist()]
    assert sorted(rows[:2]) == CONTENT
    assert rows[2:] == LATER


def test_an_epoch_before_the_history_is_refused(driver: Driver) -> None:
    with pytest.raises(NotCommitted, match="cannot be read as of epoch 2"):
        driver.table("v", as_of=2)
    assert driver.table("v", as_of=3) == [{"k": 0, "n": 2}, {"k": 1, "n": 3}]


def test_a_view_that_is_younger_than_the_history_is_complete(driver: Driver) -> None:
    driver.sql("CREATE VIEW w AS SELECT k FROM s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [row["_epoch"] for row in driver.sql("SELECT STREAM * FROM w")] == [5, 5]
        assert driver.sql("SELECT TVR * FROM w")[0].rows == []
