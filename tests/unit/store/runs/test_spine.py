"""The invariants of a spine, one test each (see the docstring of `rejoinder.store.runs.spine`)."""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, hashes
from rejoinder.kernels.arrow.ordered import sorted_by_hash_and_value
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs import spine as spines
from rejoinder.store.runs.spine import Compaction, Spine, level_of
from tests.unit.store.runs.spines import Filled, total

FAN = 4


@pytest.fixture
def store() -> ObjectStore:
    return open_store(f"memory://spine-{uuid.uuid4().hex}")


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels and pieces so small that every merge takes several epochs."""
    monkeypatch.setattr(spines, "SMALLEST_LEVEL_ROWS", 8)
    monkeypatch.setattr(spines, "PIECE_BYTES", 2_000)


EPOCHS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([-1, 1, 1, 2])), max_size=20), max_size=25)


@pytest.mark.parametrize("pieces", [512, 1 << 20])
@given(epochs=EPOCHS)
def test_merging_never_changes_the_sum(pieces: int, epochs: list[list[tuple[int, int]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spines, "SMALLEST_LEVEL_ROWS", 2)
        patch.setattr(spines, "PIECE_BYTES", pieces)
        filled = Filled(open_store("memory://sum"), Compaction(2))
        expected: Counter[int] = Counter()
        for rows in epochs:
            filled.add(rows)
            for value, diff in rows:
                expected[value] += diff
            assert filled.content == Counter({value: count for value, count in expected.items() if count})


@pytest.mark.usefixtures("_small")
def test_the_number_of_runs_is_logarithmic(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    most = 0
    for epoch in range(600):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
        most = max(most, filled.spine.runs)
    levels = math.log(6_000 / 8, FAN) + 2
    assert filled.content == Counter(range(6_000))
    assert most <= 2 * FAN * levels, f"{most} runs of 6,000 rows"


@pytest.mark.usefixtures("_small")
def test_a_level_holds_fewer_runs_than_the_fan_but_for_those_being_merged(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    for epoch in range(300):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
        growing = {ref.into for ref in filled.spine.refs if ref.into}
        for level in {ref.level for ref in filled.spine.refs}:
            at_rest = {r.run for r in filled.spine.refs if r.level == level and not r.into and r.run not in growing}
            assert len(at_rest) < FAN


@pytest.mark.usefixtures("_small")
def test_a_row_is_rewritten_once_per_level(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    rows = 6_000
    for epoch in range(rows // 10):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
    written = sum(ref.file_rows for ref in filled.files.values())
    assert max(ref.level for ref in filled.spine.refs) <= math.log(rows / 8, FAN) + 1
    assert written <= rows * (math.log(rows / 8, FAN) + 2)


@pytest.mark.usefixtures("_small")
def test_no_step_of_a_merge_is_larger_than_a_piece(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    for epoch in range(400):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
    pieces = [ref for ref in filled.files.values() if ref.run != ref.name]
    assert pieces, "nothing was merged"
    overhead = 1_000  # schema and footer of a file
    # hashes are spread evenly, but for chance
    assert max(ref.size for ref in pieces) <= 2 * spines.PIECE_BYTES + overhead


@pytest.mark.usefixtures("_small")
def test_no_epoch_pays_for_the_whole_state(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    for epoch in range(600):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
    levels = math.log(6_000 / 8, FAN) + 2
    piece_rows = spines.PIECE_BYTES // 16
    assert max(filled.merged_rows) <= 10 * (levels + spines.SPARE_CREDIT) * 4 + piece_rows
    assert max(filled.merged_rows[300:]) < 3_000 / 4


@pytest.mark.usefixtures("_small")
def test_readers_need_not_know_of_a_merge_under_way(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    under_way = 0
    for epoch in range(200):
        filled.add([(at, 1 if epoch % 3 else -1) for at in range(epoch % 17 + 1)])
        expected: Counter[int] = Counter()
        for earlier in range(epoch + 1):
            for at in range(earlier % 17 + 1):
                expected[at] += 1 if earlier % 3 else -1
        assert filled.content == Counter({value: count for value, count in expected.items() if count})
        under_way += any(ref.into for ref in filled.spine.refs)
    assert under_way, "no merge was ever under way between two epochs"


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_a_spine_can_be_cut_into_any_number_of_hash_ranges(store: ObjectStore, parts: int) -> None:
    filled = Filled(store, Compaction(FAN))
    for epoch in range(57):
        filled.add([(epoch * 10 + at, 1) for at in range(10)])
    cut = [filled.spine.within(*hash_range(part, parts)) for part in range(parts)]
    assert sum((total(store, part.refs) for part in cut), Counter()) == filled.content
    assert sum(part.rows for part in cut) == filled.spine.rows
    for number, part in enumerate(cut):
        merged = spines.maintain(store, part, Compaction(FAN), epoch=57, bounds=hash_range(number, parts))
        assert total(store, merged.refs) == total(store, part.refs)


@pytest.mark.usefixtures("_small")
def test_parts_of_a_merge_under_way_can_be_put_together_again(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(FAN))
    while not (filled.epoch > 60 and any(ref.into for ref in filled.spine.refs)):
        filled.add([(filled.epoch * 10 + at, 1) for at in range(10)])
    before = filled.content
    parts = [filled.spine.within(*hash_range(part, 3)) for part in range(3)]
    advanced = spines.maintain(store, Spine(parts[1].refs, 10_000), Compaction(FAN), epoch=99, bounds=hash_range(1, 3))
    whole = Spine((*parts[0].refs, *advanced.refs, *parts[2].refs), 10_000)
    assert total(store, whole.refs) == before
    done = spines.maintain(store, whole, Compaction(FAN), epoch=100, bounds=(0, 2**64 - 1))
    assert total(store, done.refs) == before
    assert not any(ref.into for ref in done.refs)


def test_what_cancels_vanishes(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spines, "SMALLEST_LEVEL_ROWS", 8)
    filled = Filled(store, Compaction(2))
    for _ in range(64):
        filled.add([(at, 1) for at in range(8)])
        filled.add([(at, -1) for at in range(8)])
    assert filled.content == Counter()
    assert filled.spine.rows <= 32


@pytest.mark.parametrize("since", [0, 3, 8])
def test_a_changelog_keeps_the_epochs_after_since(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, since: int
) -> None:
    monkeypatch.setattr(spines, "SMALLEST_LEVEL_ROWS", 2)
    filled = Filled(store, Compaction(2, changelog=True))
    expected: list[Counter[int]] = []
    for epoch in range(10):
        filled.add([(epoch % 3, 1), (7, 1 if epoch % 2 else -1)], since=since)
        last = expected[-1] if expected else Counter[int]()
        now = Counter(last)
        now[epoch % 3] += 1
        now[7] += 1 if epoch % 2 else -1
        expected.append(now)
    for epoch in range(since, 10):
        nonzero = Counter({value: count for value, count in expected[epoch].items() if count})
        assert total(store, filled.spine.refs, until=epoch) == nonzero


def test_a_large_load_is_not_merged_with_small_epochs() -> None:
    small, large = level_of(100, FAN), level_of(10_000_000, FAN)
    assert small == 0 and large >= 5
    assert [level_of(spines.SMALLEST_LEVEL_ROWS * FAN**level, FAN) for level in range(4)] == [0, 1, 2, 3]


def test_a_spine_survives_json(store: ObjectStore) -> None:
    filled = Filled(store, Compaction(2))
    filled.add([(1, 1), (2, -1)])
    filled.spine = Spine(filled.spine.refs, 77)
    assert Spine.from_json(json.loads(json.dumps(filled.spine.to_json()))) == filled.spine
    assert filled.spine.bytes == sum(ref.size for ref in filled.spine.refs)


@given(
    runs=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.none() | st.integers(-3, 3), st.sampled_from([-1, 1, 1])), max_size=12
        ),
        min_size=1,
        max_size=4,
    )
)
def test_merged_runs_are_in_order(runs: list[list[tuple[int, int | None, int]]]) -> None:
    expected: Counter[tuple[int, int | None]] = Counter()
    tables = []
    for rows in runs:
        keys, times = pa.array([h for h, _, _ in rows], pa.uint64()), pa.array([t for _, t, _ in rows], pa.int64())
        table = pa.table({"k": keys, "t": times, HASH: keys, DIFF: pa.array([diff for _, _, diff in rows], pa.int64())})
        tables.append(sorted_by_hash_and_value(table, "t"))
        for hashed, time, diff in rows:
            expected[hashed, time] += diff
    result = spines.compact(tables, Compaction(2, order="t"))
    listed = list(zip(hashes(result).tolist(), result["t"].to_pylist(), strict=True))
    assert listed == sorted(listed, key=lambda row: (row[0], row[1] is not None, row[1] or 0))
    found: Counter[tuple[int, int | None]] = Counter()
    for row, diff in zip(listed, diffs(result).tolist(), strict=True):
        found[row] += diff
    assert found == Counter({row: count for row, count in expected.items() if count})
