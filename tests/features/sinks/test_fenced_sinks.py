"""A driver that was replaced and wakes up in the middle of a delivery does no harm to the sink of the live one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from rejoinder import errors
from rejoinder.connectors.delivery import Delivery
from rejoinder.connectors.files import target as file_sink
from rejoinder.engine.engine import Engine
from rejoinder.store.runs.run import drop_open_runs
from rejoinder.testing import Driver


class Asleep(BaseException):
    """The driver stops here for now."""


def opened(tmp_path: Path) -> Driver:
    driver = Driver(store=tmp_path / "state")
    if driver.epoch < 0:
        driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
        driver.sink("v", "parquet", path=tmp_path / "out")
        insert(driver, 0)
    return driver


def insert(driver: Driver, value: int) -> None:
    driver.insert("t", {"a": value})
    driver.step()


def asleep_before_delivery(driver: Driver, value: int) -> Callable[[], None]:
    """Let a driver commit an epoch and sleep before its delivery; what is returned wakes it."""
    deliver, calls = driver._outbox.deliver, list[int]()

    def sleep() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Asleep
        deliver()

    driver._outbox.deliver = sleep  # type: ignore[method-assign]
    with pytest.raises(Asleep):
        insert(driver, value)
    return deliver


def delivered(tmp_path: Path) -> list[int]:
    tables = [pq.read_table(path) for path in (tmp_path / "out").glob("*.parquet")]
    return sorted(value for table in tables for value in table.column("a").to_pylist())


def progress(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / "_rejoinder" / "progress.json").read_text())
    return found


def test_a_driver_that_wakes_before_its_delivery_is_fenced(tmp_path: Path) -> None:
    wake = asleep_before_delivery(opened(tmp_path), 1)
    live = opened(tmp_path)
    insert(live, 2)
    with pytest.raises(errors.Fenced):
        wake()
    insert(live, 3)
    assert delivered(tmp_path) == [0, 1, 2, 3] and progress(tmp_path)["epoch"] == 3


def test_a_driver_that_wakes_after_the_changes_were_collected_is_fenced(tmp_path: Path) -> None:
    """It is not raised that the state is damaged: whoever took over has collected what it reads."""
    opened(tmp_path)
    wake = asleep_before_delivery(Driver(store=tmp_path / "state", history=1), 1)
    live = Driver(store=tmp_path / "state", history=1)
    for value in range(2, 26):  # until runs are merged
        insert(live, value)
    drop_open_runs(live._store)  # what this process has mapped would still be there
    with pytest.raises(errors.Fenced):
        wake()
    assert delivered(tmp_path) == list(range(26))


def test_a_driver_that_wakes_while_the_live_one_delivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wake = asleep_before_delivery(opened(tmp_path), 1)
    live = opened(tmp_path)
    write, woken = file_sink.WriteFile.__call__, list[errors.RejoinderError]()

    def staged(self: file_sink.WriteFile, number: int, chunks: Any) -> str:
        name = write(self, number, chunks)
        if live.epoch == 2 and not woken:
            with pytest.raises(errors.Fenced) as raised:
                wake()
            woken.append(raised.value)
        return name

    monkeypatch.setattr(file_sink.WriteFile, "__call__", staged)
    insert(live, 2)
    assert woken and delivered(tmp_path) == [0, 1, 2]
    assert progress(tmp_path)["epoch"] == 2 and progress(tmp_path)["writer"] == 1


@pytest.mark.parametrize("when", ["before the moves", "between the moves", "before the note"])
def test_a_driver_that_wakes_after_its_last_look_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It has looked at the manifests, and then sleeps: what it does next is a rename from a folder that is gone."""
    first = opened(tmp_path)
    publish, live = file_sink.FilesTarget._publish, list[Driver]()
    extra = tmp_path / "out" / "epoch-0000000001-0001.parquet"

    def sleep_then_publish(
        self: file_sink.FilesTarget, filesystem: Any, staged: str, written: list[str], delivery: Delivery
    ) -> None:
        monkeypatch.setattr(file_sink.FilesTarget, "_publish", publish)
        if when == "between the moves":
            filesystem.move(f"{staged}/{written[0]}", str(tmp_path / "out" / "epoch-0000000001-0000.parquet"))
        if when == "before the note":
            filesystem.move(f"{staged}/{written[0]}", str(extra))  # of an attempt that had more parts
        live.append(opened(tmp_path))
        insert(live[0], 2)
        publish(self, filesystem, staged, written, delivery)

    monkeypatch.setattr(file_sink.FilesTarget, "_publish", sleep_then_publish)
    with pytest.raises((errors.Fenced, errors.SinkFailed)):
        insert(first, 1)
    assert delivered(tmp_path) == [0, 1, 2] and progress(tmp_path)["epoch"] == 2
    insert(live[0], 3)
    assert delivered(tmp_path) == [0, 1, 2, 3] and not extra.exists()
    assert not list((tmp_path / "out" / "_rejoinder").glob("staged-*"))


