"""Unnamed files are found, on every store, but no file that a driver may still name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.manifest import Manifest, name_of
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.commits.unnamed_files import Garbage, delete_garbage, find_garbage
from rejoinder.store.objects.object_store import ObjectStore

YOUNG, ANY_AGE = 3600, -5


def run(epoch: int, number: int) -> str:
    return f"runs/{epoch:010d}/{number:032x}.arrow"


def named(manifest: Manifest) -> set[str]:
    return set(manifest.spines["s"])


def grow(store: ObjectStore, epochs: int) -> Manifest:
    """Commit epochs; each names the first run of its folder, and the first two of all."""
    base = Manifest.first(time_ms=0, spines={"s": []})
    commit(store, base)
    for epoch in range(epochs):
        files = [run(0, 0), run(0, 1), run(epoch, 0)]
        for name in files:
            if not store.exists(name):
                store.write(name, b"1234")
        base = base.successor(keep_versions=8, epoch=epoch, spines={"s": files})
        commit(store, base)
    return base


def names(garbage: list[Garbage]) -> list[str]:
    return [each.name for each in garbage]


def test_an_empty_store(store: ObjectStore) -> None:
    store.write(run(0, 7), b"")
    store.delete([run(0, 7)])
    assert find_garbage(store, named, ANY_AGE) == []


def test_orphans_of_older_epochs_go_at_once_and_others_when_they_are_old(store: ObjectStore) -> None:
    grow(store, 4)
    for epoch in (0, 2, 3, 4, 9):
        store.write(run(epoch, 7), b"12345678")
    store.write(f"epochs/{1:010d}/{'a' * 32}.json", b"")
    store.write(f"positions/{1:010d}/{'a' * 32}.log", b"")
    assert names(find_garbage(store, named, YOUNG)) == [
        f"epochs/{1:010d}/{'a' * 32}.json",
        f"positions/{1:010d}/{'a' * 32}.log",
        run(0, 7),
        run(2, 7),
    ]
    found = find_garbage(store, named, ANY_AGE)
    assert names(found)[-3:] == [run(3, 7), run(4, 7), run(9, 7)]
    assert {each.bytes for each in found if each.name.startswith("runs")} == {8}
    delete_garbage(store, found)
    assert find_garbage(store, named, ANY_AGE) == []
    manifest = newest(store)
    assert manifest is not None and named(manifest) <= set(store.list())


def test_what_others_put_there_stays(store: ObjectStore) -> None:
    grow(store, 4)
    for name in ("notes.txt", "runs/readme", f"runs/{0:010d}/x.arrow", "spark/offsets/1", "manifests/mine.json"):
        store.write(name, b"")
    assert find_garbage(store, named, ANY_AGE) == []


def test_manifests_that_a_replaced_driver_left(store: ObjectStore) -> None:
    base = grow(store, 12)
    gone = [name_of(version) for version in range(5)]
    store.delete(gone)
    stray = Manifest.first(time_ms=0, spines={"s": [run(2, 9)]})
    store.put(name_of(2), stray.to_bytes())
    store.put(f"sinks/{1:020d}.json", b"note")
    store.put(f"sinks/{base.version:020d}.json", b"note")
    store.write(run(2, 9), b"")
    found = find_garbage(store, named, YOUNG)
    assert {name_of(2), run(2, 9), f"sinks/{1:020d}.json"} <= set(names(found))
    assert f"sinks/{base.version:020d}.json" not in names(found)
    delete_garbage(store, found)
    assert newest(store) == base


def test_what_is_committed_meanwhile_is_left_alone(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the listing and the reading of the manifests a driver commits what it had written before."""
    base = grow(memory_store, 4)
    memory_store.write(run(4, 0), b"1234")
    real = memory_store.real_entries

    def commit_then_list(prefix: str = "") -> object:
        listed = real(prefix)
        monkeypatch.undo()
        commit(memory_store, base.successor(keep_versions=8, epoch=4, spines={"s": [run(4, 0), run(0, 0)]}))
        return listed

    monkeypatch.setattr(memory_store, "real_entries", commit_then_list)
    found = names(find_garbage(memory_store, named, ANY_AGE))
    assert run(4, 0) not in found and run(0, 0) not in found


def test_links_are_passed_over(disk_store: ObjectStore, tmp_path: Path) -> None:
    grow(disk_store, 4)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"{5:032x}.arrow").write_text("precious")
    os.symlink(tmp_path / "elsewhere", tmp_path / "state" / "runs" / f"{7:010d}")
    os.symlink(
        tmp_path / "elsewhere" / f"{5:032x}.arrow", tmp_path / "state" / "runs" / f"{0:010d}" / f"{5:032x}.arrow"
    )
    assert find_garbage(disk_store, named, ANY_AGE) == []
