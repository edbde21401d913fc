"""A flow whose newest commits are lost is refused, on every store, whatever else is lost with them."""

from __future__ import annotations

import pytest

from rejoinder import errors
from rejoinder.store.commits import garbage
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.lost_commits import FLOW, HINT, hint_to
from rejoinder.store.commits.manifest import Manifest, name_of, versions
from rejoinder.store.commits.newest_manifest import latest, newest
from rejoinder.store.objects.object_store import ObjectStore

KEEP = 8
MISSING = r"the newest commit of this state is missing[\s\S]*Hint: restore"


def grow(store: ObjectStore, commits: int, *, collect_last: bool = True) -> list[Manifest]:
    """Commit versions as a driver does."""
    chain: list[Manifest] = []
    for number in range(commits):
        if chain:
            chain.append(chain[-1].successor(keep_versions=KEEP, epoch=number))
        else:
            chain.append(Manifest.first(time_ms=0, epoch=0))
        commit(store, chain[-1])
        if collect_last or number < commits - 1:
            garbage.collect(store, KEEP, lambda _: set())
    return chain


@pytest.mark.parametrize("commits", [2, 3, 8, 9, 10, 30])
@pytest.mark.parametrize("lost", [1, 2])
def test_the_newest_manifests_and_the_hint_are_lost(store: ObjectStore, commits: int, lost: int) -> None:
    chain = grow(store, commits)
    gone = [each.name for each in chain[-lost:]][: commits - 1]
    store.delete([*gone, HINT])
    for find in (newest, latest):
        with pytest.raises(errors.Corrupt, match=MISSING):
            find(store)


def test_the_way_on_that_the_error_gives(disk_store: ObjectStore) -> None:
    chain = grow(disk_store, 12)
    disk_store.delete([chain[-1].name, HINT])
    with pytest.raises(errors.Corrupt, match=f"write `{hint_to(10).decode()}` to `manifests/latest`"):
        newest(disk_store)
    disk_store.put(HINT, hint_to(10))
    assert newest(disk_store) == latest(disk_store) == chain[-2]
    commit(disk_store, chain[-2].successor(keep_versions=KEEP, epoch=11))


@pytest.mark.parametrize("commits", [1, 5, 8, 9, 30])
@pytest.mark.parametrize("hint", [None, b"", b"nonsense", hint_to(0)])
def test_a_lost_or_damaged_hint_alone_is_harmless(memory_store: ObjectStore, commits: int, hint: bytes | None) -> None:
    chain = grow(memory_store, commits)
    memory_store.delete([HINT]) if hint is None else memory_store.put(HINT, hint)
    assert newest(memory_store) == latest(memory_store) == chain[-1]


def test_a_lost_old_manifest_alone_is_harmless(memory_store: ObjectStore) -> None:
    chain = grow(memory_store, 20)
    memory_store.delete([name_of(versions(memory_store)[0])])
    assert newest(memory_store) == latest(memory_store) == chain[-1]


def test_a_note_of_a_sink_shows_a_commit_whose_collection_did_not_run(store: ObjectStore) -> None:
    chain = grow(store, 12, collect_last=False)
    store.put("sinks/00000000000000000011.json", b"")
    store.delete([chain[-1].name, HINT])
    with pytest.raises(errors.Corrupt, match=r"sinks/0+11\.json` was written after a newer commit"):
        newest(store)


def test_what_is_not_noticed(memory_store: ObjectStore) -> None:
    """Killed after its commit and before the collection, no sink, manifest and hint lost: nothing is left of it."""
    chain = grow(memory_store, 12, collect_last=False)
    memory_store.delete([chain[-1].name, HINT])
    assert newest(memory_store) == chain[-2]


@pytest.mark.parametrize("sign", [FLOW, HINT, "runs/0000000000/" + "a" * 32 + ".arrow", "sinks/" + "0" * 20 + ".json"])
def test_an_empty_listing_never_starts_a_new_flow_over_an_old_one(store: ObjectStore, sign: str) -> None:
    grow(store, 3)
    store.put("runs/0000000000/" + "a" * 32 + ".arrow", b"rows")
    store.put("sinks/" + "0" * 20 + ".json", b"note")
    store.delete([name for name in store.list() if name != sign])
    for find in (newest, latest):
        with pytest.raises(errors.Corrupt, match="the manifests of this state are missing"):
            find(store)


def test_a_first_run_that_was_killed_is_no_flow(store: ObjectStore) -> None:
    store.put("runs/-000000001/" + "a" * 32 + ".arrow", b"rows of a definition")
    assert newest(store) is None


def test_flow_json_says_how_far_a_young_flow_is_and_then_rests(memory_store: ObjectStore) -> None:
    grow(memory_store, 8)
    young = memory_store.get(FLOW)
    assert b'"version": 7' in young
    memory_store.delete(memory_store.list())
    grow(memory_store, 20)
    assert b'"version": 8' in memory_store.get(FLOW), "commits after the first collection cost nothing more"


@pytest.mark.parametrize("data", [b"", b'{"flow_id": "x"}', b'{"flow_id": "x", "version": 1}\n00000000\n'])
def test_a_damaged_flow_json_is_named(memory_store: ObjectStore, data: bytes) -> None:
    from rejoinder.engine.publisher import Publisher

    chain = grow(memory_store, 3)
    memory_store.put(FLOW, data)
    following = chain[-1].successor(keep_versions=KEEP, epoch=3)
    with pytest.raises(errors.Corrupt, match=r"`flow.json` is damaged[\s\S]*delete `flow.json`"):
        Publisher(memory_store).publish(following, lambda: None)
    memory_store.delete([FLOW])
    Publisher(memory_store).publish(following, lambda: None)
    assert newest(memory_store) == following
