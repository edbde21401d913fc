"""Epochs: all or nothing, once, and the same whatever the number of buckets."""

from __future__ import annotations

import pytest

from rejoinder.errors import Corrupt, MissingRow, NullKey, RejoinderError
from rejoinder.ir.splits import split_batch
from rejoinder.kernels.arrow.sorting import LAST_HASH
from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = """
    CREATE CHANGELOG a (k INT, x INT);
    CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id));
    CREATE VIEW v AS SELECT a.x, t.v FROM a JOIN t ON a.k = t.id
"""


def test_an_epoch_is_committed_once() -> None:
    driver = flow(SOURCES)
    driver.insert("a", {"k": 1, "x": 1})
    driver.step()
    engine = driver._engine
    assert engine.run_epoch(0, [split_batch([])]) is None
    with pytest.raises(Corrupt) as raised:
        engine.run_epoch(7, [split_batch([])])
    assert raised.value.detail and raised.value.hint
    assert driver.epoch == 0


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_an_epoch_that_fails_leaves_everything_as_it_was(parallelism: int) -> None:
    driver = flow(SOURCES, parallelism=parallelism)
    driver.insert("a", {"k": 1, "x": 1})
    driver.insert("t", {"id": 1, "v": "one"})
    driver.step()
    before = driver._engine.version.manifest
    driver.insert("a", {"k": 1, "x": 2})
    driver.delete("a", {"k": 9, "x": 9})
    with pytest.raises(MissingRow):
        driver.step()
    driver.restart()
    driver.insert("t", {"id": None, "v": "nobody"})
    with pytest.raises(NullKey) as raised:
        driver.step()
    assert raised.value.fact == "NULL in the primary key of `t`"
    assert "'v': 'nobody'" in (raised.value.values or "") and raised.value.hint
    driver.restart()
    assert driver._engine.version.manifest == before and driver.table("v") == [{"x": 1, "v": "one"}]
    driver.insert("t", {"id": 1, "v": "ONE"})
    assert driver.step()["v"] == [({"x": 1, "v": "one"}, -1), ({"x": 1, "v": "ONE"}, 1)]


def test_changing_the_number_of_buckets_touches_no_file() -> None:
    driver = flow(SOURCES, parallelism=2)
    for k in range(40):
        driver.insert("a", {"k": k, "x": k})
        driver.insert("t", {"id": k, "v": str(k)})
        driver.step()
    table = driver.table("v")
    for parallelism in (7, 1, 3, 2):
        files = driver._engine.version.state.files()
        driver.restart(parallelism=parallelism)
        assert driver._engine.version.state.files() == files
        assert driver.table("v") == table
        for parts in driver._engine.version.state.arrangements.values():
            assert len(parts) == parallelism
            assert all(0 <= ref.first <= ref.last <= LAST_HASH for part in parts for ref in part.refs)
        driver.delete("t", {"id": parallelism})
        assert driver.step()["v"] == [({"x": parallelism, "v": str(parallelism)}, -1)]
        table = driver.table("v")


def test_progress_counts_rows_and_bytes() -> None:
    driver = flow(SOURCES, parallelism=2)
    driver.insert("a", *({"k": k, "x": k} for k in range(10)))
    driver.insert("t", *({"id": k, "v": str(k)} for k in range(5)))
    driver.step()
    progress = driver._engine.progress[-1]
    assert progress.epoch == 0 and sum(progress.rows_in.values()) == 15 and progress.rows_out == {"v": 5}
    assert progress.bytes_written > progress.state_bytes / 2 > 0


def test_an_epoch_without_input_is_an_epoch() -> None:
    driver = flow(SOURCES)
    assert driver.step() == {"v": []} and driver.step() == {"v": []}
    assert driver.epoch == 1


def test_a_row_that_does_not_fit_is_refused_before_anything_happens() -> None:
    driver = flow(SOURCES)
    driver.insert("a", {"k": "one", "x": 1})
    with pytest.raises(RejoinderError, match="does not fit the columns of `a`"):
        driver.step()
    assert driver.epoch == -1


def test_sources_that_started_over_are_refused() -> None:
    """An epoch of sources that were read from their start again would be taken for one that is committed."""
    driver = Driver()
    driver.sql("CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s")
    for number in range(3):
        driver.insert("s", {"k": number})
        driver.step()
    with pytest.raises(Corrupt, match="the sources are at epoch 0, and the state is at epoch 2"):
        driver._engine.run_epoch(0, [])
    assert driver.epoch == 2 and len(driver.table("v")) == 3
