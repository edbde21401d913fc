"""What a state writes belongs to its owner alone, and is never reached through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rejoinder.api.sources.inbox import Inbox
from rejoinder.errors import StorageFailed
from rejoinder.host.private_files import lock_file, make_folder
from rejoinder.ir.catalog import Source
from rejoinder.store.runs.spool import Spool
from rejoinder.testing import Driver


@pytest.fixture(autouse=True)
def _open_umask() -> object:
    before = os.umask(0o000)
    yield
    os.umask(before)


def _use(state: Path) -> None:
    driver = Driver(store=state)
    driver.table("v")
    driver.insert("t", {"a": 9})
    driver.step()
    list(driver._store.entries())


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _run(state: Path) -> Driver:
    driver = Driver(store=state)
    driver.sql("CREATE TABLE t (a BIGINT, PRIMARY KEY (a)); CREATE VIEW v AS SELECT a.a FROM t a JOIN t b USING (a)")
    for number in range(3):
        driver.insert("t", {"a": number})
        driver.step()
    return driver


def _assert_private(top: Path) -> None:
    found = [top, *top.rglob("*")]
    assert len(found) > 2
    for path in found:
        assert _mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_files_of_a_state_are_their_owners(tmp_path: Path) -> None:
    _run(tmp_path / "states" / "shop")
    _assert_private(tmp_path / "states" / "shop")


def test_the_inbox_and_the_spool_are_their_owners(tmp_path: Path) -> None:
    import pyarrow as pa

    source = Source("t", "stream", pa.schema([("a", pa.int64())]))
    Inbox(str(tmp_path / "state"), lambda _: "a1").add(source, [{"a": 1}], 1)
    _assert_private(tmp_path / "state")
    Spool(str(tmp_path / "spool")).write(0, [pa.table({"a": [1]})])
    _assert_private(tmp_path / "spool")


def test_a_state_folder_that_is_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "real")
    assert _run(tmp_path / "state").table("v")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_inside_a_state_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    state = tmp_path / "state"
    _run(state)
    wanted = [path for path in sorted(state.rglob("*")) if path.is_dir() == (kind == "folder")]
    for number, path in enumerate(wanted):
        if path.is_symlink() or not path.exists() or path.name.startswith("."):
            continue
        aside = tmp_path / f"aside-{number}"
        path.rename(aside)
        path.symlink_to(aside)
        with pytest.raises(StorageFailed, match="symbolic link") as caught:
            _use(state)
        assert path.name in str(caught.value)
        path.unlink()
        aside.rename(path)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").mkdir()
    for name in ("inbox", "manifest", "runs", ".temporary"):
        (tmp_path / "state" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="symbolic link"):
        _run(tmp_path / "state")
    with pytest.raises(OSError, match="symbolic link"):
        make_folder(tmp_path / "state" / "inbox" / "x", tmp_path / "state")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere" / "victim")
    with pytest.raises(OSError, match="lock"):
        lock_file(tmp_path / "lock")
    assert not list((tmp_path / "elsewhere").iterdir())
