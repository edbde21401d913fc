"""The open windows of an aggregation: a query of the engine that groups by window number and columns.

The window number is its event time, and the watermark is the number of the first open window: groups below it are
final.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.core.running_query import RunningQuery, stream
from rejoinder.errors import StateError, TypeMismatch, Unsupported
from rejoinder.ir import aggregate_calls, logical
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.identities import SourceRows
from rejoinder.kernels.arrow.columns import Int64, numbers, take, without
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.ordered import LEAST

FUNCTIONS = ("count", "sum", "min", "max", "avg")
SOURCE, WINDOW = "rows", "w"
_AVERAGE = ScalarOperation("average")


@dataclass(frozen=True)
class Call:
    """A call of an aggregate function."""

    function: str
    """`count`, `sum`, `min`, `max` or `avg`."""
    column: str | None = None
    """None: `count` counts rows."""


class WindowState:
    """Groups by window number and columns. The query uses generated names, so user columns may have any name."""

    def __init__(self, schema: pa.Schema, group_by: Sequence[str], calls: Mapping[str, Call]) -> None:
        self._groups = {f"g{number}": name for number, name in enumerate(group_by)}
        read = dict.fromkeys(call.column for call in calls.values() if call.column is not None)
        self._arguments = {f"v{number}": name for number, name in enumerate(read)}
        self._names = [*group_by, *calls]
        kinds = {own: schema.field(name).type for own, name in (self._groups | self._arguments).items()}
        self._source = stream(SOURCE, pa.schema({WINDOW: pa.int64()} | kinds), [WINDOW])
        self._query = self._aggregate(calls)
        self._running = RunningQuery([self._source], self._query)
        self._open = LEAST

    def add(self, table: pa.Table, windows: Int64) -> None:
        """Add rows to their windows."""
        columns = {WINDOW: pa.array(windows)}
        columns |= {own: table.column(name) for own, name in (self._groups | self._arguments).items()}
        self._running.run({SOURCE: pa.table(columns)}, {})

    def close(self, bound: int) -> tuple[Int64, pa.Table] | None:
        """Remove the windows below a number; return their numbers in order, with results; None if there are none."""
        self._open = bound
        rows = self._running.run({}, {SOURCE: {WINDOW: bound}})
        if not rows.num_rows:
            return None
        rows = take(rows, np.argsort(numbers(rows, WINDOW), kind="stable"))
        return numbers(rows, WINDOW), without(rows, [WINDOW]).rename_columns(self._names)

    def snapshot(self) -> pa.Table:
        """Return the groups of all open windows."""
        rows, (window, *_) = self._running.groups()
        return take(rows, np.flatnonzero(numbers(rows, window) >= self._open))

    def restore(self, tables: Sequence[pa.Table], bound: int | None) -> None:
        """Replace the open windows by those of snapshots; a group may be in one of them only."""
        fresh = RunningQuery([self._source], self._query)
        empty, keys = fresh.groups()
        for table in tables:
            if not table.schema.equals(empty.schema):
                kinds = ", ".join(map(str, table.schema.types))
                raise StateError(
                    "a snapshot has windows with other groups or aggregates",
                    detail=f"it has columns of types {kinds}",
                    hint="restore it to an aggregation of the same groups and calls",
                )
        rows = pa.concat_tables([empty, *tables]).combine_chunks()
        if len(group_rows(rows, keys).starts) < rows.num_rows:
            raise StateError(
                "two snapshots of a window aggregation have the same group",
                hint="route rows to instances by their group, so that each group is on one of them",
            )
        self._open = LEAST if bound is None else bound
        if bound is not None:
            fresh.run({}, {SOURCE: {WINDOW: bound}})
        fresh.restore_groups(rows)
        self._running = fresh

    def _aggregate(self, calls: Mapping[str, Call]) -> logical.Query:
        """Return the aggregation as a query; its results have the names `r0`, `r1`, …"""
        schema = self._source.schema
        scan = logical.Scan(SourceRows(SOURCE), tuple((f"0.{name}", name) for name in schema.names), schema)
        keys = {f"1.{name}": column(f"0.{name}", schema.field(name).type) for name in (WINDOW, *self._groups)}
        aggregates: dict[aggregate_calls.Call, str] = {}

        def called(function: aggregate_calls.Function, call: Call) -> Expression:
            if call.column is None:
                aggregate = aggregate_calls.Call("count", None, pa.int64())
            else:
                (own,) = [own for own, name in self._arguments.items() if name == call.column]
                argument = column(f"0.{own}", schema.field(own).type)
                aggregate = aggregate_calls.Call(function, argument, _type(function, call.column, argument.type))
            return column(aggregates.setdefault(aggregate, f"1.a{len(aggregates)}"), aggregate.type)

        results = [(f"r{number}", _result(call, called)) for number, call in enumerate(calls.values())]
        outputs = [(i.removeprefix("1."), column(i, e.type)) for i, e in keys.items()]
        root = logical.Aggregate(scan, tuple(keys.items()), tuple((i, call) for call, i in aggregates.items()))
        return logical.Query(root, (*outputs, *results), emission=logical.Emission("final"))


def _result(call: Call, called: Callable[[aggregate_calls.Function, Call], Expression]) -> Expression:
    """Return the result of a call; `called` adds an aggregate of the engine and returns its column."""
    if call.function not in FUNCTIONS or (call.column is None and call.function != "count"):
        raise Unsupported(
            f"`{call.function}` of {call.column or 'no column'} is not an aggregate of a window",
            hint=f"use {', '.join(FUNCTIONS)}, each of a column, or `count` without one",
        )
    if call.function != "avg":
        return called(call.function, call)  # type: ignore[arg-type]
    total, count = called("sum", call), called("count", call)
    return Expression(nodes.Call(_AVERAGE, [total.node, count.node], pa.float64()))


def _type(function: aggregate_calls.Function, name: str, kind: pa.DataType) -> pa.DataType:
    if function == "count":
        return pa.int64()
    if function != "sum":
        return kind
    if pa.types.is_decimal128(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    raise TypeMismatch(f"`{name}` is {kind}, and cannot be summed", hint="sum integers, decimals or floats")
