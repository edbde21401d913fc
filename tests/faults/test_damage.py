"""Every kind of file of a state, damaged in every way: the right answer or an error with a name, nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rejoinder.errors import Corrupt, SinkFailed
from rejoinder.state import timeline
from rejoinder.store.commits import file_log
from rejoinder.store.commits.lost_commits import hint_to
from tests.deep import IS_DEEP
from tests.faults.damage import DAMAGES, EPOCHS, Flow, build, kinds, outcome

Built = tuple[Path, list[Any], list[Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A state, what it holds, and what it holds two epochs later."""
    folder = tmp_path_factory.mktemp("damage") / "flow"
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        build(folder)
        kept = copied(folder, folder.with_name("kept"))
        flow = Flow(folder)
        expected = flow.everything()
        for number in (EPOCHS, EPOCHS + 1):
            flow.step(number)
        after = flow.everything()
        shutil.rmtree(folder)
        kept.rename(folder)
        return folder, expected, after


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Let a short history have blocks and chunks."""
    patch.setattr(timeline, "BLOCK", 3)
    patch.setattr(file_log, "RECENT", 4)


def copied(folder: Path, into: Path) -> Path:
    shutil.copytree(folder, into)
    return into


KINDS = (
    "state/flow.json", "state/manifests/newest", "state/manifests/older", "state/manifests/latest", "state/runs",
    "state/epochs", "state/positions", "state/sinks", "out/_rejoinder/sink.json", "out/_rejoinder/progress.json",
)  # fmt: skip


def test_all_kinds_are_known(built: Built) -> None:
    assert sorted(kinds(built[0])) == sorted(KINDS)


# A run may be one that no question reads: then the answer is right.
NOTICED = {
    "state/manifests/newest": "Corrupt", "state/epochs": "Corrupt", "state/positions": "Corrupt",
    "state/sinks": "Corrupt", "out/_rejoinder/progress.json": "SinkFailed",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_noticed(built: Built, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)
    folder, expected, after = built
    seen = {}
    for number, damage in enumerate(DAMAGES):
        # Without the long run: the first ways, and one other for each kind.
        if not IS_DEEP and number > 2 and number % 5 != KINDS.index(kind) % 5:
            continue
        draw = Random(f"{kind} {number}")
        # The paths of the input are in the state, so the folder has to be the same one.
        kept = copied(folder, tmp_path / f"kept{number}")
        try:
            damage(draw.choice(kinds(folder)[kind]), draw)
            seen[f"{number} {damage.__name__}"] = outcome(folder, expected, after)
        finally:
            shutil.rmtree(folder)
            kept.rename(folder)
    if kind in NOTICED:
        assert seen["0 flip"] == seen["1 flip"] == seen["2 cut"] == NOTICED[kind], seen


def test_lost_commits_are_noticed(built: Built, tmp_path: Path) -> None:
    """The newest manifest is gone: the state before it is whole, and is not taken for the newest silently."""
    folder, _, _ = built
    kept = copied(folder, tmp_path / "kept")
    try:
        max((folder / "state/manifests").glob("*.json")).unlink()
        with pytest.raises(Corrupt, match=r"the newest commit of this state is missing[\s\S]*Hint: restore"):
            Flow(folder)
        latest = folder / "state/manifests/latest"
        version = int(latest.read_bytes().partition(b" ")[0])
        latest.unlink()
        with pytest.raises(Corrupt, match=r"the newest commit of this state is missing[\s\S]*Hint: restore"):
            Flow(folder)
        latest.write_bytes(hint_to(version - 1))  # as the error says
        with pytest.raises(SinkFailed, match=f"has epoch {EPOCHS - 1}, and the flow is at epoch {EPOCHS - 2}"):
            Flow(folder).step(EPOCHS - 1)
    finally:
        shutil.rmtree(folder)
        kept.rename(folder)
