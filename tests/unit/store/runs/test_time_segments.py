"""Time segments: cut by time, dropped whole, never merged with each other."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from rejoinder.kernels.arrow.columns import HASH, contiguous
from rejoinder.kernels.arrow.hashing import hash_rows
from rejoinder.kernels.arrow.sorting import LAST_HASH, order_by_hash
from rejoinder.store.objects.object_store import ObjectStore, open_store
from rejoinder.store.runs.expiry import Below, Expiry
from rejoinder.store.runs.run import RunRef, read_run, write_run
from rejoinder.store.runs.spine import Compaction, Spine, insert, maintain
from rejoinder.store.runs.time_segments import ROWS, segments
from rejoinder.store.runs.time_values import NO_TIME, span_of, times_of

WHOLE = (0, LAST_HASH)


def rows(ids: list[int], times: list[int | None]) -> pa.Table:
    table = pa.table({"id": pa.array(ids, pa.int64()), "at": pa.array(times, pa.int64())})
    hashes = hash_rows([table.column("id")], table.num_rows)
    order = order_by_hash(hashes)
    return table.take(pa.array(order)).append_column(HASH, pa.array(hashes[order]))


def content(store: ObjectStore, spine: Spine) -> list[tuple[int, int | None]]:
    tables = [read_run(store, ref) for ref in spine.refs]
    if not tables:
        return []
    whole = contiguous(tables)
    return sorted(zip(whole["id"].to_pylist(), whole["at"].to_pylist(), strict=True), key=repr)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return open_store(f"memory://segments-{request.node.name}")


def test_few_rows_are_one_segment_and_rows_without_a_time_another() -> None:
    table = rows([1, 2, 3, 4, 5], [0, 59, 60, 125, None])
    parts = dict(segments(table, "at"))
    assert [sorted(part["id"].to_pylist()) for part in parts.values()] == [[1, 2, 3, 4], [5]]
    assert NO_TIME in parts


def test_many_rows_are_cut_by_time_and_keep_their_order() -> None:
    count = 4 * ROWS
    table = rows(list(range(count)), [n * 10 for n in range(count)])
    parts = [part for _, part in segments(table, "at")]
    assert 3 <= len(parts) <= 8 and sum(part.num_rows for part in parts) == count
    spans = sorted(span_of(part, "at") for part in parts)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    for part in parts:
        assert np.all(np.diff(part[HASH].to_numpy().astype(object)) >= 0)


def test_equal_times_of_many_epochs_meet_in_one_segment() -> None:
    numbers = {number for at in range(5) for number, _ in segments(rows([at], [1000]), "at")}
    assert len(numbers) == 1


def test_runs_of_different_segments_are_never_merged(store: ObjectStore) -> None:
    spine = Spine()
    for epoch in range(16):
        for segment, part in segments(rows([epoch * 2, epoch * 2 + 1], [epoch // 4, epoch // 4]), "at"):
            ref = write_run(store, part, epoch=epoch, level=0, bounds=WHOLE, segment=segment, times=["at"])
            spine = maintain(store, insert(spine, ref), Compaction(2), epoch=epoch, bounds=WHOLE)
    for ref in spine.refs:
        assert len(set(read_run(store, ref)["at"].to_pylist())) == 1
    assert len(content(store, spine)) == 32


def test_expired_segments_are_found_without_reading_a_row(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = [ref for at in range(6) for ref in timed(store, rows([at], [at * 60]), at).refs]
    monkeypatch.setattr(ObjectStore, "map", lambda *_: pytest.fail("a run was read"))
    assert [ref.spans for ref in refs if not Expiry.below("at", 179).is_expired(ref)] == [
        (("at", n, n),) for n in (180, 240, 300)
    ]


def timed(store: ObjectStore, table: pa.Table, epoch: int) -> Spine:
    return Spine((write_run(store, table, epoch=epoch, level=0, bounds=WHOLE, times=["at"]),))


def test_a_merge_leaves_out_what_is_below_the_bound(store: ObjectStore) -> None:
    spine = Spine((*timed(store, rows([1, 2, 3], [0, 30, 59]), 0).refs, *timed(store, rows([4], [31]), 1).refs))
    merged = maintain(store, spine, Compaction(2, expiry=Expiry.below("at", 31)), epoch=1, bounds=WHOLE)
    assert content(store, merged) == [(3, 59), (4, 31)]
    assert [ref.span("at") for ref in merged.refs] == [(31, 59)]


def test_a_run_expires_with_its_largest_time(store: ObjectStore) -> None:
    (ref,) = timed(store, rows([1, 2], [10, 20]), 0).refs
    assert ref.span("at") == (10, 20) and ref.span("id") is None
    assert not Expiry.below("at", 20).is_expired(ref)
    assert Expiry.below("at", 21).is_expired(ref)
    assert not Expiry.below("other", 21).is_expired(ref)
    (with_null,) = timed(store, rows([1, 2], [10, None]), 0).refs
    assert not Expiry.below("at", 1 << 60).is_expired(with_null)
    assert RunRef.from_json(json.loads(json.dumps(with_null.to_json()))) == with_null


def test_rows_without_a_time_expire_unless_a_user_keeps_them(store: ObjectStore) -> None:
    (ref,) = timed(store, rows([1, 2], [10, None]), 0).refs
    assert ref.span("at") == (10, NO_TIME) and ref.latest("at") == 10
    expired = [Expiry(((Below("at", 11, keeps_nulls),),)).is_expired(ref) for keeps_nulls in (True, False)]
    assert expired == [False, True]
    (none,) = timed(store, rows([1], [None]), 0).refs
    assert none.span("at") == (NO_TIME, NO_TIME)
    assert Expiry(((Below("at", -(1 << 60), keeps_nulls=False),),)).is_expired(none)
    assert RunRef.from_json(json.loads(json.dumps(none.to_json()))) == none


def test_each_user_lets_a_row_go_by_one_of_its_columns(store: ObjectStore) -> None:
    table = rows([10, 20, 30, 40], [1, 2, 3, None])
    (ref,) = (write_run(store, table, epoch=0, level=0, bounds=WHOLE, times=["at", "id"]),)
    either = Expiry(((Below("at", 2), Below("id", 35)),))
    assert sorted(either.drop_expired(table)["id"].to_pylist()) == [40] and not either.is_expired(ref)
    assert Expiry(((Below("at", 2), Below("id", 41)),)).is_expired(ref)
    both = Expiry(((Below("at", 3),), (Below("id", 15), Below("at", 2))))
    assert sorted(both.drop_expired(table)["id"].to_pylist()) == [20, 30, 40]
    assert [sorted(part["id"].to_pylist()) for part in both.split(table)] == [[20, 30, 40], [10]]
    apart = Expiry(((Below("at", 100),), (Below("id", 100),)))
    assert not apart.is_worth_rewriting(ref), "what stays could be below either bound, and be rewritten again and again"


def test_a_run_whose_rows_have_mostly_expired_is_rewritten(store: ObjectStore) -> None:
    spine = timed(store, rows([1, 2, 3, 4], [0, 10, 20, 30]), 0)
    less = maintain(store, spine, Compaction(8, expiry=Expiry.below("at", 15)), epoch=1, bounds=WHOLE)
    assert less.refs == spine.refs
    more = maintain(store, spine, Compaction(8, expiry=Expiry.below("at", 20)), epoch=1, bounds=WHOLE)
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
    assert times_of(table, "day").tolist() == [20454, NO_TIME]
    first, second = times_of(table, "at").tolist()
    assert second - first == 1_000_000
