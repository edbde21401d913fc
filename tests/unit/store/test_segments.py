"""Time segments: cut by time, dropped whole, never merged with each other."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from rejoinder.kernels.columns import HASH, contiguous
from rejoinder.kernels.hashing import hash_rows
from rejoinder.kernels.sorting import LAST_HASH, order_by_hash
from rejoinder.store.objects import ObjectStore, open_store
from rejoinder.store.run import RunRef, read_run, write_run
from rejoinder.store.segments import Segments
from rejoinder.store.spine import Forgetting, Merging, Spine, insert, level_of, maintain
from rejoinder.store.times import TIMELESS, times_of

WHOLE = (0, LAST_HASH)
HOURLY = Segments("at", 60)


def rows(ids: list[int], times: list[int | None]) -> pa.Table:
    table = pa.table({"id": pa.array(ids, pa.int64()), "at": pa.array(times, pa.int64())})
    hashes = hash_rows([table.column("id")], table.num_rows)
    order = order_by_hash(hashes)
    return table.take(pa.array(order)).append_column(HASH, pa.array(hashes[order]))


def added(store: ObjectStore, spine: Spine, table: pa.Table, epoch: int, fan: int = 2) -> Spine:
    for segment, part in HOURLY.split(table):
        level = level_of(part.num_rows, fan)
        ref = write_run(store, part, epoch=epoch, level=level, bounds=WHOLE, segment=segment)
        spine = insert(spine, ref)
    return maintain(store, spine, Merging(fan), epoch=epoch, bounds=WHOLE)


def content(store: ObjectStore, spine: Spine) -> list[tuple[int, int | None]]:
    tables = [read_run(store, ref) for ref in spine.refs]
    if not tables:
        return []
    whole = contiguous(tables)
    return sorted(zip(whole["id"].to_pylist(), whole["at"].to_pylist(), strict=True), key=repr)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return open_store(f"memory://segments-{request.node.name}")


def test_split_keeps_every_row_and_its_order() -> None:
    table = rows([1, 2, 3, 4, 5], [0, 59, 60, 125, None])
    parts = dict(HOURLY.split(table))
    assert sorted(parts) == [0, 1, 2, TIMELESS]
    assert sorted(parts[0]["id"].to_pylist()) == [1, 2]
    assert sum(part.num_rows for part in parts.values()) == 5
    for part in parts.values():
        assert np.all(np.diff(part[HASH].to_numpy().astype(object)) >= 0)


def test_runs_of_different_segments_are_never_merged(store: ObjectStore) -> None:
    spine = Spine()
    for epoch in range(16):
        spine = added(store, spine, rows([epoch * 2, epoch * 2 + 1], [epoch * 10, epoch * 10 + 5]), epoch)
    for ref in spine.refs:
        assert {time // 60 for time in read_run(store, ref)["at"].to_pylist()} == {ref.segment}
    assert len(content(store, spine)) == 32


def test_a_segment_that_is_over_is_dropped_without_reading_a_row(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spine = Spine()
    for epoch in range(6):
        spine = added(store, spine, rows([epoch], [epoch * 60]), epoch)
    monkeypatch.setattr(ObjectStore, "map", lambda *_: pytest.fail("a run was read"))
    kept, dropped = HOURLY.expire(spine, 179)
    assert sorted(ref.segment for ref in dropped) == [0, 1]
    assert sorted(ref.segment for ref in kept.refs) == [2, 3, 4, 5]
    assert kept.bytes + sum(ref.bytes for ref in dropped) == spine.bytes


def test_rows_without_a_time_are_never_over(store: ObjectStore) -> None:
    spine = added(store, Spine(), rows([1, 2], [None, 5]), 0)
    kept, dropped = HOURLY.expire(spine, 1 << 40)
    assert [ref.segment for ref in dropped] == [0]
    assert content(store, kept) == [(1, None)]


def timed(store: ObjectStore, table: pa.Table, epoch: int) -> Spine:
    return Spine((write_run(store, table, epoch=epoch, level=0, bounds=WHOLE, time="at"),))


def test_a_merge_leaves_out_what_is_below_the_bound(store: ObjectStore) -> None:
    spine = Spine((*timed(store, rows([1, 2, 3], [0, 30, 59]), 0).refs, *timed(store, rows([4], [31]), 1).refs))
    merged = maintain(store, spine, Merging(2, forgetting=Forgetting("at", 31)), epoch=1, bounds=WHOLE)
    assert content(store, merged) == [(3, 59), (4, 31)]
    assert [ref.span for ref in merged.refs] == [("at", 31, 59)]


def test_a_run_is_over_when_its_largest_time_is(store: ObjectStore) -> None:
    (ref,) = timed(store, rows([1, 2], [10, 20]), 0).refs
    assert ref.span == ("at", 10, 20)
    assert not Forgetting("at", 20).is_over(ref)
    assert Forgetting("at", 21).is_over(ref)
    assert not Forgetting("other", 21).is_over(ref)
    (timeless,) = timed(store, rows([1, 2], [10, None]), 0).refs
    assert not Forgetting("at", 1 << 60).is_over(timeless)
    assert RunRef.from_json(json.loads(json.dumps(timeless.to_json()))) == timeless


def test_a_run_of_which_most_is_over_is_rewritten(store: ObjectStore) -> None:
    spine = timed(store, rows([1, 2, 3, 4], [0, 10, 20, 30]), 0)
    less = maintain(store, spine, Merging(8, forgetting=Forgetting("at", 15)), epoch=1, bounds=WHOLE)
    assert less.refs == spine.refs
    more = maintain(store, spine, Merging(8, forgetting=Forgetting("at", 20)), epoch=1, bounds=WHOLE)
    assert content(store, more) == [(3, 20), (4, 30)]
    assert [ref.level for ref in more.refs] == [0]


def test_times_of_dates_and_timestamps() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    table = pa.table(
        {
            "day": pa.array([noon.date(), None], pa.date32()),
            "at": pa.array([noon, noon + timedelta(seconds=1)], pa.timestamp("us", tz="UTC")),
        }
    )
    assert times_of(table, "day").tolist() == [20454, TIMELESS]
    first, second = times_of(table, "at").tolist()
    assert second - first == 1_000_000
