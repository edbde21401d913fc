"""The timeline: when each epoch was committed, however many there are."""

from __future__ import annotations

import json

import pytest

from rejoinder.errors import Corrupt, NotCommitted
from rejoinder.state import timeline
from rejoinder.state.timeline import Timeline
from rejoinder.store.objects.object_store import open_store


def test_old_entries_move_to_blocks_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "BLOCK", 4)
    store = open_store("memory://timeline")
    line = Timeline()
    for epoch in range(50):
        line = line.after(store, epoch, 1000 * epoch, since=epoch - 20)
        assert len(line.recent) < 8
    assert Timeline.from_json(json.loads(json.dumps(line.to_json()))) == line
    times = line.times(store)
    assert set(times) >= set(range(29, 50)) and len(times) <= 20 + 8
    assert all(times[epoch] == 1000 * epoch for epoch in times)
    assert line.files() == {ref.name for _, _, ref in line.blocks}


@pytest.mark.parametrize("damage", [b"", b"[]", b"\x00[[0, 1000]]", None])
def test_a_damaged_block_is_named(monkeypatch: pytest.MonkeyPatch, damage: bytes | None) -> None:
    monkeypatch.setattr(timeline, "BLOCK", 4)
    store = open_store("memory://timeline-damage")
    line = Timeline()
    for epoch in range(9):
        line = line.after(store, epoch, 1000 * epoch, since=-1)
    (name,) = line.files()
    if damage is None:
        store.put(name, store.get(name).replace(b"1000", b"9000"))
    else:
        store.put(name, damage)
    for ask in (line.times, lambda store: line.epoch_at(store, 5000)):
        with pytest.raises(Corrupt, match=r"a block of the times of epochs fails its checksum"):
            ask(store)
    store.delete([name])
    with pytest.raises(Corrupt, match="is missing"):
        line.times(store)


def test_the_epoch_at_a_time() -> None:
    store = open_store("memory://timeline-at")
    line = Timeline(((3, 100), (4, 200), (5, 200), (6, 350)))
    assert [line.epoch_at(store, time) for time in (100, 199, 200, 349, 350, 9999)] == [3, 3, 5, 5, 6, 6]
    with pytest.raises(NotCommitted):
        line.epoch_at(store, 99)
