"""The exchange: what is scattered comes together again, and bytes bring back the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.columns import DIFF, HASH, contiguous, hashes
from rejoinder.kernels.arrow.scatter import decode, encode, scatter, sorted_by_hash
from rejoinder.kernels.arrow.sorting import bucket_of, is_sorted
from tests.unit.kernels.arrow.tables import TYPES, array_of, arrays, deltas, meaning, same, samples, with_hash


@given(table=deltas(), data=st.data(), buckets=st.sampled_from([1, 2, 7]))
def test_each_row_goes_to_the_bucket_of_its_hash(table: pa.Table, data: st.DataObject, buckets: int) -> None:
    keys = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=table.num_rows, max_size=table.num_rows))
    table = table.append_column("at", pa.array(np.arange(table.num_rows)))
    parts = dict(scatter(table, np.array(keys, np.uint64), buckets))
    assert all(part.num_rows for part in parts.values())
    for bucket, part in parts.items():
        assert set(bucket_of(hashes(part), buckets).tolist()) == {bucket}
        assert part["at"].to_pylist() == sorted(part["at"].to_pylist())
        assert hashes(part).tolist() == [keys[at] for at in part["at"].to_pylist()]
    assert sum(part.num_rows for part in parts.values()) == table.num_rows
    if parts:
        assert meaning(contiguous(list(parts.values()))) == meaning(table)


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_bytes_bring_back_the_table(name: str, data: st.DataObject) -> None:
    table = pa.table({"a": data.draw(arrays(name))})
    assert same(decode(pa.py_buffer(encode(table))), table)
    part = table.slice(data.draw(st.integers(0, table.num_rows)))
    assert same(decode(pa.py_buffer(encode(part))), part)


def test_unit_diffs_are_not_sent() -> None:
    table = pa.table({"a": [1, 2], DIFF: pa.array([1, 1], pa.int64())})
    assert decode(pa.py_buffer(encode(table))).column_names == ["a"]
    signed = pa.table({"a": [1, 2], DIFF: pa.array([1, -1], pa.int64())})
    assert decode(pa.py_buffer(encode(signed))).equals(signed)


def test_a_slice_costs_only_its_own_bytes() -> None:
    table = pa.table({"a": np.arange(100_000)})
    assert len(encode(table.slice(5, 10))) < 2_000


def test_sorting_by_hash_is_stable_and_free_if_sorted() -> None:
    table = with_hash(pa.table({"a": [1, 2, 3, 4]}), [7, 3, 7, 3])
    ordered = sorted_by_hash(table)
    assert is_sorted(hashes(ordered)) and ordered["a"].to_pylist() == [2, 4, 1, 3]
    assert sorted_by_hash(ordered).equals(ordered)
    assert ordered.schema.field(HASH).type == pa.uint64()


def test_columns_of_every_type_can_be_put_together() -> None:
    for name in TYPES:
        table = pa.table({"a": array_of(name, samples(name))})
        twice = contiguous([table, table])
        assert twice.num_rows == 2 * table.num_rows and twice.column("a").num_chunks == 1
        assert contiguous([table, table.append_column(DIFF, pa.array([-1] * table.num_rows))])[DIFF].to_pylist()[0] == 1
