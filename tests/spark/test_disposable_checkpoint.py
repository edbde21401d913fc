"""Spark's checkpoint is disposable: deleted, damaged file by file, or an older copy, the result is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

import rejoinder as rj
from tests.deep import DEEP
from tests.faults.damage import cut, delete, flip
from tests.spark.conftest import OpenFlow
from tests.spark.files import write_rows
from tests.spark.rows import bag

Damage = Callable[[Path, Random], None]


class Files:
    """A flow over files and inserted rows, and what it must hold."""

    def __init__(self, open_flow: OpenFlow, folder: Path, *, is_restarted: bool) -> None:
        self._open, self._folder, self._is_restarted = open_flow, folder, is_restarted
        self._numbers: Iterator[int] = count()
        self._rows: list[tuple[int, str]] = []
        folder.mkdir()
        self.flow = self._opened()

    def _opened(self) -> rj.Flow:
        flow = self._open()
        flow.sql(
            f"CREATE STREAM IF NOT EXISTS a (id BIGINT) USING parquet OPTIONS (path '{self._folder}');"
            "CREATE STREAM IF NOT EXISTS b (id BIGINT, x STRING);"
            "CREATE VIEW IF NOT EXISTS v AS SELECT id, 'a' AS x FROM a UNION ALL SELECT id, x FROM b"
        )
        return flow

    def step(self) -> None:
        """Run an epoch with new input, after a restart if that is asked for, and compare the view with all input."""
        if self._is_restarted:
            self.flow = self._opened()
        number = next(self._numbers)
        write_rows(self._folder / f"{number}.parquet", [{"id": number}])
        self.flow.insert("b", [{"id": number, "x": "b"}])
        self._rows += [(number, "a"), (number, "b")]
        self.flow.run()
        assert bag(self.flow.arrow("v").to_pylist()) == bag([{"id": n, "x": x} for n, x in self._rows])


def generation(state: str) -> Path:
    """The newest generation of the checkpoint."""
    return max(Path(state, "spark").iterdir(), key=lambda path: int(path.name.partition("-")[0]))


@pytest.mark.parametrize("is_restarted", [True, False], ids=["new process", "same process"])
@pytest.mark.parametrize("damage", [flip, cut, delete])
def test_all_files_at_once(open_flow: OpenFlow, state: str, tmp_path: Path, damage: Damage, is_restarted: bool) -> None:
    files = Files(open_flow, tmp_path / "in", is_restarted=is_restarted)
    for _ in range(2):
        files.step()
    draw = Random(1)
    damaged = [path for path in sorted(generation(state).rglob("*")) if path.is_file()]
    for path in damaged:
        damage(path, draw)
    assert {path.parent.name for path in damaged} >= {"offsets", "commits"}
    files.step()


@DEEP
@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("is_restarted", [True, False], ids=["new process", "same process"])
@pytest.mark.parametrize("damage", [flip, cut, delete])
def test_each_file_in_turn(open_flow: OpenFlow, state: str, tmp_path: Path, damage: Damage, is_restarted: bool) -> None:
    files = Files(open_flow, tmp_path / "in", is_restarted=is_restarted)
    for _ in range(3):
        files.step()
    names = sorted({path.name for path in generation(state).rglob("*") if path.is_file()})
    draw = Random(1)
    seen: set[str] = set()
    while True:
        left = [path for path in sorted(generation(state).rglob("*")) if path.is_file() and _kind(path) not in seen]
        if not left:
            break
        seen.add(_kind(left[0]))
        damage(left[0], draw)
        files.step()
    assert len(seen) >= 8, (seen, names)


def _kind(path: Path) -> str:
    """What a file of a checkpoint is: its folder and name, the newest of its kind being one of its own."""
    folder = path.parent
    numbers = sorted((int(each.name) for each in folder.iterdir() if each.name.isdigit()), reverse=True)
    number = path.name.strip(".").removesuffix(".crc").removesuffix(".compact")
    rank: int | str = "other" if number.isdigit() else number
    if number.isdigit() and int(number) in numbers:
        rank = min(numbers.index(int(number)), 2)
    marks = path.name.startswith("."), path.name.endswith(".crc"), path.name.endswith(".compact")
    return f"{'/'.join(folder.parts[-2:]) if folder.parent.name == 'sources' else folder.name}/{rank} {marks}"


@pytest.mark.parametrize("is_restarted", [True, False], ids=["new process", "same process"])
def test_the_newest_offsets_and_logs(open_flow: OpenFlow, state: str, tmp_path: Path, is_restarted: bool) -> None:
    """One bit in the offsets used to double rows, one in a path of the log as well."""
    files = Files(open_flow, tmp_path / "in", is_restarted=is_restarted)
    for _ in range(3):
        files.step()
    offsets = max((generation(state) / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    offsets.write_text(offsets.read_text().replace('"logOffset":2', '"logOffset":0'))
    files.step()
    for log in (generation(state) / "sources").rglob("[0-9]*"):
        if log.is_file():
            log.write_text(log.read_text().replace(".parquet", ".parquex").replace(".arrow", ".arrox"))
    files.step()


@pytest.mark.parametrize("is_restarted", [True, False], ids=["new process", "same process"])
def test_deleted_and_older_copies(open_flow: OpenFlow, state: str, tmp_path: Path, is_restarted: bool) -> None:
    files = Files(open_flow, tmp_path / "in", is_restarted=is_restarted)
    files.step()
    older = tmp_path / "older"
    shutil.copytree(Path(state, "spark"), older)
    files.step()
    shutil.rmtree(Path(state, "spark"))
    files.step()
    for path in generation(state).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    files.step()
    now = generation(state)
    shutil.rmtree(now)
    shutil.copytree(next(older.iterdir()), now)  # under the name of the present one
    files.step()
    files.step()
