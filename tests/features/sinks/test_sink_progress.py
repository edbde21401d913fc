"""Progress of sinks belongs to a commit: damage and restored copies neither skip nor double a delivery silently."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rejoinder.connectors.delivery import Delivery
from rejoinder.connectors.files import target as file_sink
from rejoinder.errors import Corrupt, NotCommitted, RejoinderError, SinkFailed
from rejoinder.testing import Driver


def opened(state: Path, files: Path, called: list[int], **options: int) -> Driver:
    driver = Driver(store=state, **options)  # type: ignore[arg-type]
    driver.sql("CREATE STREAM IF NOT EXISTS t (a BIGINT); CREATE VIEW IF NOT EXISTS v AS SELECT a FROM t")
    driver.sink("v", "parquet", path=files)
    driver.foreach_epoch("v", lambda _, changes: called.extend(changes.column("a").to_pylist()), name="f")
    return driver


def insert(driver: Driver, *numbers: int) -> None:
    for number in numbers:
        driver.insert("t", {"a": number})
        driver.step()


def in_files(folder: Path) -> list[int]:
    return sorted(a for file in folder.glob("*.parquet") for a in pq.read_table(file).column("a").to_pylist())


def in_view(driver: Driver) -> list[int]:
    return sorted(row["a"] for row in driver.table("v"))


def test_a_clean_restart_delivers_nothing_twice(tmp_path: Path) -> None:
    called: list[int] = []
    for number in range(12):
        insert(opened(tmp_path / "s", tmp_path / "out", called), number)
    assert called == in_files(tmp_path / "out") == list(range(12))
    assert len(list((tmp_path / "s/sinks").iterdir())) <= 8, "notes go with their manifests"


@pytest.mark.parametrize("position", range(0, 180, 7))
def test_a_flipped_bit_in_a_note_is_named(tmp_path: Path, position: int) -> None:
    """As in `sinks/progress` before, where it made the flow skip epochs."""
    called: list[int] = []
    insert(opened(tmp_path / "s", tmp_path / "out", called), 0, 1, 2)
    note = max((tmp_path / "s/sinks").iterdir())
    data = bytearray(note.read_bytes())
    data[position % len(data)] ^= 4
    note.write_bytes(data)
    with pytest.raises(Corrupt, match=r"the progress file of the sinks is damaged[\s\S]*Hint: restore it"):
        opened(tmp_path / "s", tmp_path / "out", called)
    note.unlink()
    insert(opened(tmp_path / "s", tmp_path / "out", called), 3)
    assert in_files(tmp_path / "out") == [0, 1, 2, 3] and set(called) == {0, 1, 2, 3}


def test_a_note_of_another_commit_is_named(tmp_path: Path) -> None:
    called: list[int] = []
    driver = opened(tmp_path / "s", tmp_path / "out", called)
    insert(driver, 0, 1)
    older = max((tmp_path / "s/sinks").iterdir()).read_bytes()
    insert(driver, 2)
    max((tmp_path / "s/sinks").iterdir()).write_bytes(older)
    with pytest.raises(Corrupt, match="written for another commit"):
        opened(tmp_path / "s", tmp_path / "out", called)


def test_a_state_that_was_copied_while_it_ran(tmp_path: Path) -> None:
    """Manifests first, then the rest; the files of the sink restored as of the manifests: nothing is left out."""
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, 0, 1, 2, 3)
    shutil.copytree(tmp_path / "s/manifests", tmp_path / "copy/manifests")
    shutil.copytree(tmp_path / "out", tmp_path / "out_copy")
    insert(driver, 4, 5, 6)
    shutil.copytree(tmp_path / "s", tmp_path / "copy", dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifests"))
    shutil.rmtree(tmp_path / "out")
    shutil.copytree(tmp_path / "out_copy", tmp_path / "out")
    called: list[int] = []
    driver = opened(tmp_path / "copy", tmp_path / "out", called)
    assert driver.epoch == 3
    insert(driver, 14, 15)
    assert in_files(tmp_path / "out") == in_view(driver) == [0, 1, 2, 3, 14, 15]
    assert called[-2:] == [14, 15]


def test_a_sink_that_is_older_than_the_state_gets_what_it_lacks(tmp_path: Path) -> None:
    """The epoch that the target stores wins, even if more was delivered before."""
    called: list[int] = []
    driver = opened(tmp_path / "s", tmp_path / "out", called)
    insert(driver, 0, 1)
    shutil.copytree(tmp_path / "out", tmp_path / "older")
    insert(driver, 2, 3)
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "older").rename(tmp_path / "out")
    insert(opened(tmp_path / "s", tmp_path / "out", called), 4)
    assert in_files(tmp_path / "out") == called == [0, 1, 2, 3, 4]


def test_a_sink_that_is_older_than_the_history_is_refused(tmp_path: Path) -> None:
    called: list[int] = []
    driver = opened(tmp_path / "s", tmp_path / "out", called, history=2)
    insert(driver, 0)
    shutil.copytree(tmp_path / "out", tmp_path / "older")
    insert(driver, 1, 2, 3, 4, 5)
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "older").rename(tmp_path / "out")
    with pytest.raises(NotCommitted, match="no longer kept, and sink `v_parquet` needs them"):
        opened(tmp_path / "s", tmp_path / "out", called, history=2).step()


def test_a_sink_whose_view_rests_for_longer_than_the_history(tmp_path: Path) -> None:
    called: list[int] = []
    driver = opened(tmp_path / "s", tmp_path / "out", called, history=2)
    insert(driver, 0)
    for _ in range(6):
        driver.step()
    insert(opened(tmp_path / "s", tmp_path / "out", called, history=2), 1)
    assert in_files(tmp_path / "out") == called == [0, 1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b'"epoch": ') + 9 if b'"epoch"' in data else 20] ^= 1
    path.write_bytes(data)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], object]] = [cut, flip, make_folder, Path.unlink, lambda path: path.write_bytes(b"[]")]


@pytest.mark.parametrize("name", ["progress.json", "sink.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_progress_of_a_folder(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    called: list[int] = []
    insert(opened(tmp_path / "s", tmp_path / "out", called), 0, 1, 2)
    damage(tmp_path / "out/_rejoinder" / name)
    driver = opened(tmp_path / "s", tmp_path / "out", called)
    if (name, damage) == ("sink.json", Path.unlink):  # the progress names the owner, too
        insert(driver, 3)
        assert in_files(tmp_path / "out") == called == [0, 1, 2, 3]
        return
    with pytest.raises(SinkFailed, match="Hint: restore"):
        insert(driver, 3)


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    insert(opened(tmp_path / "s", tmp_path / "out", []), 0, 1, 2)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        RejoinderError, match=r"epoch 2 was delivered to sink .*, which has no epoch now[\s\S]*Hint: restore"
    ):
        opened(tmp_path / "s", tmp_path / "out", []).step()


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


LOSSES: dict[str, Callable[[Path], object]] = {
    "the folder": shutil.rmtree,
    "the epochs that the folder stores": lambda out: shutil.rmtree(out / "_rejoinder"),
    "the progress": lambda out: (out / "_rejoinder/progress.json").unlink(),
    "all but the folder, as where nothing is mounted": empty,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_folder_that_is_lost_while_the_flow_runs_is_refused(tmp_path: Path, loss: str) -> None:
    """It is not made anew with the newest epochs only: what is in it would no longer be the view."""
    out = tmp_path / "out"
    driver = opened(tmp_path / "s", out, [])
    insert(driver, 0, 1)
    shutil.copytree(out, tmp_path / "saved")
    LOSSES[loss](out)
    left = in_files(out)
    for number in (2, 3):
        with pytest.raises(SinkFailed, match=r"epoch 1 was delivered to sink `v_parquet`, which has") as raised:
            insert(driver, number)
        assert str(out) in str(raised.value) and "DROP SINK v_parquet" in str(raised.value)
        assert in_files(out) == left and not (out / "_rejoinder/progress.json").exists()
    shutil.rmtree(out, ignore_errors=True)
    (tmp_path / "saved").rename(out)
    insert(driver, 4)
    assert in_files(out) == in_view(driver) == [0, 1, 2, 3, 4]


def test_a_folder_that_is_lost_is_filled_by_a_new_sink(tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver = opened(tmp_path / "s", out, [])
    insert(driver, 0, 1)
    shutil.rmtree(out)
    with pytest.raises(SinkFailed):
        insert(driver, 2)
    driver.drop("v_parquet")
    driver.sink("v", "parquet", path=out)
    insert(driver, 3)
    assert in_files(out) == in_view(driver) == [0, 1, 2, 3]


def test_a_folder_that_is_lost_inside_a_delivery_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    driver = opened(tmp_path / "s", out, [])
    insert(driver, 0, 1)
    deliver = file_sink.FilesTarget.deliver

    def lose_then_deliver(self: file_sink.FilesTarget, delivery: Delivery) -> None:
        shutil.rmtree(out)
        deliver(self, delivery)

    monkeypatch.setattr(file_sink.FilesTarget, "deliver", lose_then_deliver)
    with pytest.raises(SinkFailed):
        insert(driver, 2)
    assert not out.exists()


def test_an_older_folder_under_a_running_flow_gets_what_it_lacks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver = opened(tmp_path / "s", out, [])
    insert(driver, 0, 1)
    shutil.copytree(out, tmp_path / "older")
    insert(driver, 2, 3)
    shutil.rmtree(out)
    (tmp_path / "older").rename(out)
    insert(driver, 4)
    assert in_files(out) == in_view(driver) == [0, 1, 2, 3, 4]


def test_a_delivery_reads_the_progress_of_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = opened(tmp_path / "s", tmp_path / "out", [])
    insert(driver, 0, 1)
    reads: list[str] = []
    read = file_sink.FilesTarget._read

    def counted(self: file_sink.FilesTarget, filesystem: Any, path: str) -> Any:
        reads.append(path)
        return read(self, filesystem, path)

    monkeypatch.setattr(file_sink.FilesTarget, "_read", counted)
    insert(driver, 2, 3)
    assert [Path(path).name for path in reads] == ["progress.json"] * 2
    driver.step()
    assert len(reads) == 2, "an epoch without changes asks for nothing"
