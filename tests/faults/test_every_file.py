"""Every file that a flow leaves on disk, damaged in turn: the right answer, or an error that names the file.

The files are those that exist, not those of a list: a new kind of file is damaged as well.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from rejoinder.engine.version import named_files
from rejoinder.errors import Corrupt, RejoinderError, SinkFailed
from rejoinder.store.commits.manifest import Manifest
from tests.deep import DEEP, IS_DEEP
from tests.faults.damage import EPOCHS, Flow, build, cut, delete, files, flip, refusal
from tests.faults.test_damage import copied, shrink

PARTS = 4
WAYS = (flip, cut, delete)


class Built(NamedTuple):
    """A flow, what it holds, what it holds two epochs later, and copies of it after each epoch."""

    folder: Path
    expected: list[Any]
    after: list[Any]
    copies: Path

    def damaged(self) -> RejoinderError | None:
        """Open the flow as it is now, go on, and put it back as it was."""
        try:
            return refusal(self.folder, self.expected, self.after)
        finally:
            self.restore()

    def restore(self) -> None:
        """Put the flow back as it was. Its folder stays the same: the paths of the input are in the state."""
        shutil.rmtree(self.folder)
        copied(self.copies / str(EPOCHS - 1), self.folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("every_file") / "flow"
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        build(folder, folder.with_name("copies"))
        flow = Flow(folder)
        expected = flow.everything()
        for number in (EPOCHS, EPOCHS + 1):
            flow.step(number)
        result = Built(folder, expected, flow.everything(), folder.with_name("copies"))
        result.restore()
        return result


def names_it(error: RejoinderError, path: Path) -> bool:
    """Whether an error names a file, another manifest which shows that this one is gone, or the sink that lost it."""
    by = {"manifests": "`manifests/", "_rejoinder": "sink `priced_parquet`"}.get(path.parent.name, path.name)
    return path.name in str(error) or by in str(error)


@DEEP
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("turn", range(len(WAYS)))
def test_every_file(built: Built, turn: int, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the files in one of the ways. `test_damage.py` damages each kind of file in `make test`."""
    shrink(monkeypatch)
    newest = Manifest.from_bytes(max((built.folder / "state/manifests").glob("*.json")).read_bytes())
    needed = {built.folder / "state" / name for name in named_files(newest)}
    seen: Counter[tuple[str, str]] = Counter()
    for number, path in enumerate(files(built.folder)[part::PARTS]):
        damage = WAYS[(number + turn) % len(WAYS)]
        damage(path, Random(path.name))
        error = built.damaged()
        kind = path.relative_to(built.folder).parts[1]
        seen[kind, "right" if error is None else type(error).__name__] += 1
        assert error is None or names_it(error, path), f"{path}: {error}"
        assert error is None or path in needed or kind in ("manifests", "flow.json", "_rejoinder"), f"{path}: {error}"
        if damage is not delete and path in needed and kind in ("epochs", "positions", "sinks"):
            assert error is not None, f"{path} was damaged, and nobody noticed"
    assert seen["runs", "Corrupt"] > 2, seen


@pytest.mark.slow
def test_every_file_that_changes_replaced_by_each_older_copy(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)
    changing = set()
    for path in files(built.folder):
        name, seen = path.relative_to(built.folder), {path.read_bytes()}
        for number in range(0, EPOCHS - 1, 1 if IS_DEEP else 3):
            older = built.copies / str(number) / name
            if not older.exists() or older.read_bytes() in seen:
                continue
            seen.add(older.read_bytes())
            changing.add(str(name))
            shutil.copy(older, path)
            error = built.damaged()
            assert error is None or names_it(error, path), f"{name} as of epoch {number}: {error}"
    assert {"state/manifests/latest", "out/_rejoinder/progress.json"} <= changing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["state/sinks", "state/runs", "state/epochs", "state/positions", "out/_rejoinder"])
def test_a_folder_replaced_by_an_older_copy(built: Built, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)
    for number in (2, EPOCHS - 3, EPOCHS - 2):
        shutil.rmtree(built.folder / name)
        older = built.copies / str(number) / name
        copied(older, built.folder / name) if older.exists() else (built.folder / name).mkdir()
        error = built.damaged()
        expected = (SinkFailed, type(None)) if name.startswith("out") else (Corrupt, type(None))
        assert isinstance(error, expected), f"{name} as of epoch {number}: {error!r}"


@pytest.mark.slow
def test_an_older_copy_of_the_manifests_is_an_older_state(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sinks are ahead of it, and are not given anything."""
    shrink(monkeypatch)
    shutil.rmtree(built.folder / "state/manifests")
    copied(built.copies / str(EPOCHS - 2) / "state/manifests", built.folder / "state/manifests")
    try:
        flow = Flow(built.folder)
        assert flow.driver.epoch == EPOCHS - 2
        with pytest.raises(SinkFailed, match=f"has epoch {EPOCHS - 1}, and the flow is at epoch {EPOCHS - 2}"):
            flow.step(EPOCHS - 1)
    finally:
        built.restore()
