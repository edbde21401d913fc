"""Runs: what is written is read, in any number of parts; damage is noticed before a row is used."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import StateError
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, hashes
from rejoinder.kernels.arrow.sorting import LAST_HASH, hash_range
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs import run
from rejoinder.store.runs.run import RunRef, new_name, read_run, with_epoch, write_run
from tests.unit.kernels.arrow.tables import TYPES, array_of, same, samples
from tests.unit.store.runs.spines import WHOLE, delta, total


@pytest.fixture(scope="module")
def store() -> ObjectStore:
    return open_store("memory://test-run")


@pytest.fixture
def _fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close what this process has opened and written."""
    monkeypatch.setattr(run, "_opened", {})
    monkeypatch.setattr(run, "_own", {})


@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type_come_back(store: ObjectStore, name: str) -> None:
    values = samples(name)
    table = pa.table({"a": array_of(name, values), HASH: pa.array(range(len(values)), pa.uint64())})
    ref = write_run(store, table, epoch=3, level=0, bounds=WHOLE)
    assert same(read_run(store, ref), table)
    assert (ref.rows, ref.file_rows, ref.keys, ref.retractions) == (len(values), len(values), len(values), 0)
    assert ref.epochs == (3, 3) and ref.run == ref.name and ref.bytes == ref.size


def test_what_says_nothing_is_not_written(store: ObjectStore) -> None:
    table = delta([(1, 1), (2, 1)]).append_column(EPOCH, pa.array([7, 7]))
    ref = write_run(store, table, epoch=9, level=0, bounds=WHOLE)
    assert read_run(store, ref).column_names == ["a", HASH]
    assert ref.epochs == (7, 7)
    assert with_epoch(read_run(store, ref), ref)[EPOCH].to_pylist() == [7, 7]
    mixed = delta([(1, -1), (2, 1)]).append_column(EPOCH, pa.array([7, 8]))
    ref = write_run(store, mixed, epoch=9, level=0, bounds=WHOLE)
    assert read_run(store, ref).column_names == ["a", HASH, DIFF, EPOCH]
    assert ref.epochs == (7, 8) and ref.retractions == 1


@given(values=st.lists(st.integers(0, 10**6), max_size=40), parts=st.sampled_from([1, 2, 3, 7]))
def test_parts_of_a_run_are_the_run(store: ObjectStore, values: list[int], parts: int) -> None:
    whole = write_run(store, delta([(value, 1) for value in values]), epoch=0, level=0, bounds=WHOLE)
    clipped = [whole.clipped(*hash_range(part, parts)) for part in range(parts)]
    assert total(store, clipped) == Counter(values)
    assert sum(ref.rows for ref in clipped) == whole.rows and sum(ref.keys for ref in clipped) == whole.keys
    for ref in clipped:
        table = read_run(store, ref)
        hashed = hashes(table)
        assert table.num_rows == len(hashed) and all(ref.first <= value <= ref.last for value in hashed.tolist())
        assert ref.clipped(*WHOLE) is ref


def test_a_part_of_a_part_is_a_part(store: ObjectStore) -> None:
    ref = write_run(store, delta([(value, 1) for value in range(100)]), epoch=0, level=0, bounds=WHOLE)
    half = ref.clipped(0, LAST_HASH // 2)
    assert half.clipped(10, 20).first == 10 and half.clipped(10, LAST_HASH).last == LAST_HASH // 2
    assert half.overlaps(LAST_HASH // 2, LAST_HASH) and not half.overlaps(LAST_HASH // 2 + 1, LAST_HASH)


def test_a_reference_survives_json(store: ObjectStore) -> None:
    ref = write_run(store, delta([(1, 1)]), epoch=0, level=2, bounds=(5, LAST_HASH - 1), run="other", segment=4)
    text = json.dumps(ref.to_json())
    assert RunRef.from_json(json.loads(text)) == ref
    older = {**json.loads(text), "span": ["t", 1, 5]}  # when a run had one
    assert RunRef.from_json(older) == replace(ref, spans=(("t", 1, 5),))
    assert str(LAST_HASH - 1) not in text  # JSON readers lose such numbers


def test_no_two_attempts_share_a_name() -> None:
    assert len({new_name("runs", 5) for _ in range(100)}) == 100


@pytest.mark.usefixtures("_fresh_process")
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "longer"])
def test_damage_is_noticed(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path))
    ref = write_run(store, delta([(value, 1) for value in range(1000)]), epoch=0, level=0, bounds=WHOLE)
    monkeypatch.setattr(run, "_own", {})
    file = tmp_path / ref.name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.unlink()
    if damage != "missing":
        original = (
            bytes(data) if damage == "flipped" else bytes(data)[:-100] if damage == "truncated" else bytes(data) * 2
        )
        file.write_bytes(original)
    with pytest.raises(StateError) as raised:
        read_run(store, ref)
    error = raised.value
    assert ref.name in str(error)
    assert error.fact and error.detail and error.hint


@pytest.mark.usefixtures("_fresh_process")
def test_only_so_many_runs_stay_open(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "OPEN_RUNS", 3)
    refs = [write_run(store, delta([(value, 1)]), epoch=0, level=0, bounds=WHOLE) for value in range(10)]
    assert total(store, refs) == Counter(range(10))
    assert len(run._cache(store)) == 3
    assert total(store, refs) == Counter(range(10))
