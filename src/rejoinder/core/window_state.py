"""The open windows of an aggregation: one row per window and group, kept by the operators of the engine.

`Aggregate` and `Arrange` run as in a task of one bucket over a store in memory, an epoch a batch. Windows that are over
are taken out; a run is dropped when all that it holds is over.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import StateError, TypeMismatch, Unsupported
from rejoinder.ir.expression import column
from rejoinder.ir.logical import Function
from rejoinder.kernels.arrow.columns import DIFF, HASH, Int64, contiguous, numbers, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.arrow.ordered import LEAST
from rejoinder.kernels.sums.float_sums import KEPT
from rejoinder.plan.blocks.accumulators import ROWS, Accumulator
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.retention_bound import Limit, Retention
from rejoinder.plan.physical.steps import Aggregate, Arrange
from rejoinder.runtime.steps.aggregate import aggregate
from rejoinder.runtime.steps.arrange import arrange, insert_runs
from rejoinder.runtime.task import Clock, Task
from rejoinder.store.objects.memory_objects import drop_memory
from rejoinder.store.objects.object_store import open_store
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import close_runs, read_run
from rejoinder.store.runs.spine import Spine
from rejoinder.watermarks.formula import Watermark

FUNCTIONS = ("count", "sum", "min", "max", "avg")
WINDOW = "w"
_places = itertools.count()


@dataclass(frozen=True)
class Call:
    """An aggregate function (`count`, `sum`, `min`, `max`, `avg`) of a column; `count` of none counts rows."""

    function: str
    column: str | None = None


class WindowState:
    """Rows by window number and group columns. Names inside are our own, so that a user's column may have any."""

    def __init__(self, schema: pa.Schema, group_by: Sequence[str], calls: Mapping[str, Call]) -> None:
        self._groups = {f"g{at}": name for at, name in enumerate(group_by)}
        self._calls = dict(calls)
        self._arguments: dict[str, str] = {}
        self._accumulators: dict[tuple[str, str], Accumulator] = {}
        for call in calls.values():
            self._add(schema, call)
        fields = [(WINDOW, pa.int64()), *((at, schema.field(name).type) for at, name in self._groups.items())]
        keys = tuple(column(name, kind) for name, kind in fields)
        fields.append((ROWS, pa.int64()))
        for each in self._accumulators.values():
            fields += [(each.name, each.type)] + ([] if each.digits is None else [(each.digits, KEPT)])
        key = Key(keys, null_safe=frozenset(range(len(keys))))
        self._arrangement = Arrangement("windows", key, pa.schema(fields))
        names = tuple(part.columns[0] for part in keys)
        found = tuple(self._accumulators.values())
        self._aggregate = Aggregate("rows", "change", self._arrangement, names, found, None, ("windows",))
        retention = Retention(((Limit(WINDOW, Watermark("rows", WINDOW)),),))
        self._arrange = Arrange("change", self._arrangement, check=False, retention=retention)
        self._open = LEAST
        self._place = f"core-windows-{next(_places)}"
        self._store = open_store(f"memory://{self._place}")
        weakref.finalize(self, drop_memory, self._place)
        self._spine = Spine()
        self._epoch = 0

    def add(self, table: pa.Table, windows: Int64) -> None:
        """Take rows into their windows."""
        columns = {WINDOW: pa.array(windows)}
        columns |= {at: table.column(name) for at, name in self._groups.items()}
        columns |= {at: table.column(name) for name, at in self._arguments.items()}
        task = self._task()
        task.streams["rows"] = pa.table(columns)
        aggregate(task, self._aggregate)
        self._arranged(task)

    def close(self, bound: int) -> tuple[Int64, pa.Table] | None:
        """Take out the windows below a number: numbers, rising, with groups and results; None if there are none."""
        rows = self._content()
        rows = take(rows, np.flatnonzero(numbers(rows, WINDOW) < bound))
        self._open = max(self._open, bound)
        if not rows.num_rows:
            return None
        over = self._expiry.is_expired
        self._settled(replace(self._spine, refs=tuple(ref for ref in self._spine.refs if not over(ref))))
        rows = take(rows, np.argsort(numbers(rows, WINDOW), kind="stable"))
        columns = {name: rows.column(at) for at, name in self._groups.items()}
        columns |= {name: self._result(rows, call) for name, call in self._calls.items()}
        return numbers(rows, WINDOW), pa.table(columns)

    def snapshot(self) -> pa.Table:
        """The rows of all open windows."""
        return self._content()

    def restore(self, tables: Sequence[pa.Table]) -> None:
        """Hold the rows of snapshots in place of what is held; a group may be in one of them only."""
        drop_memory(self._place)
        self._store = open_store(f"memory://{self._place}")
        self._spine = Spine()
        for table in tables:
            if not table.schema.equals(self._arrangement.schema):
                kinds = ", ".join(map(str, table.schema.types))
                raise StateError(
                    "a snapshot has windows with other groups or aggregates",
                    detail=f"it has columns of types {kinds}",
                    hint="restore it to an aggregation of the same groups and calls",
                )
        rows = pa.concat_tables([self._arrangement.schema.empty_table(), *tables]).combine_chunks()
        if len(group_rows(rows, self._aggregate.keys).starts) < rows.num_rows:
            raise StateError(
                "two snapshots of a window aggregation hold the same group",
                hint="route rows to instances by their group, so that each group is on one of them",
            )
        task = self._task()
        task.streams["change"] = rows
        self._arranged(task)

    def _add(self, schema: pa.Schema, call: Call) -> None:
        if call.function not in FUNCTIONS or (call.column is None and call.function != "count"):
            raise Unsupported(
                f"`{call.function}` of {call.column or 'no column'} is not an aggregate of a window",
                hint=f"use {', '.join(FUNCTIONS)}, each of a column, or `count` without one",
            )
        if call.column is None:
            return
        argument = self._arguments.setdefault(call.column, f"v{len(self._arguments)}")
        kind = schema.field(call.column).type
        needed: dict[str, tuple[Function, ...]] = {
            "count": ("count",),
            "sum": ("sum", "count"),
            "avg": ("sum", "count"),
            "min": ("min",),
            "max": ("max",),
        }
        for function in needed[call.function]:
            of = pa.int64() if function == "count" else _sum_type(call.column, kind) if function == "sum" else kind
            text = f"{function}({call.column})"
            made = Accumulator(f"a{len(self._accumulators)}", function, argument, of, text)
            self._accumulators.setdefault((function, call.column), made)

    def _result(self, rows: pa.Table, call: Call) -> pa.ChunkedArray:
        if call.column is None:
            return rows.column(ROWS)
        if call.function in ("count", "min", "max"):
            return rows.column(self._accumulators[call.function, call.column].name)
        total = rows.column(self._accumulators["sum", call.column].name)
        count = rows.column(self._accumulators["count", call.column].name)
        some = pc.if_else(pc.greater(count, 0), total, pa.scalar(None, total.type))
        return some if call.function == "sum" else pc.divide(some.cast(pa.float64()), count.cast(pa.float64()))

    def _task(self) -> Task:
        self._epoch += 1
        clock = Clock(watermarks={"rows": {WINDOW: self._open}})
        return Task(self._store, self._epoch, 0, 1, {self._arrangement.id: self._spine}, history=1, clock=clock)

    def _arranged(self, task: Task) -> None:
        arrange(task, self._arrange)
        insert_runs(task)
        self._settled(task.report.spines.get(self._arrangement.id, self._spine))

    def _settled(self, spine: Spine) -> None:
        """Hold a spine, and free the runs that it no longer needs."""
        gone = {ref.name for ref in self._spine.refs} - {ref.name for ref in spine.refs}
        self._spine = spine
        self._store.delete(sorted(gone))
        close_runs(self._store, gone)

    @property
    def _expiry(self) -> Expiry:
        return Expiry.below(WINDOW, self._open)

    def _content(self) -> pa.Table:
        tables = [self._arrangement.schema.append(pa.field(HASH, pa.uint64())).empty_table()]
        tables += [self._expiry.drop_expired(read_run(self._store, ref)) for ref in self._spine.refs]
        return without(consolidate(contiguous(tables)), [HASH, DIFF])


def _sum_type(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal128(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    raise TypeMismatch(f"`{name}` is {kind}, and cannot be summed", hint="sum integers, decimals or floats")
