"""Columns that are NULL in every record of a file: usually keys that are spelled differently from the column.

Only JSON files are checked: in other formats a missing column is an error. Cost: none per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.connectors.registry import source_side
from rejoinder.ir.splits import FileSplit, Split
from rejoinder.plan.physical.dataflow import Scan, SourceScan
from rejoinder.runtime.task import Report


@dataclass
class NullColumns:
    """Checks the chunks of one file; `names` are the columns without a value so far."""

    source: str
    path: str
    stream: str
    names: set[str] = field(default_factory=set)
    rows: int = 0

    @classmethod
    def of(cls, scan: Scan, split: Split) -> NullColumns:
        """Return the check for a split; it checks nothing unless the split is a JSON file."""
        if not isinstance(split, FileSplit) or not isinstance(scan, SourceScan) or source_side(scan.source).is_typed:
            return cls(split.scan, "", "")
        return cls(split.scan, split.path, scan.stream, set(scan.source.recorded.schema.names))

    def see(self, stream: str, table: pa.Table) -> None:
        """Check a chunk."""
        if self.names and stream == self.stream:
            self.rows += table.num_rows
            self.names = {name for name in self.names if table.column(name).null_count == table.num_rows}

    def report_to(self, report: Report) -> None:
        """Report the columns without a value, once the file is read."""
        if self.names and self.rows:
            report.null_columns.setdefault(self.source, {}).update(dict.fromkeys(sorted(self.names), self.path))
