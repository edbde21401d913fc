"""Lost, late and doubled answers of a PUT: a commit happens once, and a driver that was replaced learns it."""

from __future__ import annotations

import pytest

from rejoinder import errors
from rejoinder.store.commits import garbage
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.lost_commits import FLOW, hint_to
from rejoinder.store.commits.manifest import Manifest, name_of, versions
from rejoinder.store.commits.newest_manifest import latest, newest
from rejoinder.store.objects.object_store import ObjectStore
from tests.unreliable_store import unreliable

KEEP = 8


def grow(store: ObjectStore, base: Manifest | None, commits: int, writer: str = "live") -> Manifest:
    """Commit one version after the other, as one driver, and collect what is old."""
    for _ in range(commits):
        if base is None:
            base = Manifest.first(time_ms=0, writer=writer)
        else:
            base = base.successor(keep_versions=KEEP, writer=writer)
        commit(store, base)
        garbage.collect(store, KEEP, lambda _: set())
    assert base is not None
    return base


@pytest.mark.parametrize("fate", ["", "lost", "refused", "twice"])
def test_a_driver_that_slept_through_eleven_commits_is_fenced(store: ObjectStore, fate: str) -> None:
    line = unreliable(store)
    asleep = grow(store, None, 4)
    ours = asleep.successor(keep_versions=KEEP, epoch=0, writer="asleep")
    live: list[Manifest] = []

    def sleep() -> None:
        live.append(grow(store, asleep, 11))
        if fate:
            line.next(ours.name, fate)

    line.before[ours.name] = sleep
    with pytest.raises((errors.Fenced, errors.Unconfirmed)) as raised:
        commit(store, ours)
    if fate == "lost":
        assert isinstance(raised.value, errors.Unconfirmed)
        with pytest.raises(errors.Fenced):
            commit(store, ours)
    else:
        assert isinstance(raised.value, errors.Fenced)
    line.arrive()
    assert latest(store) == newest(store) == live[0]
    assert max(versions(store)) == live[0].version


@pytest.mark.parametrize("fate", ["", "lost"])
def test_a_first_commit_under_a_name_that_was_dropped_is_fenced_by_the_flow_marker(
    store: ObjectStore, fate: str
) -> None:
    """Two drivers begin a flow. One sleeps until the other's first manifest is dropped; its listings are stale, too."""
    line = unreliable(store)
    ours, live = Manifest.first(time_ms=0, writer="asleep"), list[Manifest]()

    def sleep() -> None:
        live.append(grow(store, None, KEEP + 3))
        line.hidden.add("manifests")
        if fate:
            line.next(ours.name, fate)

    line.before[ours.name] = sleep
    if fate == "lost":
        with pytest.raises(errors.Unconfirmed):
            commit(store, ours)
    with pytest.raises(errors.Fenced, match="another flow was started here"):
        commit(store, ours)
    assert not store.exists(ours.name)
    line.hidden.clear()
    assert latest(store) == newest(store) == live[0]


@pytest.mark.parametrize("commits", [1, KEEP, KEEP + 1, KEEP + 3])
@pytest.mark.parametrize("marks", ["stored", "lost"])
def test_a_first_commit_that_others_built_on_is_committed_or_fenced(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, commits: int, marks: str
) -> None:
    """Its answer is lost, and its listings are stale. Once it is dropped, it must not be committed a second time."""
    line = unreliable(store)
    ours = Manifest.first(time_ms=0, writer="first")
    line.next(ours.name, "lost")
    with pytest.raises(errors.Unconfirmed):
        commit(store, ours)
    with monkeypatch.context() as patch:
        if marks == "lost":  # a commit does not fail because of them
            patch.setattr("rejoinder.store.commits.commit.mark_flow", lambda *_: None)
        live = grow(store, ours, commits, writer="second")
    line.hidden.add("manifests")
    if commits <= KEEP:
        commit(store, ours)  # it is part of the chain
    else:
        with pytest.raises(errors.Fenced, match="newer versions were committed"):
            commit(store, ours)
        assert not store.exists(ours.name)
    line.hidden.clear()
    assert newest(store) == live


def test_a_fenced_driver_leaves_nothing_behind(store: ObjectStore) -> None:
    line = unreliable(store)
    asleep = grow(store, None, 4)
    ours = asleep.successor(keep_versions=KEEP, epoch=0, writer="asleep")

    def sleep() -> None:
        grow(store, asleep, 11)
        line.next(ours.name, "refused")

    line.before[ours.name] = sleep
    with pytest.raises(errors.Fenced):
        commit(store, ours)
    assert versions(store) == list(range(7, 15))


