"""Columns that are NULL in every record of a file: mostly keys that are spelled differently from the column.

Only files of JSON are watched: elsewhere a column that a file does not have is an error. Cost: none per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.plan.physical.dataflow import Scan, SourceScan
from rejoinder.runtime.scan import Split
from rejoinder.runtime.task import Report


@dataclass
class NullColumns:
    """Looks at the chunks of one file; `names` are the columns in which no value was seen yet."""

    source: str
    path: str
    stream: str
    names: set[str] = field(default_factory=set)
    rows: int = 0

    @classmethod
    def of(cls, scan: Scan, split: Split) -> NullColumns:
        """Watch a split; nothing of it unless it is a file of JSON."""
        is_file = isinstance(scan, SourceScan) and split.path is not None and split.payload is None
        if not is_file or not isinstance(scan, SourceScan) or scan.source.format != "json":
            return cls(split.source, "", "")
        return cls(split.source, split.path or "", scan.stream, set(scan.source.recorded.schema.names))

    def see(self, stream: str, table: pa.Table) -> None:
        """Take a chunk in."""
        if self.names and stream == self.stream:
            self.rows += table.num_rows
            self.names = {name for name in self.names if table.column(name).null_count == table.num_rows}

    def report_to(self, report: Report) -> None:
        """Report the columns without a value, once the file is read."""
        if self.names and self.rows:
            report.null_columns.setdefault(self.source, {}).update(dict.fromkeys(sorted(self.names), self.path))
