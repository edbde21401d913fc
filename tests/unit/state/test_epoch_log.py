"""The epoch log: what an entry keeps, how many there are, and the parts that only the next commit knows."""

from __future__ import annotations

from pathlib import Path

from rejoinder.engine.version import Version
from rejoinder.planner import plan
from rejoinder.state.epoch_log import ENTRIES, NAMES, OTHERS, EpochEntry, EpochLog, largest
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver


def test_an_entry_survives_the_manifest() -> None:
    entry = EpochEntry(3, 5, {"rounds": 7, "sinks": 1}, {"s": 2}, {"v": 1}, 10, 20, 1, None)
    log = EpochLog((entry,))
    assert EpochLog.from_json(log.to_json()) == log
    assert entry.milliseconds == 8


def test_the_log_keeps_the_last_epochs() -> None:
    log = EpochLog()
    for epoch in range(ENTRIES + 5):
        log = log.after(EpochEntry(epoch, epoch))
    assert [entry.epoch for entry in log.entries] == list(range(5, ENTRIES + 5))


def test_the_next_commit_adds_the_parts_after_the_manifest() -> None:
    log = EpochLog((EpochEntry(0, 0, {"rounds": 2}),)).with_parts({"commit": 0.0042})
    assert log.entries[0].parts == {"rounds": 2, "commit": 4}
    assert EpochLog().with_parts({"commit": 1.0}) == EpochLog()


def test_an_entry_names_only_the_largest() -> None:
    counts = largest({f"v{number}": number for number in range(NAMES + 3)})
    assert len(counts) == NAMES + 1
    assert counts[OTHERS] == 0 + 1 + 2
    assert sum(counts.values()) == sum(range(NAMES + 3))


def test_a_stopped_flow_has_its_log(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path)
    driver.sql("CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT k FROM s WHERE k > 0")
    for number in range(3):
        driver.insert("s", {"k": number})
        driver.step()
    store = open_store(str(tmp_path))
    log = Version.read(store, latest(store), 1, plan).log
    assert [entry.epoch for entry in log.entries] == [0, 1, 2]
    assert [entry.rows_in for entry in log.entries] == [{"s": 1}] * 3
    assert [entry.rows_out for entry in log.entries] == [{}, {"v": 1}, {"v": 1}]
    assert "commit" in log.entries[1].parts and "commit" not in log.entries[2].parts


def test_a_clock_of_the_caller_has_no_durations(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path, clock=lambda: 5)
    driver.sql("CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT k FROM s")
    driver.insert("s", {"k": 1})
    driver.step()
    store = open_store(str(tmp_path))
    assert Version.read(store, latest(store), 1, plan).log.entries[0].parts == {}
