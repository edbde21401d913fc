"""StreamJoin: join two streams within time bounds, with state that watermarks keep small.

A pair comes out when its second row comes in. A row is kept until a watermark tells that no partner can follow; if it
never had one and its side is preserved, it comes out at that moment, padded with NULL, before the watermarks that it
must not miss. A row below a limit already is joined with what is there, and not kept. Late rows are handed back.

The output watermark of a column is the minimum of what was received and of (`min_buffer`) the smallest time kept, or of
(`wm_state`) the smallest time that could be kept. The former is the largest that is sound; the latter is the same on
all instances of a join, whatever rows they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from rejoinder.core.join_buffer import ROW, USED, Found, JoinBuffer
from rejoinder.core.join_condition import JoinCondition
from rejoinder.core.messages import LateRows, Message, Rows, with_columns
from rejoinder.core.operator import Operator
from rejoinder.errors import LimitReached, UnknownName, Unsupported
from rejoinder.kernels.arrow.columns import Int64, contiguous, numbers, replaced, take, without
from rejoinder.kernels.arrow.consolidate import row_hashes
from rejoinder.kernels.arrow.hashing import Mask, hash_rows
from rejoinder.kernels.arrow.sorting import bucket_of
from rejoinder.kernels.duckdb.evaluate import project, select_rows
from rejoinder.runtime.task import key_columns
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.coalescer import Watermark, smallest

Formula = Literal["min_buffer", "wm_state"]


class StreamJoin(Operator):
    """Join input 0 with input 1. `max_rows` caps the rows of both that are kept.

    One of several `instances` has a number. With equal columns (`on`), rows belong on the instance of their key; else
    one side goes to all instances, and the other, the preserved one, is spread: `routed` does it.

    >>> time = lambda name: pa.schema([(name, pa.int64())])
    >>> condition = JoinCondition("LEFT", (time("l.t"), time("r.t")), ({"l.t": 0}, {"r.t": 1}), {0: {1: 0}, 1: {0: 0}},
    ...     on=[("l.t", "r.t")])
    >>> join = StreamJoin(condition)
    >>> join.rows(0, pa.table({"l.t": [1, 2]})), len(join.rows(1, pa.table({"r.t": [2]})))
    ([], 1)
    >>> rows, mark = join.watermark(1, key=1, time=3)
    >>> rows.table.to_pylist(), rows.padded, mark
    ([{'l.t': 1, 'r.t': None}], True, Watermark(key=1, time=2))
    """

    parts = ("watermarks", "rows", "emitted")

    def __init__(
        self,
        condition: JoinCondition,
        *,
        max_rows: int | None = None,
        formula: Formula = "min_buffer",
        instance: int = 0,
        instances: int = 1,
        upstream: Sequence[int] = (1, 1),
    ) -> None:
        super().__init__(upstream)
        if formula not in get_args(Formula):
            known = ", ".join(get_args(Formula))
            raise UnknownName(f"there is no formula `{formula}` of output watermarks", hint=f"one of {known}")
        if max_rows is not None and max_rows < 1:
            raise Unsupported(
                f"a join that keeps at most {max_rows} rows is not supported",
                detail="no row would meet one that comes later",
                hint="cap the rows of both sides at 1 or more, or leave `max_rows` out",
            )
        if not 0 <= instance < instances:
            raise Unsupported(
                f"there is no instance {instance} among {instances}",
                hint="instances are numbered from 0",
            )
        self._join = condition.checked(capped=max_rows is not None)
        if instances > 1 and not condition.on and condition.kind == "FULL":
            raise Unsupported(
                "a FULL join without equal columns runs on one instance only",
                detail="one side would have to go to all instances, and each would emit its rows without a partner",
                hint="add a pair of equal columns, or run one instance",
            )
        self._max_rows, self._formula = max_rows, formula
        self._instance, self._instances = instance, instances
        self._buffers = tuple(
            JoinBuffer(
                f"input {at}",
                condition.schemas[at],
                condition.join_key(at),
                tuple(condition.times[at]),
                condition.order(at),
            )
            for at in (0, 1)
        )
        self._emitted: dict[int, int] = {}

    @property
    def broadcast(self) -> int | None:
        """The side whose rows go to every instance; None with equal columns."""
        if self._join.on:
            return None
        return 0 if self._join.kind == "RIGHT" else 1

    def buffer(self, ordinal: int) -> pa.Table:
        """The rows of a side that are kept, as they came, with whether each has found a partner (`__used`)."""
        return self._buffers[ordinal].content()

    def limits(self) -> dict[int, dict[int, int | None]]:
        """For each key, the smallest time that can still find a partner, by the key whose watermark tells; or None."""
        result: dict[int, dict[int, int | None]] = {key: {} for key in self._join.keys}
        for given, to in self._join.postpone.items():
            received = self._received(given)
            for key, minus in to.items():
                result[key][given] = None if received is None else received - minus
        return result

    def received(self) -> dict[int, int]:
        """The last watermark taken in, by key."""
        found = {key: self._received(key) for key in self._join.keys}
        return {key: time for key, time in found.items() if time is not None}

    def emitted(self) -> dict[int, int]:
        """The last watermark handed on, by key."""
        return dict(self._emitted)

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Join rows with what is kept of the other side; keep those that may find a partner later."""
        table = with_columns(table, self._join.schemas[ordinal], ordinal)
        late = self._late(ordinal, table)
        result: list[Message] = [LateRows(ordinal, take(table, np.flatnonzero(late)))] if late.any() else []
        table = take(table, np.flatnonzero(~late)) if late.any() else table
        if not table.num_rows:
            return result
        able = self._able(ordinal, table)
        kept = able & ~self._over(ordinal, table)
        self._refuse_too_many(ordinal, int(kept.sum()))
        used = np.zeros(table.num_rows, bool)
        candidates = np.flatnonzero(able)
        found = self._found(ordinal, table if able.all() else take(table, candidates), candidates)
        result += self._joined(ordinal, table, found)
        for pairs in found:
            used[pairs.left] = True
            pairs.run.used[pairs.right] = True
        self._buffers[ordinal].add(take(table, np.flatnonzero(kept)), used[kept])
        if ordinal in self._join.preserved:
            result += self._padded(ordinal, take(table, np.flatnonzero(~kept & ~used)))
        return result

    def on_input_watermark(self, ordinal: int, watermark: Watermark) -> list[Message]:
        """Let go of rows that find no partner any more, then hand watermarks on as far as rows kept allow.

        A key that is not of one of this input's times is dropped: nothing on output stands for it.
        """
        result: list[Message] = []
        limits = self._limits()
        for at, buffer in enumerate(self._buffers):
            own = {name: limits[key] for name, key in self._join.times[at].items() if key in limits}
            rows, used = buffer.expire(own)
            if at in self._join.preserved:
                result += self._padded(at, take(rows, np.flatnonzero(~used)))
        for key in self._join.keys:
            value = self._output(key, limits)
            if value is not None and value > self._emitted.get(key, value - 1):
                self._emitted[key] = value
                result.append(Watermark(key, value))
        return result

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        """Nothing: each input's watermarks are handled by themselves."""
        return []

    def snapshot(self) -> dict[str, Any]:
        """Give rows kept, with their marks, and watermarks; rows that all instances have are given by instance 0."""
        rows = [
            None if at == self.broadcast and self._instance else buffer.content()
            for at, buffer in enumerate(self._buffers)
        ]
        return super().snapshot() | {"rows": rows, "emitted": [list(pair) for pair in sorted(self._emitted.items())]}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from the snapshots of all instances that were, however many: each takes the rows that belong to it."""
        super().restore(*snapshots)
        self._emitted = smallest(dict(snapshot["emitted"]) for snapshot in snapshots)
        for at, buffer in enumerate(self._buffers):
            buffer.clear()
            tables = [snapshot["rows"][at] for snapshot in snapshots if snapshot["rows"][at] is not None]
            if tables:
                table = contiguous(tables)
                rows = with_columns(without(table, [USED]), self._join.schemas[at], at)
                mine = np.flatnonzero(self._belongs(at, rows, self._instances, self._instance))
                buffer.add(take(rows, mine), np.array(numbers(table, USED), dtype=np.bool_)[mine])

    def routed(self, ordinal: int, batch: pa.Table, instances: int) -> list[pa.Table]:
        """Split rows of an input for a number of instances; those of the side that goes to all are in each part."""
        parts = (self._belongs(ordinal, batch, instances, instance) for instance in range(instances))
        return [take(batch, np.flatnonzero(mine)) for mine in parts]

    def _belongs(self, ordinal: int, table: pa.Table, instances: int, instance: int) -> Mask:
        if ordinal == self.broadcast:
            return np.ones(table.num_rows, bool)
        if self._join.on:
            keys = hash_rows(key_columns(table, self._join.join_key(ordinal)), table.num_rows)
        else:
            keys = row_hashes(table)
        result: Mask = bucket_of(keys, instances) == instance
        return result

    def _received(self, key: int) -> int | None:
        return self._watermarks.edges[self._join.side_of(key)].value(key)

    def _limits(self) -> dict[int, int]:
        """The smallest time of each key that can still find a partner, where anything tells."""
        found = {key: [value for value in of.values() if value is not None] for key, of in self.limits().items()}
        return {key: max(values) for key, values in found.items() if values}

    def _output(self, key: int, limits: Mapping[int, int]) -> int | None:
        received = self._received(key)
        if received is None:
            return None
        if self._formula == "wm_state":
            return min(received, limits[key]) if key in limits else None
        least = self._buffers[self._join.side_of(key)].least(self._join.column_of(key))
        return received if least is None else min(received, least)

    def _late(self, ordinal: int, table: pa.Table) -> Mask:
        """Rows below a watermark received of one of their own columns, or without a time."""
        late = np.zeros(table.num_rows, bool)
        for name, key in self._join.times[ordinal].items():
            times, received = times_of(table, name), self._received(key)
            late |= times == NO_TIME
            if received is not None:
                late |= times < received
        return late

    def _over(self, ordinal: int, table: pa.Table) -> Mask:
        """Rows that no row to come can join."""
        limits = self._limits()
        over = np.zeros(table.num_rows, bool)
        for name, key in self._join.times[ordinal].items():
            if key in limits:
                over |= times_of(table, name) < limits[key]
        return over

    def _able(self, ordinal: int, table: pa.Table) -> Mask:
        """Rows for which the condition on their side alone holds."""
        single = self._join.single.get(ordinal)
        if single is None:
            return np.ones(table.num_rows, bool)
        return np.asarray(project(table, [("able", single)]).column("able").fill_null(False))

    def _refuse_too_many(self, ordinal: int, more: int) -> None:
        kept = [buffer.rows for buffer in self._buffers]
        if self._max_rows is not None and sum(kept) + more > self._max_rows:
            raise LimitReached(
                f"the join would keep {sum(kept) + more:,} rows, and the limit is {self._max_rows:,}",
                detail=f"input 0 has {kept[0]:,} and input 1 {kept[1]:,}; {more:,} of input {ordinal} come on top",
                hint="see which input's watermark does not advance, or raise `max_rows`",
            )

    def _found(self, ordinal: int, table: pa.Table, at: Int64) -> list[Found]:
        """The pairs of rows of a batch, which are the rows `at` of it, for which the whole condition holds."""
        low, high = self._join.bounds(ordinal, table)
        found = self._buffers[1 - ordinal].find(table, self._join.join_key(ordinal), low, high)
        if self._join.condition is not None:
            found = [pairs.of(self._true(table, pairs)) for pairs in found]
        return [Found(pairs.run, at[pairs.left], pairs.right) for pairs in found if len(pairs.left)]

    def _true(self, table: pa.Table, pairs: Found) -> Int64:
        assert self._join.condition is not None
        needed = self._join.condition.columns
        columns = {name: table.column(name).take(pa.array(pairs.left)) for name in needed if name in table.column_names}
        there = [name for name in needed if name not in columns]
        columns |= {name: pairs.run.table.column(name).take(pa.array(pairs.right)) for name in there}
        numbered = replaced(pa.table(columns), ROW, np.arange(len(pairs.left)))
        return numbers(select_rows(numbered, self._join.condition), ROW)

    def _joined(self, ordinal: int, table: pa.Table, found: list[Found]) -> list[Message]:
        """The rows that pairs give: both sides, or for SEMI the left rows that had no partner before."""
        tables = []
        if self._join.kind == "SEMI":
            if ordinal == 0:
                rows = np.unique(np.concatenate([pairs.left for pairs in found])) if found else np.zeros(0, np.int64)
                tables = [take(table, rows)]
            else:
                first = [(pairs.run, np.unique(pairs.right)) for pairs in found]
                tables = [take(run.table, rows[~run.used[rows]]) for run, rows in first]
            tables = [each.select(self._join.schemas[0].names) for each in tables if each.num_rows]
        elif self._join.kind != "ANTI":
            for pairs in found:
                here = take(table, pairs.left)
                there = take(pairs.run.table.select(self._join.schemas[1 - ordinal].names), pairs.right)
                sides = (here, there) if ordinal == 0 else (there, here)
                tables.append(pa.table({name: side.column(name) for side in sides for name in side.column_names}))
        return [Rows(contiguous(tables))] if tables else []

    def _padded(self, ordinal: int, rows: pa.Table) -> list[Message]:
        """Rows of a side without a partner, NULL in the columns of the other; for ANTI there are none of it."""
        if not rows.num_rows:
            return []
        if self._join.kind == "ANTI":
            return [Rows(rows, padded=True)]
        columns = {}
        for at, schema in enumerate(self._join.schemas):
            for each in schema:
                columns[each.name] = rows.column(each.name) if at == ordinal else pa.nulls(rows.num_rows, each.type)
        return [Rows(pa.table(columns), padded=True)]
