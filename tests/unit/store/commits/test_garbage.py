"""What only dropped versions name goes; everything that a retained one names stays, whatever happens meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder import errors
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.garbage import Collected, Seen, collect
from rejoinder.store.commits.manifest import Manifest, find, name_of, versions
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.testing import Driver
from tests.deep import TIMES
from tests.stores import SpawnPython


def named(manifest: Manifest) -> set[str]:
    return {f"runs/{name}" for name in manifest.spines["s"]}


def advance(store: ObjectStore, runs: Iterable[str]) -> Manifest:
    """Write those of `runs` that are new, and commit a manifest that names them all."""
    base = latest(store)
    for name in runs:
        if not store.exists(f"runs/{name}"):
            store.write(f"runs/{name}", name.encode())
    spines = {"s": list(runs)}
    new = base.successor(keep_versions=9, spines=spines) if base else Manifest.first(time_ms=0, spines=spines)
    commit(store, new)
    return new


SCRAP = "0" * 32 + ".arrow"


def runs_of(store: ObjectStore) -> str:
    return "".join(name.removeprefix("runs/") for name in store.list("runs"))


def test_only_what_fell_out_of_retention_is_deleted(store: ObjectStore) -> None:
    assert collect(store, 2, named) == Collected(0, 0)
    for runs in ("a", "ab", "c", "cd", "cde"):
        advance(store, runs)
    store.write("runs/z", b"of an attempt that is still running")
    assert collect(store, 5, named) == Collected(0, 0)
    assert collect(store, 3, named) == Collected(versions=2, files=2)
    assert runs_of(store) == "cdez" and versions(store) == [2, 3, 4]
    assert collect(store, 3, named) == Collected(0, 0)
    advance(store, "f")
    assert collect(store, 3, named) == Collected(versions=1, files=0)
    assert runs_of(store) == "cdefz"


def epochs(store: ObjectStore, count: int, *, each: int = 1) -> None:
    """Commit epochs, `each` versions of every one; their folders hold a run that is named, and one that never is."""
    base = latest(store)
    for epoch in range(count):
        for version in range(each):
            run = f"{epoch:010d}/{version}"
            store.write(f"runs/{run}", b"named")
            store.write(f"runs/{epoch:010d}/{version:032x}.arrow", b"merged away before the commit")
            spines = {"s": ["0000000000/0", run]}
            new = base.successor(keep_versions=9, spines=spines, epoch=epoch) if base else None
            base = new or Manifest.first(time_ms=0, spines=spines, epoch=epoch)
            commit(store, base)


def test_what_an_epoch_left_unnamed_goes_with_it(store: ObjectStore) -> None:
    epochs(store, 6)
    store.write(f"runs/{6:010d}/attempt", b"of the next epoch")
    assert collect(store, 3, named) == Collected(versions=3, files=5)
    kept = [f"runs/{epoch:010d}/{file}" for epoch in (3, 4, 5) for file in (0, SCRAP)]
    assert store.list("runs") == [f"runs/{0:010d}/0", *kept, f"runs/{6:010d}/attempt"]


def test_the_folder_of_an_epoch_that_may_be_written_to_is_left_alone(memory_store: ObjectStore) -> None:
    """Definitions are versions of one epoch; another driver may be at work on it."""
    epochs(memory_store, 2, each=4)
    assert collect(memory_store, 3, named) == Collected(versions=5, files=8)
    assert memory_store.list("runs/0000000000") == ["runs/0000000000/0"]
    assert f"runs/0000000001/{SCRAP}" in memory_store.list("runs")


def test_what_others_put_into_the_state_stays(store: ObjectStore) -> None:
    foreign = [f"runs/{0:010d}/{name}" for name in ("notes.txt", "README", "ab.arrow", f"sub/{SCRAP}")]
    epochs(store, 1)
    for name in foreign:
        store.write(name, b"precious")
    base = latest(store)
    for epoch in range(1, 6):
        assert base is not None
        base = base.successor(keep_versions=9, epoch=epoch)
        commit(store, base)
    assert collect(store, 2, named) == Collected(versions=4, files=1)
    assert set(foreign) <= set(store.list("runs"))


def test_nothing_is_deleted_through_a_link(disk_store: ObjectStore, tmp_path: Path) -> None:
    epochs(disk_store, 6)
    precious = tmp_path / "precious"
    for folder in (precious, precious / "deep"):
        folder.mkdir()
        (folder / SCRAP).write_text("precious")
    runs = tmp_path / "state" / "runs"
    link = runs / f"{1:010d}" / ("ee" * 16 + ".arrow")
    (runs / f"{0:010d}" / "link").symlink_to(precious)
    link.symlink_to(precious / SCRAP)
    (runs / f"{2:010d}").rename(tmp_path / "aside")
    (runs / f"{2:010d}").symlink_to(precious)
    with suppress(errors.StorageFailed):  # a link in the place of a named file is refused by name
        collect(disk_store, 2, named)
    assert [path.read_text() for path in precious.rglob("*") if path.is_file()] == ["precious"] * 2
    assert link.is_symlink()


def test_a_foreign_link_does_not_stop_a_flow(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path / "state")
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / SCRAP).write_text("precious")
    for epoch in range(20):
        driver.insert("t", {"a": epoch})
        driver.step()
        if epoch == 0:
            (tmp_path / "state" / "runs" / f"{0:010d}" / "photos").symlink_to(tmp_path / "precious")
            (tmp_path / "state" / "runs" / f"{0:010d}" / "notes.txt").write_text("mine")
    assert len(driver.table("v")) == 20
    assert (tmp_path / "precious" / SCRAP).exists() and (tmp_path / "state/runs" / f"{0:010d}" / "notes.txt").exists()


def test_the_newest_and_its_parent_always_stay(store: ObjectStore) -> None:
    for runs in ("a", "b", "c", "d"):
        advance(store, runs)
    assert collect(store, 0, named) == Collected(versions=2, files=2)
    assert runs_of(store) == "cd" and versions(store) == [2, 3]


def test_a_file_that_is_named_again_stays(memory_store: ObjectStore) -> None:
    for runs in ("ab", "b", "b", "a", "c"):
        advance(memory_store, runs)
    assert collect(memory_store, 3, named) == Collected(versions=2, files=0)
    advance(memory_store, "c")
    assert collect(memory_store, 3, named) == Collected(versions=1, files=1)
    assert runs_of(memory_store) == "ac"


def test_the_cost_of_a_call_does_not_grow(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Seen = {}
    costs: list[tuple[int, ...]] = []
    newest = None
    for version in range(60):
        newest = advance(memory_store, [f"r{version}", "old"])
        with monkeypatch.context() as patch:
            calls = {
                name: _counted(patch, memory_store, name)
                for name in ("entries", "find", "exists", "put", "put_if_absent", "delete")
            }
            done = collect(memory_store, 20, named, known=newest, seen=seen)
        assert done == (Collected(1, 1) if version >= 20 else Collected(0, 0))
        costs.append(tuple(len(each) for each in calls.values()))
    assert len(set(costs[25:])) == 1 and sum(costs[-1]) <= 12 and costs[-1][0] == 0
    assert len(seen) == 20


def _counted(patch: pytest.MonkeyPatch, store: ObjectStore, name: str) -> list[Any]:
    real, calls = getattr(store, name), list[Any]()

    def counted(*args: Any) -> Any:
        calls.append(args)
        return real(*args)

    patch.setattr(store, name, counted)
    return calls


def test_a_long_backlog(memory_store: ObjectStore) -> None:
    for i in range(200):
        advance(memory_store, [f"r{i}", "old"])
    assert collect(memory_store, 2, named) == Collected(versions=198, files=198)
    assert versions(memory_store) == [198, 199] and memory_store.list("runs") == ["runs/old", "runs/r198", "runs/r199"]


def consistent(store: ObjectStore, retained: int) -> None:
    """Check that the retained versions have all that they name, and that nothing else is left but `z`."""
    newest = latest(store)
    assert newest is not None
    kept = [find(store, version) for version in range(max(0, newest.version - retained + 1), newest.version + 1)]
    wanted = set().union(*(named(manifest) for manifest in kept if manifest))
    assert None not in kept
    assert wanted <= set(store.list("runs"))
    collect(store, retained, named)
    assert set(store.list("runs")) - {"runs/z"} == wanted
    assert versions(store) == [manifest.version for manifest in kept if manifest]


def test_stopped_at_any_step(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class StoppedError(Exception):
        pass

    delete = memory_store.delete
    for stop in range(9):
        delete(memory_store.list())
        for runs in ("a", "ab", "bc", "cd", "de", "ef", "fg"):
            advance(memory_store, runs)
        left = [stop]

        def delete_until(names: list[str], left: list[int] = left) -> None:
            for name in names:  # a bulk delete may be half done
                if left[0] == 0:
                    raise StoppedError
                left[0] -= 1
                delete([name])

        with monkeypatch.context() as patch:
            patch.setattr(memory_store, "delete", delete_until)
            try:
                collect(memory_store, 3, named)
                assert stop >= 7
            except StoppedError:
                pass
        stored = versions(memory_store)
        assert stored == list(range(stored[0], 7))
        advance(memory_store, "g")
        consistent(memory_store, 3)


@settings(max_examples=15 * TIMES)
@given(
    st.lists(st.tuples(st.sets(st.sampled_from("abcdefgh")), st.booleans()), min_size=1, max_size=20), st.integers(2, 5)
)
def test_any_history(history: list[tuple[set[str], bool]], keep: int) -> None:
    drop_memory("any-history")
    store = open_store("memory://any-history")
    seen: Seen = {}
    for runs, collecting in history:
        advance(store, sorted(runs))
        if collecting:
            collect(store, keep, named, seen=seen)
            consistent(store, keep)


def test_killed_collectors(disk_store: ObjectStore, spawn_python: SpawnPython) -> None:
    code = """
