"""The console as a sink: a heading for each epoch with changes, then a line for each row taken back or added."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery
from rejoinder.errors import InvalidSql
from rejoinder.ir.catalog import Sink
from rejoinder.state.renderings import plain_rows, sort_key
from rejoinder.state.row_text import table_text

LIMIT = 20


@dataclass(frozen=True)
class ConsoleTarget:
    """Writes to standard output; of a large epoch the first `limit` changes."""

    sink: Sink
    remembers: ClassVar[bool] = False

    @property
    def limit(self) -> int:
        """How many changes of an epoch are shown."""
        return int(self.sink.options.get("limit", LIMIT))

    def check(self) -> None:
        """Refuse a limit that is no number."""
        text = self.sink.options.get("limit", "0")
        if not text.isdigit():
            raise InvalidSql(
                f"option `limit` of sink `{self.sink.name}` is '{text}'", hint="a number of rows, as in limit '20'"
            )

    def delivered(self) -> int | None:
        """What was printed is gone."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Print an epoch."""
        gone = come = 0
        shown: list[pa.Table] = []
        for chunk in delivery.rows():
            signs = chunk.column("_diff")
            come += pc.sum(pc.max_element_wise(signs, 0)).as_py()
            gone -= pc.sum(pc.min_element_wise(signs, 0)).as_py()
            wanted = self.limit - sum(table.num_rows for table in shown)
            shown.append(chunk.slice(0, max(0, wanted)))
        if not gone and not come:
            return
        lines = [f"epoch {delivery.epoch}  {delivery.sink.view}: {gone:,} taken back, {come:,} added"]
        table = pa.concat_tables(shown)
        rows = plain_rows(table.drop_columns(DELIVERED_COLUMNS.names), is_ordered=True)
        signed = zip(table.column("_diff").to_pylist(), rows, strict=True)
        ordered = sorted(signed, key=lambda change: (change[0] > 0, sort_key(change[1])))
        marked = [{"": _sign(diff), **row} for diff, row in ordered]
        lines += table_text(marked, ["", *rows.columns]).splitlines()
        more = gone + come - sum(abs(diff) for diff in table.column("_diff").to_pylist())
        lines += [f"… and {more:,} more"] if more else []
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in lines)
        sys.stdout.flush()


def _sign(diff: int) -> str:
    return ("−" if diff < 0 else "+") + (f" {abs(diff)} ×" if abs(diff) > 1 else "")
