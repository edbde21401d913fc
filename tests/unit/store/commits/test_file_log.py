"""The log of files that a source has read: order, size of what the manifest holds, damage."""

from __future__ import annotations

import random

import pytest

from rejoinder.errors import Corrupt
from rejoinder.store.commits.file_log import RECENT, FileLog, FileRead
from rejoinder.store.objects.object_store import ObjectStore, open_store


@pytest.fixture
def store(tmp_path: object) -> ObjectStore:
    return open_store(str(tmp_path))


def filled(store: ObjectStore, sizes: list[int]) -> tuple[FileLog, list[FileRead]]:
    log, expected = FileLog(), []
    for epoch, size in enumerate(sizes):
        read = [FileRead(f'/in/{epoch} "{number}".csv', 1000 * epoch + number, f"{number}@7") for number in range(size)]
        log = FileLog.from_json(log.append(store, epoch, read).to_json())
        expected += read
    return log, expected


@pytest.mark.parametrize("seed", range(8))
def test_a_log_gives_back_all_entries_in_order(store: ObjectStore, seed: int) -> None:
    draw = random.Random(seed)
    log, expected = filled(store, [draw.choice([0, 1, 3, 40, 500]) for _ in range(60)])
    assert log.read(store) == expected and log.entries == len(expected)


def test_a_manifest_does_not_grow_with_the_number_of_files(store: ObjectStore) -> None:
    log, expected = filled(store, [1] * 3000)
    assert len(expected) == 3000 and len(log.recent) <= RECENT and len(log.chunks) <= 6


def test_the_newest_epoch_is_known_by_its_size(store: ObjectStore) -> None:
    log, expected = filled(store, [5, 100, 7, 0])
    assert log.last == 7 and log.read(store)[-7:] == expected[-7:]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_a_damaged_chunk_is_named(store: ObjectStore, damage: str) -> None:
    log, _ = filled(store, [100])
    name = log.chunks[0][0].name
    data = bytearray(store.get(name))
    data[len(data) // 2] ^= 4
    match damage:
        case "gone":
            store.delete([name])
        case _:
            store.put(name, {"flip": bytes(data), "cut": bytes(data[:9]), "empty": b""}[damage])
    with pytest.raises(Corrupt, match=name):
        log.read(store)