import sys
from rejoinder.store.commits.garbage import collect
print("ready", flush=True)
for _ in sys.stdin:
    collect(store, 2, lambda manifest: {f"runs/{name}" for name in manifest.spines["s"]})
    print("done", flush=True)
"""
    for round_ in range(3):
        for i in range(12):
            advance(disk_store, [f"r{round_}-{i}", f"r{round_}-{i // 5}-merged"])
        child = spawn_python(code, disk_store)
        assert child.stdin and child.stdout and child.stdout.readline()
        child.stdin.write("\n")
        child.stdin.flush()
        time.sleep(0.001 * round_)
        child.kill()
        child.wait()
        stored = versions(disk_store)
        assert stored == list(range(stored[0], stored[-1] + 1))
    consistent(disk_store, 2)


def test_two_collectors_and_a_driver(shared_store: ObjectStore, spawn_python: SpawnPython) -> None:
    code = """
import sys
from rejoinder.store.commits.garbage import collect
keep = int(sys.stdin.readline())
print("ready", flush=True)
while not store.exists("stop"):
    collect(store, keep, lambda manifest: {f"runs/{name}" for name in manifest.spines["s"]})
print("fine")
"""
    advance(shared_store, "a")
    collectors = [spawn_python(code, shared_store) for _ in range(2)]
    for keep, collector in zip((3, 5), collectors, strict=True):
        assert collector.stdin and collector.stdout
        collector.stdin.write(f"{keep}\n")
        collector.stdin.flush()
        assert collector.stdout.readline() == "ready\n"
    random, runs = Random(11), ["a"]
    for i in range(40 if shared_store.is_local else 10):
        runs = [*random.sample(runs, len(runs) // 2), f"new{i}-1", f"new{i}-2"]
        newest = advance(shared_store, runs)
        assert named(newest) <= set(shared_store.list("runs"))
    shared_store.put("stop", b"")
    assert [collector.communicate(timeout=60)[0].strip() for collector in collectors] == ["fine"] * 2
    consistent(shared_store, 3)


def test_what_is_not_of_the_chain_is_left_alone(memory_store: ObjectStore) -> None:
    for runs in ("a", "b", "c", "d", "e"):
        advance(memory_store, runs)
    collect(memory_store, 2, named)
    stray = Manifest.first(time_ms=0, spines={"s": ["e", "x"]})
    for version in (2, 1):
        memory_store.put(name_of(version), Manifest(**{**vars_of(stray), "version": version}).to_bytes())
    memory_store.write("runs/x", b"")
    advance(memory_store, "f")
    assert collect(memory_store, 2, named) == Collected(versions=1, files=1)
    assert runs_of(memory_store) == "efx" and versions(memory_store) == [1, 2, 4, 5]


def vars_of(manifest: Manifest) -> dict[str, Any]:
    return {name: value for name, value in vars(manifest).items() if name in Manifest.__dataclass_fields__}


def test_a_damaged_manifest_stops_the_collector(memory_store: ObjectStore) -> None:
    for runs in ("a", "b", "c", "d", "e"):
        advance(memory_store, runs)
    for version in (0, 3):
        content = memory_store.get(name_of(version))
        memory_store.put(name_of(version), content[:-9])
        with pytest.raises(errors.Corrupt, match=name_of(version)):
            collect(memory_store, 3, named)
        assert runs_of(memory_store) == "abcde"
        memory_store.put(name_of(version), content)
