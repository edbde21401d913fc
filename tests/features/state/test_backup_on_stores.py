"""Backups between disks and S3, while epochs run and old files are collected; what is restored goes on exactly once."""

from __future__ import annotations

import shutil
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from rejoinder.engine.maintenance.backup import backup
from rejoinder.errors import SinkFailed
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore, Option, open_store
from rejoinder.testing import Driver
from tests.features.sinks.test_sink_progress import in_files, in_view, insert


class Places:
    """Stores of two kinds that know each other's names."""

    def __init__(self, folder: Path, s3: ObjectStore, options: dict[str, Option]) -> None:
        self.folder, self.s3, self.options = folder, s3, options

    def store(self, kind: str) -> ObjectStore:
        name = uuid.uuid4().hex
        if kind == "disk":
            return open_store(str(self.folder / name))
        return open_store(f"{self.s3.url}/{name}", **self.options)

    def opened(self, store: ObjectStore, called: list[int]) -> Driver:
        options: dict[str, Any] = {} if store.is_local else self.options
        driver = Driver(store=store.url, **options)
        driver.sql("CREATE STREAM IF NOT EXISTS t (a BIGINT); CREATE VIEW IF NOT EXISTS v AS SELECT a FROM t")
        driver.sink("v", "parquet", path=self.folder / "out")
        driver.foreach_epoch("v", lambda _, changes: called.extend(changes.column("a").to_pylist()), name="f")
        return driver


@pytest.fixture
def places(tmp_path: Path, s3_store: ObjectStore, s3_options: dict[str, Option]) -> Places:
    return Places(tmp_path, s3_store, s3_options)


@pytest.mark.parametrize(("source", "target"), [("disk", "s3"), ("s3", "disk"), ("s3", "s3")])
def test_a_backup_is_restored_with_its_sink(places: Places, source: str, target: str) -> None:
    state, copy = places.store(source), places.store(target)
    driver = places.opened(state, [])
    insert(driver, *range(10))
    assert backup(state, copy).epoch == 9
    insert(driver, 10)
    again = backup(state, copy)
    assert again.epoch == 10 and 0 < again.copied < again.objects
    shutil.copytree(places.folder / "out", places.folder / "kept")
    insert(driver, 11, 12)
    with pytest.raises(SinkFailed, match="has epoch 12, and the flow is at epoch 10"):
        insert(places.opened(copy, []), 20)
    shutil.rmtree(places.folder / "out")
    (places.folder / "kept").rename(places.folder / "out")
    called: list[int] = []
    restored = places.opened(copy, called)
    insert(restored, 20, 21)
    assert in_view(restored) == in_files(places.folder / "out") == [*range(11), 20, 21]
    assert called[-2:] == [20, 21] and len(called) <= 3, "a sink without a memory may get the last epoch once more"


@pytest.mark.parametrize(("source", "target"), [("disk", "disk"), ("disk", "s3"), ("s3", "disk")])
def test_hot_backups_beside_epochs_and_their_collection(places: Places, source: str, target: str) -> None:
    state, copy = places.store(source), places.store(target)
    driver = places.opened(state, [])
    insert(driver, 0)
    is_done = threading.Event()

    def run() -> None:
        for number in range(1, 1000):
            if is_done.is_set():
                return
            insert(driver, number)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        epochs: list[int] = []
        while len(epochs) < 3 or driver.epoch < 20:
            epochs.append(backup(state, copy).epoch)
            options: dict[str, Any] = {} if copy.is_local else places.options
            assert in_view(Driver(store=copy.url, **options)) == list(range(epochs[-1] + 1))
    finally:
        is_done.set()
        thread.join()
    assert epochs == sorted(epochs) and epochs[-1] > 0
    manifest = latest(copy)
    assert manifest is not None and manifest.epoch == epochs[-1]
    assert len([name for name in copy.list("manifests") if name.endswith(".json")]) == 1
    assert in_view(driver) == in_files(places.folder / "out") == list(range(driver.epoch + 1))


def test_a_damaged_copy_in_the_cache_of_this_host_is_fetched_again(places: Places) -> None:
    state, copy = places.store("s3"), places.store("disk")
    insert(places.opened(state, []), 0, 1, 2)
    for path in Path(str(places.options["cache_dir"])).rglob("*.arrow"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    backup(open_store(state.url, **places.options), copy)
    assert in_view(Driver(store=copy.url)) == [0, 1, 2]
