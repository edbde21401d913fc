"""Hot backups: what is restored is a committed epoch, whatever the flow did meanwhile, and sinks go on from it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.engine.maintenance.backup import backup, refs_of
from rejoinder.engine.maintenance.backup_targets import check_place
from rejoinder.engine.version import named_files
from rejoinder.errors import Corrupt, DefinitionConflict, NotCommitted, SinkFailed
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.testing import Driver
from tests.features.sinks.test_sink_progress import in_files, in_view, insert, opened


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
    assert called == [7, 8], "the progress file of the sinks is copied"


SPELLINGS = (
    "s",
    "s/",
    "./s",
    "copy/../s",
    "s/../s",
    "s/.",
    "link",
    "link/../s",
    "file://s",
    "file:///../s",
    "relative",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_state_is_not_copied_onto_itself(tmp_path: Path, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 1)
    (tmp_path / "link").symlink_to(tmp_path / "s")
    (tmp_path / "copy").mkdir()
    monkeypatch.chdir(tmp_path)
    place = {
        "relative": "s",
        "file://s": f"file://{tmp_path}/s",
        "file:///../s": f"file://{tmp_path}/copy/../s",
    }.get(spelling, f"{tmp_path}/{spelling}")
    before = in_folder(tmp_path / "s")
    for source, target in ((str(tmp_path / "s"), place), (place, str(tmp_path / "s"))):
        with pytest.raises(DefinitionConflict, match="is the state itself"):
            backup(open_store(source), open_store(target))
    assert in_folder(tmp_path / "s") == before


@pytest.mark.parametrize(
    ("source", "target", "where"),
    [
        ("s", "s/copy", "inside the state"),
        ("s", "link/copy/of", "inside the state"),
        ("s", ".", "around the state"),
        ("link", "../around", "around the state"),
    ],
)
def test_a_state_is_not_copied_into_itself_or_around_itself(
    tmp_path: Path, source: str, target: str, where: str
) -> None:
    folder = tmp_path / "around"
    insert(opened(folder / "s", tmp_path / "out", []), 1)
    (folder / "link").symlink_to(folder / "s")
    before = in_folder(folder)
    with pytest.raises(DefinitionConflict, match=where):
        backup(open_store(str(folder / source)), open_store(str(folder / target)))
    assert in_folder(folder) == before


def test_places_whose_names_begin_alike_are_apart(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 1)
    assert copy(tmp_path, "s2") == 0


@pytest.mark.parametrize(
    ("source", "target", "where"),
    [
        ("s3://bucket/s", "s3://bucket//s/", "is the state itself"),
        ("s3://bucket/s", "s3://bucket/s/copy", "inside the state"),
        ("s3://bucket/s", "s3://bucket", "around the state"),
        ("memory://s", "memory://s", "is the state itself"),
    ],
)
def test_places_that_are_not_folders_are_compared_too(source: str, target: str, where: str) -> None:
    with pytest.raises(DefinitionConflict, match=where):
        check_place(open_store(source), open_store(target))
    check_place(open_store("s3://bucket/s"), open_store("s3://bucket/s2"))
    check_place(open_store("memory://s"), open_store("memory://s/2"))


def test_an_older_state_is_not_copied_over_a_newer_backup(tmp_path: Path) -> None:
    """It would be a newer manifest without its files."""
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, 0, 1)
    shutil.copytree(tmp_path / "s", tmp_path / "old")
    insert(driver, *range(2, 12))
    copy(tmp_path)
    before = in_folder(tmp_path / "copy")
    with pytest.raises(DefinitionConflict, match=r"holds a newer backup of this flow\s.*\(epoch 11\).*epoch 1\)"):
        backup(open_store(str(tmp_path / "old")), open_store(str(tmp_path / "copy")))
    assert in_folder(tmp_path / "copy") == before
    assert in_view(Driver(store=tmp_path / "copy")) == list(range(12))


def test_two_histories_of_a_flow_are_two_backups(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0, 1)
    for name in ("one", "two"):
        shutil.copytree(tmp_path / "s", tmp_path / name)
        shutil.copytree(tmp_path / "out", tmp_path / f"out_{name}")
        driver = Driver(store=tmp_path / name)
        driver.sql("DROP SINK v_parquet; DROP SINK f")
        insert(driver, 2)
    backup(open_store(str(tmp_path / "one")), open_store(str(tmp_path / "copy")))
    with pytest.raises(DefinitionConflict, match="holds a backup of another history of this flow"):
        backup(open_store(str(tmp_path / "two")), open_store(str(tmp_path / "copy")))


def test_a_slow_backup_does_not_spoil_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, *range(3))
    put, is_first = ObjectStore.put, iter([True])

    def slow(self: ObjectStore, name: str, data: bytes) -> None:
        if "/copy" in self.url and next(is_first, False):
            insert(driver, 3)
            copy(tmp_path)
        put(self, name, data)

    monkeypatch.setattr(ObjectStore, "put", slow)
    with pytest.raises(DefinitionConflict, match="holds a newer backup of this flow"):
        copy(tmp_path)
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1, 2, 3]


def in_folder(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


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


def test_rows_that_are_read_and_vacuumed_meanwhile_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch that reads them may come after the one that is copied."""
    insert(opened(tmp_path / "s", tmp_path / "out", []), *range(3))
    rows = tmp_path / "s/inbox/0123456789abcdef" / f"{1:020d}-00000000.arrow"
    rows.parent.mkdir(parents=True)
    rows.write_bytes(b"rows")
    read = ObjectStore.map

    def meanwhile(self: ObjectStore, name: str, size: int) -> object:
        rows.unlink(missing_ok=True)
        return read(self, name, size)

    monkeypatch.setattr(ObjectStore, "map", meanwhile)
    copy(tmp_path)
    assert not rows.exists()
    assert (tmp_path / "copy" / rows.relative_to(tmp_path / "s")).read_bytes() == b"rows"


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
    with pytest.raises(Corrupt, match="an object to copy fails its checksum"):
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


def test_two_interrupted_backups_leave_the_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is interrupted before it writes the hint, the second one before it writes the manifest."""
    put = ObjectStore.put

    def copy_until(end: str) -> None:
        def failing(self: ObjectStore, name: str, data: bytes) -> None:
            if name.startswith("manifests/") and name.endswith(end):
                raise KeyboardInterrupt
            put(self, name, data)

        with monkeypatch.context() as patch:
            patch.setattr(ObjectStore, "put", failing)
            with pytest.raises(KeyboardInterrupt):
                copy(tmp_path)

    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, 0, 1, 2)
    copy_until("latest")
    insert(driver, 3, 4)
    copy_until(".json")
    assert [path.name for path in (tmp_path / "copy/sinks").iterdir()] == [f"{5:020}.json"], "of the first one"
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1, 2]
    copy(tmp_path)
    assert in_view(Driver(store=tmp_path / "copy")) == [0, 1, 2, 3, 4]


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
