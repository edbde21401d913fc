"""Files that decompress to far more than their size are rejected by name, before they fill the memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.connectors.files.reading import read_file
from rejoinder.errors import LimitReached
from rejoinder.host.caps import Caps, use_caps
from rejoinder.ir.catalog import Source

SCHEMA = pa.schema([("s", pa.string())])


@pytest.fixture
def bomb(tmp_path: Path) -> str:
    """A file of some kilobytes with a gigabyte of equal texts."""
    path = str(tmp_path / "bomb.parquet")
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        part = pa.table({"s": pa.array(["x" * 1000]).take(pa.array(np.zeros(100_000, np.int64)))}, schema=SCHEMA)
        for _ in range(10):
            writer.write_table(part)
    return path


@pytest.mark.parametrize(("cap", "value"), [("max_file_ratio", 1_000), ("max_file_bytes", 100 << 20)])
def test_a_parquet_bomb_is_stopped(bomb: str, cap: str, value: int) -> None:
    use_caps(Caps(**{cap: value}))
    try:
        source = Source("t", "stream", SCHEMA, format="parquet", options={"path": bomb})
        read: list[int] = []
        with pytest.raises(LimitReached, match=cap) as stopped:
            read.extend(table.nbytes for _, table in read_file(bomb, source, 1 << 18))
        assert sum(read) < 300 << 20 and "bomb.parquet" in stopped.value.fact
    finally:
        use_caps(Caps())


def test_a_small_file_may_expand(tmp_path: Path) -> None:
    path = str(tmp_path / "small.parquet")
    pq.write_table(pa.table({"s": ["x"] * 1_000_000}, schema=SCHEMA), path)
    source = Source("t", "stream", SCHEMA, format="parquet", options={"path": path})
    assert sum(table.num_rows for _, table in read_file(path, source, 1 << 18)) == 1_000_000
