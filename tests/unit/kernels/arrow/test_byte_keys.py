"""Byte keys compare like bytes of Python."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.byte_keys import MANY_KEYS, ByteKeys, narrow, ranks_of

PAIRS = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), min_size=1, max_size=20)
NEARLY_EQUAL = st.builds(
    lambda prefix, middle, end: prefix + middle + end,
    st.sampled_from([b"", b"partition", b"a partition with a long name"]),
    st.sampled_from([b"", bytes(1), bytes(8), bytes(9), b"\1" + bytes(7)]),
    st.binary(max_size=2),
)


@given(PAIRS)
def test_keys_compare_like_bytes(pairs: list[tuple[bytes, bytes]]) -> None:
    left, right = (ByteKeys.of(pa.array(side, pa.binary())) for side in zip(*pairs, strict=True))
    assert left.signs(right).tolist() == [(a > b) - (a < b) for a, b in pairs]
    assert (left <= right).tolist() == [a <= b for a, b in pairs]


def test_a_slice_of_an_array_is_viewed_where_it_lies() -> None:
    keys = ByteKeys.of(pa.array([b"x", b"b", b"a"], pa.binary())[1:])
    assert len(keys) == 2 and (keys[::-1] < keys).tolist() == [True, False]


@given(st.lists(NEARLY_EQUAL, max_size=60))
def test_keys_are_ranked_like_bytes(keys: list[bytes]) -> None:
    ascending = sorted(set(keys))
    assert ranks_of(ByteKeys.of(pa.array(keys, pa.binary()))).tolist() == [ascending.index(key) + 1 for key in keys]


@given(st.lists(NEARLY_EQUAL, min_size=1, max_size=60), st.lists(NEARLY_EQUAL, min_size=1, max_size=20))
def test_narrowed_ranges_keep_the_insertion_points(stored: list[bytes], wanted: list[bytes]) -> None:
    stored.sort()
    keys = sorted(wanted * MANY_KEYS) * 2
    middle = len(stored) // 2  # ranges of two partitions, each with many keys
    low = np.repeat([0, middle], len(keys) // 2)
    high = np.repeat([middle, len(stored)], len(keys) // 2)
    straws, needles = (ByteKeys.of(pa.array(side, pa.binary())) for side in (stored, keys))
    first, end = narrow(straws, needles, low, high)
    for number in range(0, len(keys), MANY_KEYS):
        ends = int(low[number]), int(high[number])
        assert first[number] <= bisect_left(stored, keys[number], *ends)
        assert bisect_right(stored, keys[number], *ends) <= end[number]


@pytest.mark.parametrize("length", [3, 24])
def test_many_different_keys_are_narrowed_to_their_rows(length: int) -> None:
    stored = [b"partition" + number.to_bytes(length, "big") for number in range(0, 3000, 3)]
    wanted = [b"partition" + number.to_bytes(length, "big") for number in range(3000)]
    straws, needles = (ByteKeys.of(pa.array(side, pa.binary())) for side in (stored, wanted))
    first, end = narrow(straws, needles, np.zeros(3000, np.int64), np.full(3000, 1000))
    assert first.tolist() == [bisect_left(stored, key) for key in wanted]
    assert end.tolist() == [bisect_right(stored, key) for key in wanted]
