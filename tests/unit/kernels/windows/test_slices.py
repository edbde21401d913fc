"""Slices hold the live rows around keys: what the runs add up to, whatever they retract of each other."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.kernels.arrow import ordered
from rejoinder.kernels.arrow.columns import DIFF, HASH, UInt64
from rejoinder.kernels.arrow.ordered import Ordered, Spans, sorted_by_hash_and_value
from rejoinder.kernels.windows import slices
from rejoinder.kernels.windows.slices import COPY, ORDER, Needles, read_slices

PARTITIONS = b"ab"
KEYS = [bytes([partition, letter]) for partition in PARTITIONS for letter in b"cdefgh"]
EPOCHS = st.lists(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(-2, 3)), max_size=8), max_size=5)


def runs_of(epochs: list[list[tuple[bytes, int]]]) -> tuple[list[pa.Table], Counter[bytes]]:
    """A run for each epoch, and the copies of each key that are live; never less than none."""
    live: Counter[bytes] = Counter()
    tables = []
    for epoch in epochs:
        net: Counter[bytes] = Counter()
        for key, diff in epoch:
            net[key] += max(diff, -live[key] - net[key])
        live.update(net)
        rows = [(key, diff) for key, diff in net.items() if diff]
        columns = {
            ORDER: pa.array([key for key, _ in rows], pa.binary()),
            HASH: pa.array([key[0] for key, _ in rows], pa.uint64()),
            DIFF: pa.array([diff for _, diff in rows], pa.int64()),
        }
        tables.append(sorted_by_hash_and_value(pa.table(columns), ORDER))
    return tables, live


def read(tables: list[pa.Table], keys: list[bytes], before: int, after: int) -> tuple[slices.Slices, list[Any]]:
    keys = sorted(keys)
    key = pa.array(keys, pa.binary())
    floor, ceiling = pa.array([key[:1] for key in keys], pa.binary()), pa.array([k[:1] + b"\xff" for k in keys])
    needles = Needles(np.array([key[0] for key in keys], np.uint64), floor, ceiling, key, key)
    count = np.ones(len(keys), np.int64)
    found = read_slices(tables, needles, before * count, after * count, key)
    return found, list(zip(found.rows[ORDER].to_pylist(), found.rows[COPY].to_pylist(), strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    epochs=EPOCHS.filter(bool),
    keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
    before=st.integers(0, 3),
    after=st.integers(0, 9),
    small=st.sampled_from([0, 4, 256]),
)
def test_a_slice_has_the_live_rows_around_its_needles(
    epochs: list[list[tuple[bytes, int]]],
    keys: list[bytes],
    before: int,
    after: int,
    small: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables, live = runs_of(epochs)
    with monkeypatch.context() as patch:
        patch.setattr(slices, "SMALL_RUN", small)
        found, rows = read(tables, keys, before, after)
    everything = sorted((key, copy) for key, count in live.items() for copy in range(count))
    assert set(rows) <= set(everything) and rows == sorted(rows)
    for number, key in enumerate(sorted(keys)):
        partition = [row for row in everything if row[0][0] == key[0]]
        earlier = [row for row in partition if row[0] < key]
        later = [row for row in partition if row[0] > key]
        wanted = earlier[max(0, len(earlier) - before) :] + [row for row in partition if row[0] == key] + later[:after]
        own = [row for row, at in zip(rows, found.row_slice, strict=True) if at == found.slice_of[number]]
        assert set(wanted) <= set(own)
        assert [row for row in partition if own and own[0] <= row <= own[-1]] == own  # no gaps
        if found.at_start[found.slice_of[number]]:
            assert set(earlier) <= set(own)
        if found.at_end[found.slice_of[number]]:
            assert set(later) <= set(own)


def test_small_runs_are_searched_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, _ = runs_of([[(KEYS[number], 1)] for number in range(6)])
    searched: list[int] = []

    def spans(hashes: UInt64, run: Ordered) -> Spans:
        searched.append(run.table.num_rows)
        return ordered.spans(hashes, run)

    monkeypatch.setattr(slices, "spans", spans)
    read(tables, [KEYS[2]], 1, 1)
    assert searched == [6]