def test_a_new_driver_takes_over_before_it_delivers_what_is_left(tmp_path: Path) -> None:
    """Otherwise two drivers would deliver the same epoch, and both would think that nobody else does."""
    first = opened(tmp_path)
    asleep_before_delivery(first, 1)
    second = Driver(store=tmp_path / "state")
    second._outbox.deliver()
    assert second._engine.version.manifest is not None and first._engine.version.manifest is not None
    assert second._engine.version.manifest.version == first._engine.version.manifest.version + 1
    assert delivered(tmp_path) == [0, 1] and progress(tmp_path)["writer"] == 1
    second._outbox.deliver()
    with pytest.raises(errors.Fenced):
        first._engine.check_fence()


def test_a_function_is_not_called_by_a_driver_that_was_replaced(tmp_path: Path) -> None:
    calls: list[tuple[str, int]] = []

    def declared(name: str) -> Driver:
        driver = Driver(store=tmp_path / "state")
        if driver.epoch < 0:
            driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")

        def note(epoch: int, _: pa.Table) -> None:
            calls.append((name, epoch))

        driver.foreach_epoch("v", note)
        return driver

    first = declared("first")
    wake = asleep_before_delivery(first, 0)
    second = declared("second")
    insert(second, 1)
    with pytest.raises(errors.Fenced):
        wake()
    assert calls == [("second", 0), ("second", 1)]


def test_a_driver_that_is_replaced_right_after_it_took_over_delivers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit by which it takes over is not the last look at the fence."""
    calls: list[str] = []

    def declared(name: str) -> Driver:
        driver = Driver(store=tmp_path / "state")
        if driver.epoch < 0:
            driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
        driver.foreach_epoch("v", lambda _, __: calls.append(name))
        return driver

    asleep_before_delivery(declared("first"), 0)
    second, commit = declared("second"), Engine._commit

    def commit_then_sleep(self: Engine, *given: Any, **named: Any) -> None:
        monkeypatch.undo()
        commit(self, *given, **named)
        declared("third")._engine.claim()

    monkeypatch.setattr(Engine, "_commit", commit_then_sleep)
    with pytest.raises(errors.Fenced):
        second._outbox.deliver()
    assert calls == []


def test_the_hint_for_a_replaced_driver_is_not_to_restore_the_sink(tmp_path: Path) -> None:
    """The live driver has delivered more than the replaced one has committed: the state is not older than the sink."""
    live = opened(tmp_path)
    replaced = opened(tmp_path)
    insert(live, 1)
    with pytest.raises(errors.Fenced):
        replaced._outbox.deliver()


def test_the_error_of_a_replaced_driver_does_not_blame_its_sink(tmp_path: Path) -> None:
    """The live driver has defined the same sink since: the folder has an owner that the replaced one does not know."""
    replaced = Driver(store=tmp_path / "state")
    replaced.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    live = Driver(store=tmp_path / "state")
    live.sink("v", "parquet", path=tmp_path / "out")
    insert(live, 1)
    with pytest.raises(errors.Fenced):
        replaced.sink("v", "parquet", path=tmp_path / "out")


@pytest.mark.parametrize("place", ["clears", "ends"])
def test_two_drivers_that_clear_the_same_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """What is to be removed may be gone by then: that is not a failure of the sink."""
    driver = opened(tmp_path)
    left = tmp_path / "out/_rejoinder/staged-0000000000-left"
    left.mkdir()
    delete = pafs.LocalFileSystem.delete_dir
    calls: list[str] = []

    class Racing:
        """A file system in which somebody else removes a folder first."""

        def __getattr__(self, name: str) -> Any:
            return getattr(pafs.LocalFileSystem(), name)

        def delete_dir(self, path: str) -> None:
            calls.append(path)
            if ("left" in path) == (place == "clears"):
                delete(pafs.LocalFileSystem(), path)
            delete(pafs.LocalFileSystem(), path)

    monkeypatch.setattr(file_sink, "open_path", lambda path: (Racing(), path))
    insert(driver, 1)
    assert delivered(tmp_path) == [0, 1] and calls and not list((tmp_path / "out/_rejoinder").glob("staged-*"))


def test_staged_files_from_before_a_restore_are_removed(tmp_path: Path) -> None:
    """A restored state has an earlier writer than files that were staged after the backup; found by seed 500000717."""
    driver = opened(tmp_path)
    (tmp_path / "out/_rejoinder/staged-0000000099-left").mkdir()
    insert(driver, 1)
    assert delivered(tmp_path) == [0, 1] and not list((tmp_path / "out/_rejoinder").glob("staged-*"))
