"""The spool: what a round wrote is what the next one reads, or an error with a name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rejoinder.errors import StorageFailed
from rejoinder.store.runs.spool import Spool, is_reference, read_spooled


def test_what_was_written_is_read(tmp_path: Path) -> None:
    tables = [pa.table({"a": list(range(size))}) for size in (0, 1, 1000)]
    references = Spool(str(tmp_path)).write(3, tables)
    assert all(is_reference(pa.py_buffer(reference)) for reference in references)
    assert [read_spooled(pa.py_buffer(reference)) for reference in references] == tables


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_damage_is_named(tmp_path: Path, damage: str) -> None:
    spool = Spool(str(tmp_path))
    (reference,) = spool.write(3, [pa.table({"a": list(range(1000))})])
    (path,) = (tmp_path / "3").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    match damage:
        case "gone":
            path.unlink()
        case _:
            path.write_bytes({"flip": bytes(data), "cut": bytes(data[:100]), "empty": b""}[damage])
    with pytest.raises(StorageFailed):
        read_spooled(pa.py_buffer(reference))
