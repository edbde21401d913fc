"""The console sink: prints a heading for each epoch with changes, then a line for each row retracted or added."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.connectors.connector import Connector, SinkSide, TargetContext
from rejoinder.connectors.delivery import DELIVERED_COLUMNS, Delivery, Target
from rejoinder.errors import InvalidSql
from rejoinder.formats.text.plain_rows import plain_rows, sort_key
from rejoinder.formats.text.row_text import table_text
from rejoinder.ir.catalog import Sink

LIMIT = 20


@dataclass(frozen=True)
class ConsoleTarget(Target):
    """Prints to standard output, at most `limit` changes of an epoch."""

    sink: Sink

    @property
    def limit(self) -> int:
        """The maximum number of changes of an epoch to print."""
        return int(self.sink.options.get("limit", LIMIT))

    def check(self) -> None:
        """Raise `InvalidSql` if the limit is not a number."""
        text = self.sink.options.get("limit", "0")
        if not text.isdigit():
            raise InvalidSql(
                f"option `limit` of sink `{self.sink.name}` is '{text}'", hint="a number of rows, as in limit '20'"
            )

    def deliver(self, delivery: Delivery) -> None:
        """Print the changes of an epoch."""
        retracted = added = 0
        shown: list[pa.Table] = []
        for chunk in delivery.rows():
            signs = chunk.column("_diff")
            added += pc.sum(pc.max_element_wise(signs, 0)).as_py()
            retracted -= pc.sum(pc.min_element_wise(signs, 0)).as_py()
            remaining = self.limit - sum(table.num_rows for table in shown)
            shown.append(chunk.slice(0, max(0, remaining)))
        if not retracted and not added:
            return
        lines = [f"epoch {delivery.epoch}  {delivery.sink.view}: {retracted:,} retracted, {added:,} added"]
        table = pa.concat_tables(shown)
        rows = plain_rows(table.drop_columns(DELIVERED_COLUMNS.names), is_ordered=True)
        signed = zip(table.column("_diff").to_pylist(), rows, strict=True)
        ordered = sorted(signed, key=lambda change: (change[0] > 0, sort_key(change[1])))
        marked = [{"": _sign(diff), **row} for diff, row in ordered]
        lines += table_text(marked, ["", *rows.columns]).splitlines()
        more = retracted + added - sum(abs(diff) for diff in table.column("_diff").to_pylist())
        lines += [f"… and {more:,} more"] if more else []
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in lines)
        sys.stdout.flush()


def _sign(diff: int) -> str:
    return ("−" if diff < 0 else "+") + (f" {abs(diff)} ×" if abs(diff) > 1 else "")


class ConsoleSink(SinkSide):
    """Standard output."""

    takes = ("limit",)

    def target(self, context: TargetContext) -> ConsoleTarget:
        return ConsoleTarget(context.sink)


CONSOLE = Connector("console", sink=ConsoleSink())
