"""Equality: what Python says of the plain values, at any depth."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.equality import identity, not_distinct
from tests.unit.kernels.arrow.tables import TYPES, array_of, samples


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_it_agrees_with_the_plain_values(name: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(samples(name)), st.sampled_from(samples(name)))))
    left, right = (array_of(name, [pair[side] for pair in pairs]) for side in (0, 1))
    expected = [identity(a) == identity(b) for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)]
    assert not_distinct(left, right).tolist() == expected
    begin = data.draw(st.integers(0, len(pairs)))
    assert not_distinct(left.slice(begin), right.slice(begin)).tolist() == expected[begin:]


def test_a_struct_of_null_is_not_null() -> None:
    kind = pa.struct([("a", pa.float64())])
    left = pa.array([{"a": None}, {"a": None}, {"a": float("nan")}, {"a": -0.0}, None], kind)
    right = pa.array([None, {"a": None}, {"a": float("nan")}, {"a": 0.0}, None], kind)
    assert not_distinct(left, right).tolist() == [False, True, True, True, True]


def test_lists_are_compared_in_order_and_by_length() -> None:
    left = pa.array([[1, 2], [1, 2], [1], [], [None]], pa.list_(pa.int32()))
    right = pa.array([[1, 2], [2, 1], [1, 1], None, [None]], pa.list_(pa.int32()))
    assert not_distinct(left, right).tolist() == [True, False, False, False, True]


def test_identity_tells_apart_what_looks_alike() -> None:
    assert identity([1, [2]]) != identity([1, 2])
    assert identity({"a": "1"}) != identity({"a": 1})
    assert identity(["a, b"]) != identity(["a", "b"])
    assert identity({"a": [0.0, float("nan")]}) == identity({"a": [-0.0, float("nan")]})
