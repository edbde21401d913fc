"""The order of rows in partitions, as operations on ordered partitions share it: sort keys, and words for EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.window_calls import SortColumn, WindowCall
from rejoinder.plan.blocks.accumulators import sort_key
from rejoinder.plan.physical.arrangement import Key
from rejoinder.plan.physical.window_steps import Sorting


@dataclass(frozen=True)
class RowOrder:
    """The partition of rows and their order in it; `ties` order rows that are equal by `columns`."""

    partition: tuple[str, ...]
    columns: tuple[SortColumn, ...]
    ties: tuple[SortColumn, ...]

    @property
    def text(self) -> str:
        """Canonical text."""
        listed = ", ".join(f"{each.name} {each.text}" for each in (*self.columns, *self.ties))
        return f"by {', '.join(self.partition)} in the order of {len(self.columns)}: {listed}"

    def key(self, schema: pa.Schema) -> Key:
        """What rows are partitioned by; NULL is a value like any other."""
        return Key.of(schema, self.partition)

    def sorting(self, schema: pa.Schema) -> Sorting:
        """The sort keys of rows."""
        partition = tuple(SortColumn(name) for name in self.partition)
        group = (*partition, *self.columns)
        floors = (row_sort_key(each, schema) for each in (partition, group, (*group, *self.ties)))
        return Sorting(self.columns, *floors)

    def describe(self, labels: Mapping[str, str]) -> str:
        """The words of SQL."""
        by = ", ".join(labels[name] for name in self.partition)
        order = ", ".join(labels[each.name] + (" DESC" if each.descending else "") for each in self.columns)
        return f"{f' by {by}' if by else ''}{f' in the order of {order}' if order else ''}"


def row_sort_key(columns: Sequence[SortColumn], schema: pa.Schema) -> Expression:
    """The sort key of rows by columns."""
    return sort_key([(column(each.name, schema.field(each.name).type), each.text) for each in columns])


def described_calls(calls: Iterable[tuple[str, WindowCall]], labels: Mapping[str, str]) -> str:
    """The functions of calls and their arguments."""

    def described(call: WindowCall) -> str:
        argument = "*" if call.argument is None else labels[call.argument]
        return call.function if "rank" in call.function else f"{call.function}({argument})"

    return ", ".join(dict.fromkeys(described(call) for _, call in calls))
