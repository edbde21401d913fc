"""Partial first rows: what is dropped before an exchange could never be among the first rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.ir.window_calls import SortColumn
from rejoinder.kernels.arrow import hashing
from rejoinder.plan.physical.window_steps import PartialFirstRows
from rejoinder.runtime.steps.windows.partial_first_rows import partial_first_rows
from tests.unit.runtime.tasks import delta, key, meaning, task

MOST = 2
STEP = PartialFirstRows("in", "out", key("k", "s", null_safe=True), "order", MOST)
ROWS = st.lists(
    st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, "", "a"]), st.integers(0, 255)), max_size=90
)


def _passed(rows: list[tuple[int | None, str | None, int]], diffs: list[int]) -> Counter[tuple[object, ...]]:
    now = task()
    stream = delta([(k, s, diff) for (k, s, _), diff in zip(rows, diffs, strict=True)])
    keys = [repr((k, s)).encode() + bytes([number]) for k, s, number in rows]
    now.streams["in"] = stream.append_column("order", pa.array(keys, pa.binary()))
    partial_first_rows(now, STEP)
    return meaning(now.streams.get("out"))


@given(rows=ROWS)
@pytest.mark.parametrize("weak", [False, True])
def test_only_the_first_rows_of_each_partition_pass(weak: bool, rows: list[tuple[int | None, str | None, int]]) -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for partition in {row[:2] for row in rows}:
        own = sorted(number for *other, number in rows if tuple(other) == partition)
        expected.update((*partition, repr(partition).encode() + bytes([number])) for number in own[:MOST])
    with pytest.MonkeyPatch.context() as patch:
        if weak:  # all partitions share a hash
            patch.setattr(hashing, "mix", lambda x: np.zeros_like(x))
        assert _passed(rows, [1] * len(rows)) == expected


def test_a_stream_with_a_retraction_passes_whole() -> None:
    rows = [(1, "a", number) for number in range(5)]
    assert sum(_passed([*rows, (1, "a", 9)], [1, 1, 1, 1, 1, -1]).values()) == 4


@given(
    rows=st.lists(st.tuples(st.sampled_from(["", "a"]), st.sampled_from([None, -(2**63), 0, 1, 2]))),
    order=st.builds(SortColumn, st.just("k"), st.booleans(), st.booleans()),
)
@pytest.mark.parametrize("weak", [False, True])
def test_rows_that_may_be_equal_in_the_order_pass(
    weak: bool, rows: list[tuple[str, int | None]], order: SortColumn
) -> None:
    step = PartialFirstRows("in", "out", key("s", null_safe=True), "order", MOST, order)

    def precedes(one: int | None, other: int | None) -> bool:
        if one is None or other is None:
            return one is not other and (one is None) == order.nulls_first
        return one > other if order.descending else one < other

    now = task()
    now.streams["in"] = delta([(k, s, 1) for s, k in rows])
    with pytest.MonkeyPatch.context() as patch:
        if weak:
            patch.setattr(hashing, "mix", lambda x: np.zeros_like(x))
        partial_first_rows(now, step)
    passed = meaning(now.streams.get("out"))
    first = [(k, s) for s, k in rows if sum(t == s and precedes(k2, k) for t, k2 in rows) < MOST]
    assert not Counter(first) - passed, "no first row is dropped"
    if not weak and not any(k == -(2**63) or k is None for _, k in rows):
        assert passed == Counter(first)
