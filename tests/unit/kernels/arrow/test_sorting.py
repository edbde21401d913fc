"""Sorting by hash agrees with a stable argsort, also where hashes share leading bits; ranges cover each hash once."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.sorting import (
    LAST_HASH,
    bucket_of,
    group_starts,
    hash_range,
    is_sorted,
    order_by_hash,
    rank_values,
    slice_of,
)
from tests.oracle.model import rank
from tests.oracle.values import KINDS
from tests.unit.kernels.arrow.tables import array_of, samples

HASHES = st.lists(
    st.one_of(st.integers(0, 40), st.integers(2**63 - 3, 2**63 + 3), st.integers(LAST_HASH - 3, LAST_HASH)), max_size=60
).map(lambda values: np.array(values, np.uint64))


@given(hashes=HASHES)
def test_the_order_is_that_of_a_stable_argsort(hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
    assert order_by_hash(hashes).tolist() == np.argsort(hashes, kind="stable").tolist()


@pytest.mark.parametrize("rows", [1, 2, 1000, 65_536, 65_537])
@pytest.mark.parametrize("spread", [1, 3, 2**20, 2**64 - 1])
def test_the_order_of_many_rows(rows: int, spread: int) -> None:
    hashes = np.random.default_rng(rows).integers(0, spread, rows, np.uint64, endpoint=True)
    order = order_by_hash(hashes)
    assert is_sorted(hashes[order])
    assert np.array_equal(order, np.argsort(hashes, kind="stable"))


@given(hashes=HASHES)
def test_groups_start_where_the_hash_changes(hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
    ordered = np.sort(hashes)
    starts = [at for at in range(len(ordered)) if at == 0 or ordered[at] != ordered[at - 1]]
    assert group_starts(ordered).tolist() == starts
    assert is_sorted(ordered)
    assert is_sorted(ordered[::-1]) == (len(starts) <= 1)


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 16, 1000])
def test_the_ranges_of_all_buckets_cover_each_hash_once(buckets: int) -> None:
    ranges = [hash_range(bucket, buckets) for bucket in range(buckets)]
    assert ranges[0][0] == 0 and ranges[-1][1] == LAST_HASH
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(ranges))
    edges = np.array([edge for bounds in ranges for edge in bounds], np.uint64)
    assert bucket_of(edges, buckets).tolist() == [bucket for bucket in range(buckets) for _ in range(2)]


@given(hashes=HASHES, first=st.integers(0, LAST_HASH), last=st.integers(0, LAST_HASH))
def test_a_slice_has_the_hashes_of_its_range(
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]], first: int, last: int
) -> None:
    ordered = np.sort(hashes)
    low, high = min(first, last), max(first, last)
    begin, end = slice_of(ordered, low, high)
    assert ordered[begin:end].tolist() == [value for value in ordered.tolist() if low <= value <= high]


@pytest.mark.parametrize("name", [kind.sql for kind in KINDS])
@given(data=st.data())
def test_ranks_follow_sparks_order(name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(samples(name)), max_size=15))
    array = array_of(name, values)
    ordered = sorted({rank(value) for value in array.to_pylist()} | {rank(None)})
    assert rank_values(array).tolist() == [ordered.index(rank(value)) for value in array.to_pylist()]


def test_ranks_of_nothing() -> None:
    assert rank_values(pa.array([], pa.int64())).tolist() == []
    assert rank_values(pa.nulls(2, pa.float64())).tolist() == [0, 0]
    assert rank_values(pa.array([float("nan"), None])).tolist() == [1, 0]
