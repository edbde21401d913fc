"""`rejoinder check`: an intact state, each kind of damage, and a state of another format."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rejoinder.engine.maintenance.state_check import check_state
from rejoinder.errors import StateError
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import open_store
from tests.unit.cli.conftest import Rejoinder


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))


def test_an_intact_state(shop: str, rejoinder: Rejoinder) -> None:
    result = rejoinder("check", shop)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("intact at epoch 1: ")
    calls: list[tuple[int, int]] = []
    checked = check_state(open_store(shop), lambda done, total: calls.append((done, total)))
    assert calls[-1] == (checked.bytes, checked.bytes) and len(calls) == checked.objects
    assert checked.problems == () and checked.unreferenced == ()


@pytest.mark.parametrize("damage", ["flip", "delete"])
def test_every_run_is_checked(shop: str, rejoinder: Rejoinder, damage: str) -> None:
    run = sorted(Path(shop).glob("runs/**/*.arrow"))[0]
    if damage == "flip":
        flip(run)
    else:
        run.unlink()
    result = rejoinder("check", shop)
    assert result.exit_code == 1
    assert run.name in result.output and "1 problems" in result.output


def test_every_manifest_is_checked(shop: str, rejoinder: Rejoinder) -> None:
    manifests = sorted(Path(shop).glob("manifests/*.json"))
    flip(manifests[0])
    result = rejoinder("check", shop)
    assert result.exit_code == 1 and manifests[0].name in result.output


def test_a_gap_in_the_chain_is_a_problem(shop: str, rejoinder: Rejoinder) -> None:
    manifests = sorted(Path(shop).glob("manifests/*.json"))
    manifests[1].unlink()
    result = rejoinder("check", shop)
    assert result.exit_code == 1 and f"`manifests/{manifests[1].name}` is missing" in " ".join(result.output.split())


def test_no_state_is_an_error(tmp_path: Path, rejoinder: Rejoinder) -> None:
    result = rejoinder("check", str(tmp_path / "nothing"))
    assert result.exit_code == 1 and "there is no state" in result.output


def test_an_older_format_is_named() -> None:
    older = dataclasses.replace(Manifest.first(time_ms=0), format=1)
    with pytest.raises(StateError, match="has format 1, and this version reads from 2 on"):
        Manifest.from_bytes(older.to_bytes(), "m")
