"""Hot backups: what is restored is a committed epoch, whatever the flow did meanwhile, and sinks go on from it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.engine.backup import backup, refs_of
from rejoinder.engine.content import named_files
from rejoinder.errors import Corrupt, DefinitionConflict, NotCommitted, SinkFailed
from rejoinder.store.newest import latest
from rejoinder.store.objects import ObjectStore, open_store
from rejoinder.testing import Driver
from tests.unit.engine.test_sink_progress import in_files, in_view, insert, opened


def copy(folder: Path, name: str = "copy") -> int:
    return backup(open_store(str(folder / "s")), open_store(str(folder / name))).epoch


def test_a_backup_is_a_state(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), *range(5))
    assert copy(tmp_path) == 4
    shutil.copytree(tmp_path / "out", tmp_path / "out_copy")
    insert(opened(tmp_path / "s", tmp_path / "out", []), 5, 6)
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out_copy").rename(tmp_path / "out")
    called: list[int] = []
    driver = opened(tmp_path / "copy", tmp_path / "out", called)
    assert driver.epoch == 4 and in_view(driver) == [0, 1, 2, 3, 4]
    insert(driver, 7, 8)
    assert in_view(driver) == in_files(tmp_path / "out") == [0, 1, 2, 3, 4, 7, 8]
    assert called == [7, 8], "the note of what sinks have taken comes along"


def test_a_state_is_not_copied_onto_itself(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 1)
    with pytest.raises(DefinitionConflict, match="is the state itself"):
        copy(tmp_path, "s")


def test_sinks_that_are_not_restored_are_ahead(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), *range(5))
    copy(tmp_path)
    insert(opened(tmp_path / "s", tmp_path / "out", []), 5, 6)
    driver = opened(tmp_path / "copy", tmp_path / "out", [])
    with pytest.raises(SinkFailed, match=r"has epoch 6, and the flow is at epoch 4[\s\S]*Hint: restore the sink"):
        driver.step()
    driver.sql("DROP SINK v_parquet")
    driver.sink("v", "parquet", path=tmp_path / "elsewhere")
    insert(driver, 7)
    assert in_files(tmp_path / "elsewhere") == [0, 1, 2, 3, 4, 7]


def test_a_backup_while_the_flow_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are dropped while they are copied: the copy goes on with a newer manifest."""
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, *range(20))
    copied: list[int] = []
    read = ObjectStore.map

    def slow(self: ObjectStore, name: str, size: int) -> object:
        if "/s" in self.url and len(copied) < 3 and threading.current_thread() is threading.main_thread():
            copied.append(len(copied))
            start = driver.epoch + 1
            with monkeypatch.context() as patch:
                patch.setattr(ObjectStore, "map", read)
                insert(driver, *range(start, start + 12))
        return read(self, name, size)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "map", slow)
        epoch = copy(tmp_path)
    assert len(copied) == 3 and epoch == driver.epoch == 55
    restored = Driver(store=tmp_path / "copy")
    assert in_view(restored) == list(range(56))
    store = open_store(str(tmp_path / "copy"))
    manifest = latest(store)
    assert manifest is not None
    left = {name for name in store.list() if name.startswith(("runs/", "epochs/", "positions/"))}
    assert left == {ref.name for ref in refs_of(manifest)} == named_files(manifest) & left


def test_a_second_backup_copies_what_is_new(tmp_path: Path) -> None:
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, *range(10))
    stores = open_store(str(tmp_path / "s")), open_store(str(tmp_path / "copy"))
    first = backup(*stores)
    assert backup(*stores).copied == 0
    insert(driver, 10)
    second = backup(*stores)
    assert 0 < second.copied < first.copied and second.epoch == 10
    assert in_view(Driver(store=tmp_path / "copy")) == list(range(11))


def test_damage_is_not_copied_and_is_repaired_in_the_copy(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0, 1, 2)
    copy(tmp_path)
    manifest = latest(open_store(str(tmp_path / "s")))
    assert manifest is not None
    name = refs_of(manifest)[0].name
    whole = (tmp_path / "s" / name).read_bytes()
    (tmp_path / "copy" / name).write_bytes(whole[:-1] + b"x")
    copy(tmp_path)
    assert (tmp_path / "copy" / name).read_bytes() == whole
    (tmp_path / "s" / name).write_bytes(whole[:-1] + b"x")
    with pytest.raises(Corrupt, match="fails its checksum and cannot be copied"):
        copy(tmp_path, "other")
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1, 2]


def test_an_interrupted_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0, 1, 2)
    put, count = ObjectStore.put, iter(range(100))

    def failing(self: ObjectStore, name: str, data: bytes) -> None:
        if next(count) == 2:
            raise KeyboardInterrupt
        put(self, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "put", failing)
        with pytest.raises(KeyboardInterrupt):
            copy(tmp_path)
    assert not (tmp_path / "copy/manifests").exists()
    copy(tmp_path)
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1, 2]


def test_a_copy_that_has_lost_its_hint_is_whole(tmp_path: Path) -> None:
    """It holds one manifest, which says that older ones are retained: they are not lost, they were never there."""
    insert(opened(tmp_path / "s", tmp_path / "out", []), *range(12))
    copy(tmp_path)
    (tmp_path / "copy/manifests/latest").unlink()
    driver = opened(tmp_path / "copy", tmp_path / "out", [])
    assert in_view(driver) == list(range(12))
    insert(driver, 12)
    (tmp_path / "copy/manifests/latest").unlink()
    assert in_view(Driver(store=tmp_path / "copy")) == list(range(13))


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotCommitted, match="there is no state"):
        copy(tmp_path)
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0)
    insert(opened(tmp_path / "another", tmp_path / "out2", []), 0)
    with pytest.raises(DefinitionConflict, match="neither empty nor a backup of this flow"):
        copy(tmp_path, "another")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("x")
    with pytest.raises(DefinitionConflict, match="neither empty nor a backup of this flow"):
        copy(tmp_path, "full")


def test_the_command(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0, 1)
    result = CliRunner().invoke(app, ["backup", str(tmp_path / "s"), str(tmp_path / "copy")])
    assert result.exit_code == 0 and "epoch 1" in result.output
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1]
