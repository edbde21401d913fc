"""Split a delta into buckets, and convert it to and from Arrow IPC bytes, the payload of the exchange schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import HASH, UInt64, drop_unit_diffs, hashes, replaced, take
from rejoinder.kernels.arrow.sorting import bucket_of, is_sorted, order_by_hash


def scatter(table: pa.Table, keys: UInt64, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Split the table by the bucket of its key hash. Parts have the hash column, and keep the order of rows."""
    if not table.num_rows:
        return
    table = replaced(table, HASH, keys)
    if buckets == 1:
        yield 0, table
        return
    bucket = bucket_of(keys, buckets)
    sorted_table = table
    if bool((bucket[1:] < bucket[:-1]).any()):
        order = np.argsort(bucket.astype(np.uint16), kind="stable")
        sorted_table, bucket = take(table, order), bucket[order]
    cuts = np.searchsorted(bucket, np.arange(buckets + 1))
    for number, (low, high) in enumerate(itertools.pairwise(cuts)):
        if high > low:
            yield number, sorted_table.slice(int(low), int(high - low))


def sorted_by_hash(table: pa.Table) -> pa.Table:
    """Sort a delta by its `__hash`. Cost: one pass if it is sorted."""
    keys = hashes(table)
    return table.combine_chunks() if is_sorted(keys) else take(table, order_by_hash(keys))


def encode(table: pa.Table, *, is_whole: bool = False) -> bytes:
    """Write a table as an Arrow IPC stream, without unit diffs unless it must be complete."""
    sink = pa.BufferOutputStream()
    table = table if is_whole else drop_unit_diffs(table)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def decode(payload: pa.Buffer) -> pa.Table:
    """Read what `encode` wrote, without copying the columns."""
    return pa.ipc.open_stream(payload).read_all()
