"""A commit is one manifest: whole, chained, and won by exactly one driver."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import pytest

from rejoinder import errors
from rejoinder.store.commits import manifest as manifests
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.manifest import Manifest, name_of
from rejoinder.store.commits.newest_manifest import latest, load
from rejoinder.store.objects.object_store import ObjectStore
from tests.stores import SpawnPython

FULL = Manifest.first(
    time_ms=1_700_000_000_000,
    plan="p1",
    catalog={"orders": {"kind": "stream", "text": 'naïve ☃ " \\ \n'}},
    spines={"orders by id": [{"name": "runs/a", "hash": "18446744073709551615"}]},
    extra={"watermarks": {"orders.ts": None}, "late": 0, "ratio": 0.1, "big": 2**63},
)


def grow(store: ObjectStore, commits: int, keep_versions: int = 10) -> list[Manifest]:
    """Commit a first manifest and one per epoch after it."""
    chain = [Manifest.first(time_ms=0)]
    commit(store, chain[0])
    for epoch in range(commits - 1):
        chain.append(chain[-1].successor(keep_versions=keep_versions, epoch=epoch, time_ms=epoch * 10))
        commit(store, chain[-1])
    return chain


def test_bytes_come_back_as_they_were() -> None:
    data = FULL.to_bytes()
    assert Manifest.from_bytes(data) == FULL
    assert Manifest.from_bytes(data).to_bytes() == data
    assert Manifest.from_bytes(data).checksum == FULL.checksum
    body, checksum = data.splitlines()
    assert json.loads(body)["catalog"] == FULL.catalog and json.loads(checksum) == FULL.checksum


def test_successors_are_chained() -> None:
    second = FULL.successor(keep_versions=2, epoch=0, time_ms=5, spines={})
    third = second.successor(keep_versions=2, plan="p2")
    assert (second.version, second.epoch, second.time_ms, second.spines, second.plan) == (1, 0, 5, {}, "p1")
    assert (third.version, third.epoch, third.time_ms, third.spines, third.plan) == (2, 0, 5, {}, "p2")
    assert second.parent == FULL.checksum and third.parent == second.checksum
    assert third.flow_id == FULL.flow_id and len({FULL.commit_id, second.commit_id, third.commit_id}) == 3
    assert third.epochs == ((0, 5, 1), (0, 5, 2))


def test_every_changed_byte_is_seen() -> None:
    data = FULL.to_bytes()
    for position in range(len(data)):
        for bit in (1, 0x80):
            damaged = bytearray(data)
            damaged[position] ^= bit
            with pytest.raises(errors.Corrupt, match="`manifests/7`"):
                Manifest.from_bytes(bytes(damaged), "manifests/7")


def test_every_lost_or_added_byte_is_seen() -> None:
    data = FULL.to_bytes()
    for position in range(len(data)):
        for damaged in (
            data[:position],
            data[:position] + data[position + 1 :],
            data[:position] + b"\n" + data[position:],
        ):
            with pytest.raises(errors.Corrupt, match="`manifests/7`"):
                Manifest.from_bytes(damaged, "manifests/7")
    for added in (b"\n", b"x", data):
        with pytest.raises(errors.Corrupt):
            Manifest.from_bytes(data + added)


def _sealed(parts: object, algorithm: str = "blake2b") -> bytes:
    body = json.dumps(parts).encode()
    return body + f'\n"{algorithm}:{hashlib.blake2b(body, digest_size=16).hexdigest()}"\n'.encode()


@pytest.mark.parametrize("algorithm", ["blake2b", "another one"])
def test_a_newer_format_asks_for_an_upgrade(algorithm: str) -> None:
    parts = {**json.loads(FULL.to_bytes().splitlines()[0]), "format": 7, "unheard of": 1}
    with pytest.raises(errors.NewerFormat, match=r"`m` has format 7, and this version reads up to 2\n.*upgrade"):
        Manifest.from_bytes(_sealed(parts, algorithm), "m")


@pytest.mark.parametrize("parts", [[], "x", None, {}, {"format": "1"}, {"format": 2}, {"format": 2, "epochs": [[1]]}])
def test_wrong_fields_are_corrupt(parts: object) -> None:
    with pytest.raises(errors.Corrupt, match="`m`"):
        Manifest.from_bytes(_sealed(parts), "m")


def test_an_unknown_field_is_corrupt() -> None:
    parts = {**json.loads(FULL.to_bytes().splitlines()[0]), "surprise": 1}
    with pytest.raises(errors.Corrupt, match="surprise"):
        Manifest.from_bytes(_sealed(parts), "m")


def test_latest_follows_the_commits(store: ObjectStore) -> None:
    assert latest(store) is None
    chain = grow(store, 1)
    assert latest(store) == chain[0]
    for _ in range(3):
        known = chain[-1]
        assert latest(store, known) is known
        chain.append(known.successor(keep_versions=10, epoch=known.epoch + 1))
        commit(store, chain[-1])
        assert latest(store) == latest(store, known) == latest(store, chain[0]) == chain[-1]
    assert [load(store, version) for version in range(4)] == chain
    assert "manifests/00000000000000000003.json" in store.list("manifests")
    with pytest.raises(errors.NotCommitted, match=r"version 4[^$]*manifests/00000000000000000004.json"):
        load(store, 4)


@pytest.mark.parametrize(
    "hint", [None, b"", b"x", b"-1", b"0", b"2", b"4", b"99", b"9" * 30, b"\xff\x00", b" 3", b"{}"]
)
def test_the_hint_may_be_anything(store: ObjectStore, hint: bytes | None) -> None:
    chain = grow(store, 5)
    store.delete(["manifests/latest"]) if hint is None else store.put("manifests/latest", hint)
    assert latest(store) == chain[-1]


def test_a_hint_far_behind(memory_store: ObjectStore) -> None:
    chain = grow(memory_store, 60)
    for hint in (b"0", b"1", b"30", b"50", b"58"):
        memory_store.put("manifests/latest", hint)
        assert latest(memory_store) == chain[-1]
    assert latest(memory_store, chain[3]) == chain[-1]


def test_latest_does_not_list(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = grow(memory_store, 50)
    monkeypatch.setattr(memory_store, "entries", lambda prefix: pytest.fail("listed"))
    assert latest(memory_store) == latest(memory_store, chain[-2]) == chain[-1]


def test_a_hint_that_cannot_be_written_fails_no_commit(
    memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, data: bytes) -> None:
        raise errors.StorageFailed("no space left")

    monkeypatch.setattr(memory_store, "put", refuse)
    chain = grow(memory_store, 3)
    assert latest(memory_store) == chain[-1]


def test_the_second_driver_is_fenced(store: ObjectStore) -> None:
    base = grow(store, 2)[-1]
    ours, theirs = (base.successor(keep_versions=10, epoch=1, time_ms=ms) for ms in (7, 8))
    commit(store, theirs)
    with pytest.raises(errors.Fenced, match=r"version 2 \(epoch 1\)[^$]*epoch 1[^$]*Hint: run one driver"):
        commit(store, ours)
    assert latest(store) == theirs


def test_equal_looking_commits_of_two_drivers_are_two(store: ObjectStore) -> None:
    base = grow(store, 2)[-1]
    commit(store, base.successor(keep_versions=10, epoch=1, time_ms=7))
    with pytest.raises(errors.Fenced):
        commit(store, base.successor(keep_versions=10, epoch=1, time_ms=7))


def test_two_first_commits(store: ObjectStore) -> None:
    commit(store, Manifest.first(time_ms=0))
    with pytest.raises(errors.Fenced):
        commit(store, Manifest.first(time_ms=0))


def test_a_fencing_manifest_that_is_damaged(memory_store: ObjectStore) -> None:
    base = grow(memory_store, 2)[-1]
    memory_store.put(name_of(2), b"damaged")
    with pytest.raises(errors.Fenced, match="cannot be read"):
        commit(memory_store, base.successor(keep_versions=10))


def test_the_same_commit_again_is_no_second_one(store: ObjectStore) -> None:
    base = grow(store, 2)[-1]
    ours = base.successor(keep_versions=10, epoch=1)
    commit(store, ours)
    commit(store, ours)
    commit(store, Manifest.from_bytes(ours.to_bytes()))
    assert latest(store) == ours


def test_a_lost_answer(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    base = grow(memory_store, 2)[-1]
    ours = base.successor(keep_versions=10, epoch=1)
    put = memory_store.put_if_absent
    monkeypatch.setattr(memory_store, "put_if_absent", lambda name, data: put(name, data) and False)
    commit(memory_store, ours)
    assert latest(memory_store) == ours


def test_a_store_that_says_taken_and_shows_nothing(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    base = grow(memory_store, 2)[-1]
    monkeypatch.setattr(memory_store, "put_if_absent", lambda name, data: False)
    with pytest.raises(errors.StorageFailed, match="If-None-Match"):
        commit(memory_store, base.successor(keep_versions=10))


def test_a_store_that_overwrites_is_refused_at_the_start(
    memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(name: str, data: bytes) -> bool:
        memory_store.put(name, data)
        return True

    monkeypatch.setattr(memory_store, "put_if_absent", overwrite)
    with pytest.raises(errors.StorageFailed, match=r"cannot hold state[^$]*If-None-Match"):
        commit(memory_store, Manifest.first(time_ms=0))
    assert memory_store.list() == []


def test_a_driver_that_slept_until_its_version_was_dropped(store: ObjectStore) -> None:
    chain = grow(store, 9)
    asleep, first = chain[2].successor(keep_versions=10, epoch=99), Manifest.first(time_ms=9)
    for dropped in chain[:6]:
        store.delete([dropped.name])
    for late in (asleep, first):
        with pytest.raises(errors.Fenced, match="taken over"):
            commit(store, late)
        assert not store.exists(late.name)
        assert latest(store) == chain[-1]


@pytest.mark.parametrize("version", [0, 3])
def test_a_driver_that_slept_inside_its_commit(
    memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    chain = grow(memory_store, 3)
    ours = chain[-1].successor(keep_versions=10, epoch=99) if version else Manifest.first(time_ms=9)
    if not version:
        memory_store.delete(memory_store.list())
        chain = []
    others: list[Manifest] = []

    def sleep_then_put(name: str, data: bytes) -> bool:
        monkeypatch.undo()
        for _ in range(6):  # meanwhile, another driver …
            known = (others or chain)[-1] if others or chain else None
            others.append(known.successor(keep_versions=2) if known else Manifest.first(time_ms=1))
            commit(memory_store, others[-1])
        memory_store.delete([name_of(version) for version in range(6)][: others[-1].version - 1])  # … and its collector
        return memory_store.put_if_absent(name, data)

    monkeypatch.setattr(memory_store, "put_if_absent", sleep_then_put)
    with pytest.raises(errors.Fenced, match="taken over"):
        commit(memory_store, ours)
    # It was published where nobody looks, whatever the hint says.
    for hint in (None, b"%d" % version, b"%d" % (version + 1)):
        memory_store.delete(["manifests/latest"]) if hint is None else memory_store.put("manifests/latest", hint)
        assert latest(memory_store) == others[-1]


def test_a_driver_that_slept_inside_its_first_commit_until_that_was_dropped(
    memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Manifest.first(time_ms=9)
    chain = [ours]

    def put_then_sleep(name: str, data: bytes) -> bool:
        if name != ours.name or memory_store.find(name) is None:
            return put(name, data)
        monkeypatch.undo()
        for _ in range(6):
            chain.append(chain[-1].successor(keep_versions=2))
            commit(memory_store, chain[-1])
        memory_store.delete([each.name for each in chain[:5]])
        return put(name, data)

    put = memory_store.put_if_absent
    monkeypatch.setattr(memory_store, "put_if_absent", put_then_sleep)
    with pytest.raises(errors.Fenced, match="taken over"):
        commit(memory_store, ours)
    assert not memory_store.exists(ours.name) and latest(memory_store) == chain[-1]


def test_latest_is_not_misled_by_a_collector(memory_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = grow(memory_store, 5)
    find = memory_store.find

    def collect_first(name: str) -> bytes | None:
        if name == name_of(5):  # the probe above what we know: by then, much has happened
            monkeypatch.undo()
            for _ in range(5):
                chain.append(chain[-1].successor(keep_versions=2))
                commit(memory_store, chain[-1])
            for version in range(8):
                memory_store.delete([name_of(version)])
        return find(name)

    monkeypatch.setattr(memory_store, "find", collect_first)
    assert latest(memory_store) == chain[-1]
    assert latest(memory_store, chain[2]) == chain[-1]


def test_an_old_copy_restored_over_a_newer_state(store: ObjectStore) -> None:
    chain = grow(store, 5)
    store.put(name_of(3), chain[2].successor(keep_versions=10, epoch=2, time_ms=77).to_bytes())
    for hint in (b"4", b"3", b"2", b"x"):
        store.put("manifests/latest", hint)
        with pytest.raises(errors.Corrupt, match=r"do not belong together[^$]*0004.json`[^$]*0003.json`[^$]*restore"):
            latest(store)
    store.delete([name_of(4)])
    with pytest.raises(errors.Corrupt, match="do not belong together"):
        commit(store, chain[3].successor(keep_versions=10))
    assert not store.exists(name_of(4))


def test_damage_is_reported_and_the_epoch_before_stays_readable(store: ObjectStore) -> None:
    chain = grow(store, 4)
    data = chain[3].to_bytes()
    for damaged in (data[:-1], data[:20] + b"?" + data[21:], b""):
        store.put(name_of(3), damaged)
        with pytest.raises(errors.Corrupt, match=name_of(3)):
            latest(store)
        assert load(store, 2) == chain[2]
    store.put(name_of(3), chain[2].to_bytes())
    with pytest.raises(errors.Corrupt, match="holds version 2"):
        load(store, 3)


def test_two_drivers_race(shared_store: ObjectStore, spawn_python: SpawnPython) -> None:
    grow(shared_store, 1)
    code = """
import sys
from rejoinder import errors
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.newest_manifest import latest
me, won = sys.stdin.readline().strip(), []
print("ready", flush=True)
sys.stdin.readline()
while True:
    base = latest(store)
    if base.version >= 12:
        break
    ours = base.successor(keep_versions=50, epoch=base.epoch + 1, extra={"by": me})
    try:
        commit(store, ours)
        won.append(ours.version)
    except errors.Fenced:
        pass
print(*won)
"""
    drivers = {f"driver {i}": spawn_python(code, shared_store) for i in range(2)}
    for name, driver in drivers.items():
        assert driver.stdin and driver.stdout
        driver.stdin.write(name + "\n")
        driver.stdin.flush()
        assert driver.stdout.readline() == "ready\n"
    for driver in drivers.values():
        assert driver.stdin
        driver.stdin.write("go\n")
        driver.stdin.flush()
    claims = {
        version: name for name, driver in drivers.items() for version in map(int, driver.communicate()[0].split())
    }
    chain = [load(shared_store, version) for version in range(13)]
    assert claims == {each.version: each.extra["by"] for each in chain[1:]}
    for older, newer in pairwise(chain):
        manifests.check_chain(older, newer)
