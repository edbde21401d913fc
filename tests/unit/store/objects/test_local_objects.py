"""Objects on a disk that is full, shared with a killed writer, read-only, or no folder at all."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from pathlib import Path

import pytest

from rejoinder import errors
from rejoinder.store.objects.object_store import ObjectStore, open_store
from tests.stores import SpawnPython


def test_a_killed_writer_leaves_all_or_nothing(
    disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path
) -> None:
    code = """
import itertools, sys
print("started", flush=True)
for i in itertools.count():
    store.put_if_absent(f"manifests/{i:020d}", b"%d " % i * 20_000)
    store.put("hint", b"%d " % i * 20_000)
"""
    for attempt in range(3):
        child = spawn_python(code, disk_store)
        assert child.stdout and child.stdout.readline()
        while len(disk_store.list("manifests")) < 2:
            time.sleep(0.01)
        time.sleep(0.08 + 0.023 * attempt)
        child.kill()
        child.wait()
        names = disk_store.list("manifests")
        assert len(names) > 1
        for name in names:
            assert disk_store.get(name) == b"%d " % int(name[-20:]) * 20_000
        hint = disk_store.get("hint")
        assert hint == hint[: hint.index(b" ") + 1] * 20_000
        disk_store.delete(names)
    disk_store.sweep(older_than_seconds=-1)
    assert list((tmp_path / "state" / ".temporary").iterdir()) == []
    assert disk_store.list() == ["hint"]


def test_a_full_disk_fails_cleanly(disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path) -> None:
    # A limit on file sizes meets the same code as a full disk, and needs no file system of its own.
    code = f"""
import resource
from rejoinder import errors
store.put("before", b"1")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, {resource.RLIM_INFINITY}))
for call in (store.put, store.put_if_absent, store.write):
    try:
        call("runs/a", bytes(100_000))
    except errors.StorageFailed as error:
        print(error.fact, "|", error.detail, "|", error.hint)
"""
    out, _ = spawn_python(code, disk_store).communicate(timeout=60)
    lines = out.strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("no space left") and "`runs/a`" in line and "free space" in line
    assert disk_store.list() == ["before"]
    assert list((tmp_path / "state" / ".temporary").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_really_full_disk(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True).returncode:
        pytest.skip("mounting does not work here")
    try:
        store = open_store(str(place))
        store.put("manifests/latest", b"1")
        for call in (store.put, store.put_if_absent, store.write):
            with pytest.raises(errors.StorageFailed, match=r"no space left[^$]*`r`[^$]*free space"):
                call("r", bytes(1 << 20))
        assert store.list() == ["manifests/latest"] and store.get("manifests/latest") == b"1"
        store.write("r", b"there is room again")
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(errors.StorageFailed, match="Hint"):
        open_store(str(tmp_path / "state")).put("a", b"1")


def test_permission_denied(disk_store: ObjectStore, spawn_python: SpawnPython, tmp_path: Path) -> None:
    disk_store.put("a", b"1")
    tmp_path.chmod(0o500)
    code = """
import os
from rejoinder import errors
from rejoinder.store.objects import local_objects  # loaded before it may read no more
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
for call in (store.put, store.put_if_absent, store.write):
    try:
        call("runs/a", b"1")
    except errors.StorageFailed as error:
        print(error.fact, "|", error.detail, "|", error.hint)
"""
    (tmp_path / "state").chmod(0o500)
    try:
        out, _ = spawn_python(code, disk_store).communicate(timeout=60)
    finally:
        (tmp_path / "state").chmod(0o700)
        tmp_path.chmod(0o700)
    lines = out.strip().splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("permission denied") and "`runs/a`" in line and "permissions of the folder" in line


def test_read_only_file_system() -> None:
    with pytest.raises(errors.StorageFailed, match="Hint"):
        open_store("/proc/state").put("a", b"1")


def test_sync_flushes_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(str(Path(f"/proc/self/fd/{fd}").readlink())))
    open_store(str(tmp_path / "lax")).write("a/b", b"1")
    assert flushed == []
    store = open_store(str(tmp_path / "state"), sync=True)
    store.write("runs/r", b"1")
    assert {str(tmp_path / name) for name in ("state", "state/runs", "state/runs/r")} <= set(flushed)
    del flushed[:]
    store.put_if_absent("runs/m", b"1")
    assert str(tmp_path / "state" / "runs") in flushed and any(".temporary/" in name for name in flushed)