def test_requests_that_come_back_after_their_manifest_was_deleted_mislead_no_driver(store: ObjectStore) -> None:
    line = unreliable(store)
    base = grow(store, None, 2)
    for version in (2, 3):
        line.next(name_of(version), "twice")
    base = grow(store, base, 2)
    zombie = base.successor(keep_versions=KEEP, writer="zombie")  # of version 4, whose parent is 3
    live = grow(store, base, 12)
    line.arrive()
    store.put("manifests/latest", hint_to(3))
    assert versions(store)[:2] == [2, 3] and newest(store) == live
    with pytest.raises(errors.Fenced):
        commit(store, zombie)
    assert newest(store) == live


@pytest.mark.parametrize("fate", ["lost", "late", "failed"])
def test_a_commit_that_is_sent_again_is_one_commit(store: ObjectStore, fate: str) -> None:
    line = unreliable(store)
    base = grow(store, None, 3)
    ours = base.successor(keep_versions=KEEP, epoch=0)
    line.next(ours.name, fate)
    with pytest.raises(errors.Unconfirmed, match=r"version 3 \(epoch 0\) may or may not be stored") as raised:
        commit(store, ours)
    assert "connection reset" in str(raised.value) and raised.value.code == "RJ406"
    commit(store, ours)
    line.arrive()
    assert latest(store) == ours and versions(store) == [0, 1, 2, 3]


def test_a_commit_that_another_driver_built_on_is_one(store: ObjectStore) -> None:
    line = unreliable(store)
    base = grow(store, None, 3)
    ours = base.successor(keep_versions=KEEP, epoch=0, writer="first")
    line.next(ours.name, "lost")
    with pytest.raises(errors.Unconfirmed):
        commit(store, ours)
    theirs = grow(store, ours, 1, writer="second")
    commit(store, ours)  # it is part of the chain
    assert latest(store) == theirs


def test_writers_are_counted(memory_store: ObjectStore) -> None:
    base = grow(memory_store, None, 2, writer="a")
    assert (base.writer, base.writer_epoch) == ("a", 0)
    base = grow(memory_store, base, 2, writer="b")
    assert (base.writer, base.writer_epoch) == ("b", 1)
    assert grow(memory_store, base, 1, writer="a").writer_epoch == 2


@pytest.mark.parametrize("sign", [FLOW, "manifests/latest", "runs/0000000003/ab.arrow"])
def test_no_new_flow_begins_over_an_old_one(store: ObjectStore, sign: str) -> None:
    grow(store, None, 3)
    store.delete([name for name in store.list() if name != sign])
    if sign.startswith("runs"):
        store.write(sign, b"")
    for ask in (latest, newest):
        with pytest.raises(errors.Corrupt, match=rf"manifests of this state are missing[^$]*`{sign}`[^$]*restore"):
            ask(store)


def test_an_empty_listing_is_not_an_empty_store(store: ObjectStore) -> None:
    line = unreliable(store)
    base = grow(store, None, 3)
    line.hidden.add("manifests")
    assert newest(store) == base
    store.delete(["manifests/latest"])
    with pytest.raises(errors.Corrupt, match="manifests of this state are missing"):
        newest(store)


def test_runs_of_a_first_definition_are_no_flow(store: ObjectStore) -> None:
    """A process may die before the first commit, when the runs of a view without sources are written."""
    store.write("runs/-000000001/ab.arrow", b"")
    assert latest(store) is None and newest(store) is None
    grow(store, None, 1)


def test_a_flow_that_begins_while_another_driver_looks_is_not_called_lost(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Manifest.first(time_ms=0, writer="other")
    exists, begun = ObjectStore.exists, list[bool]()

    def begin_then_look(self: ObjectStore, name: str) -> bool:
        if not begun:
            begun.append(True)
            commit(self, first)  # after the empty listing, before the signs of use are looked for
        return exists(self, name)

    monkeypatch.setattr(ObjectStore, "exists", begin_then_look)
    found = latest(store)
    assert found is not None and found.checksum == first.checksum


def test_late_requests_bring_back_a_hint_and_manifests_of_replaced_drivers(store: ObjectStore) -> None:
    """Version 3 of one driver, version 4 of another, and a hint to it, after both were dropped: the listing decides."""
    base = grow(store, None, 3)
    strangers = [base.successor(keep_versions=KEEP, writer=writer) for writer in ("one", "two")]
    child = strangers[1].successor(keep_versions=KEEP, writer="two")
    live = grow(store, base, 12)
    assert versions(store)[0] > child.version
    for manifest in (strangers[0], child):
        store.put(manifest.name, manifest.to_bytes())
    store.put("manifests/latest", hint_to(child.version))
    assert latest(store) == newest(store) == live
