"""Folders of processes that were killed are removed by the next one; those of living ones, and of others, are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rejoinder.host.temporary_folders import abandoned_folders, own_folder, short_lived_folder

CODE = """
import sys
from rejoinder.host.temporary_folders import own_folder

class Owner: pass

owner = Owner()
folder = own_folder(owner, "spool")
open(folder + "/rows", "w").write("rows")
print(folder, flush=True)
sys.stdin.readline()
"""


class Owner:
    """Something that a folder goes with."""


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def started() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(base: Path) -> None:
    killed, folder = started()
    living, other = started()
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert folder.exists() and abandoned_folders() == [str(folder)]
        owner = Owner()
        own = own_folder(owner, "spool")
        assert not folder.exists() and (other / "rows").exists() and Path(own).is_dir()
        assert abandoned_folders() == []
    finally:
        living.communicate("")
        killed.communicate()
    assert not other.exists(), "a process that ends removes its own"


def test_a_folder_goes_with_its_owner() -> None:
    owner = Owner()
    folder = own_folder(owner, "waiting")
    assert Path(folder).is_dir()
    del owner
    assert not Path(folder).exists()


def test_what_is_not_ours_stays(base: Path) -> None:
    (base / "rejoinder-spool-mine.txt").write_text("")
    (base / "rejoinder-photos").mkdir()
    (base / "elsewhere").mkdir()
    (base / "rejoinder-spool-abcdefgh").symlink_to(base / "elsewhere")
    (base / "rejoinder-spool-unfinished").mkdir()
    owner = Owner()
    own = own_folder(owner, "spool")
    assert {path.name for path in base.iterdir()} == {
        "rejoinder-spool-mine.txt",
        "rejoinder-photos",
        "elsewhere",
        "rejoinder-spool-abcdefgh",
        "rejoinder-spool-unfinished",
        Path(own).name,
    }


def test_a_folder_that_was_never_finished_goes_when_it_is_old(base: Path) -> None:
    (base / "rejoinder-spool-unfinished").mkdir()
    os.utime(base / "rejoinder-spool-unfinished", (1, 1))
    assert abandoned_folders() == [str(base / "rejoinder-spool-unfinished")]


@pytest.mark.parametrize("kind", ["query", "warm-up"])
def test_short_lived_folders(base: Path, kind: str) -> None:
    with short_lived_folder(kind) as folder:
        assert Path(folder).is_dir() and abandoned_folders() == []
    assert not Path(folder).exists()
    code = CODE.replace('"spool"', repr(kind))
    process = subprocess.run(
        [sys.executable, "-c", code + "\nimport os\nos.kill(os.getpid(), 9)"],
        input="\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    killed = process.stdout.strip()
    assert abandoned_folders() == [killed]
    with short_lived_folder(kind):
        assert not Path(killed).exists()
