"""A folder of input files, with a source and a view on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.errors import RejoinderError
from rejoinder.testing import Driver


class Folder:
    """A source on a folder, and a view of it."""

    def __init__(self, folder: Path, format_: str, columns: str = "id BIGINT, n INT", **options: str) -> None:
        self.folder, self.format = folder, format_
        given = ", ".join(f"{key} '{value}'" for key, value in {"path": str(folder), **options}.items())
        kind = "CHANGELOG" if {"op", "diff"} & set(options) else "STREAM"
        self.driver = Driver()
        self.driver.sql(f"CREATE {kind} s ({columns}) USING {format_} OPTIONS ({given})")
        self.driver.sql("CREATE VIEW v AS SELECT * FROM s")

    def put(self, content: str | bytes | pa.Table, name: str = "1") -> Path:
        path = self.folder / f"{name}.{self.format}"
        if isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            pq.write_table(content, path)
        return path

    def rows(self) -> list[dict[str, Any]]:
        self.driver.step()
        return self.driver.table("v")

    def refuses(self, kind: type[RejoinderError], *words: str) -> None:
        """Fail with these words, and go on with another file in its place."""
        with pytest.raises(kind) as raised:
            self.driver.step()
        assert raised.value.detail and raised.value.hint
        assert all(text in str(raised.value) for text in words), str(raised.value)
        assert self.driver.epoch == -1
