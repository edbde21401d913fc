"""Byte keys compare like bytes of Python."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.byte_keys import ByteKeys

PAIRS = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), min_size=1, max_size=20)


@given(PAIRS)
def test_keys_compare_like_bytes(pairs: list[tuple[bytes, bytes]]) -> None:
    left, right = (ByteKeys.of(pa.array(side, pa.binary())) for side in zip(*pairs, strict=True))
    assert left.signs(right).tolist() == [(a > b) - (a < b) for a, b in pairs]
    assert (left <= right).tolist() == [a <= b for a, b in pairs]


def test_a_slice_of_an_array_is_viewed_where_it_lies() -> None:
    keys = ByteKeys.of(pa.array([b"x", b"b", b"a"], pa.binary())[1:])
    assert len(keys) == 2 and (keys[::-1] < keys).tolist() == [True, False]
