"""Input files of every format that a source can have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

FORMATS = ("parquet", "csv", "json", "arrow")


def write_rows(path: Path, rows: list[dict[str, Any]] | pa.Table) -> None:
    """Write rows in the format of the file's suffix; the file appears whole, as a source expects it."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    match path.suffix:
        case ".parquet":
            pq.write_table(table, part)
        case ".csv":
            pacsv.write_csv(table, part, pacsv.WriteOptions(include_header=False))
        case ".arrow":
            with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        case ".json":
            lines = [
                json.dumps({k: v for k, v in row.items() if v is not None}, default=str) for row in table.to_pylist()
            ]
            part.write_text("".join(f"{line}\n" for line in lines))
        case other:
            raise ValueError(other)
    part.replace(path)
