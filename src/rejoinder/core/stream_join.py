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

from rejoinder.core.join_condition import JoinCondition
from rejoinder.core.join_query import ARRIVALS, SIDES, running_join
from rejoinder.core.messages import LateRows, Message, Rows, with_columns
from rejoinder.core.operator import Operator
from rejoinder.core.running_query import ARRIVAL
from rejoinder.errors import LimitReached, UnknownName, Unsupported
from rejoinder.kernels.arrow.columns import contiguous, numbers, replaced, take, without
from rejoinder.kernels.arrow.consolidate import row_hashes
from rejoinder.kernels.arrow.hashing import Mask, hash_rows
from rejoinder.kernels.arrow.sorting import bucket_of
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.runtime.task import key_columns
from rejoinder.store.runs.time_values import NO_TIME, times_of
from rejoinder.watermarks.coalescer import Watermark, smallest

Formula = Literal["min_buffer", "wm_state"]
USED = "__used"
ALONE = -1
"""The arrival number of the partner that a padded row does not have."""


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
        self._query = running_join(condition, is_capped=max_rows is not None)
        self._arrivals = 0
        self._used = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        self._most_used = 1000
        self._at_most = 0
        self._emitted: dict[int, int] = {}

    @property
    def broadcast(self) -> int | None:
        """The side whose rows go to every instance; None with equal columns."""
        if self._join.on:
            return None
        return 0 if self._join.kind == "RIGHT" else 1

    def buffer(self, ordinal: int) -> pa.Table:
        """The rows of a side that are kept, as they came, with whether each has found a partner (`__used`)."""
        rows = self._query.content(SIDES[ordinal])
        rows = take(rows, np.flatnonzero(self._kept(ordinal, rows)))
        used = np.isin(numbers(rows, ARRIVAL), self._used[ordinal])
        return replaced(without(rows, [ARRIVAL]), USED, used)

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
        self._refuse_too_many(ordinal, table)
        return result + self._emit(self._query.run({SIDES[ordinal]: self._numbered(table)}, {}))

    def on_input_watermark(self, ordinal: int, watermark: Watermark) -> list[Message]:
        """Let go of rows that find no partner any more, then hand watermarks on as far as rows kept allow.

        A key that is not of one of this input's times is dropped: nothing on output stands for it.
        """
        if watermark.key not in self._join.times[ordinal].values():
            return []
        time = {self._join.column_of(watermark.key): watermark.time}
        result = self._emit(self._query.run({}, {SIDES[ordinal]: time}))
        self._prune()
        limits = self._limits()
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
        rows = [None if at == self.broadcast and self._instance else self.buffer(at) for at in (0, 1)]
        return super().snapshot() | {"rows": rows, "emitted": [list(pair) for pair in sorted(self._emitted.items())]}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Go on from the snapshots of all instances that were, however many: each takes the rows that belong to it."""
        super().restore(*snapshots)
        self._emitted = smallest(dict(snapshot["emitted"]) for snapshot in snapshots)
        self._query = running_join(self._join, is_capped=self._max_rows is not None)
        self._used = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        kept: dict[str, pa.Table] = {}
        for at in (0, 1):
            tables = [snapshot["rows"][at] for snapshot in snapshots if snapshot["rows"][at] is not None]
            if tables:
                table = contiguous(tables)
                rows = with_columns(without(table, [USED]), self._join.schemas[at], at)
                mine = np.flatnonzero(self._belongs(at, rows, self._instances, self._instance))
                kept[SIDES[at]] = self._numbered(take(rows, mine))
                used = np.array(numbers(table, USED), dtype=np.bool_)[mine]
                self._used[at] = numbers(kept[SIDES[at]], ARRIVAL)[used]
        received = self.received()
        times = [{name: received[key] for name, key in of.items() if key in received} for of in self._join.times]
        self._at_most = sum(table.num_rows for table in kept.values())
        self._query.run(kept, dict(zip(SIDES, times, strict=True)))  # what comes out has come out before

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
        kept = self._query.watermark(self._join.column_of(key))
        return received if kept is None else min(received, kept)

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

    def _kept(self, ordinal: int, table: pa.Table) -> Mask:
        """Rows that a row to come may join."""
        return self._able(ordinal, table) & ~self._over(ordinal, table)

    def _refuse_too_many(self, ordinal: int, table: pa.Table) -> None:
        if self._max_rows is None:
            return
        more = int(self._kept(ordinal, table).sum())
        self._at_most += more
        if self._at_most <= self._max_rows:
            return
        kept = [self.buffer(at).num_rows for at in (0, 1)]  # of the rows that were counted, some have expired
        self._at_most = sum(kept)
        if sum(kept) + more > self._max_rows:
            raise LimitReached(
                f"the join would keep {sum(kept) + more:,} rows, and the limit is {self._max_rows:,}",
                detail=f"input 0 has {kept[0]:,} and input 1 {kept[1]:,}; {more:,} of input {ordinal} come on top",
                hint="see which input's watermark does not advance, or raise `max_rows`",
            )
        self._at_most += more

    def _numbered(self, table: pa.Table) -> pa.Table:
        first = self._arrivals
        self._arrivals += table.num_rows
        return replaced(table, ARRIVAL, np.arange(first, self._arrivals))

    def _emit(self, rows: pa.Table) -> list[Message]:
        """Messages of the rows that came out: pairs (for SEMI the left rows that had no partner before), then padded.

        A row that was restored as used may come out padded: its partner is gone. It is left out.
        """
        if not rows.num_rows:
            return []
        arrivals = [numbers(replaced(rows, name, rows.column(name).fill_null(ALONE)), name) for name in ARRIVALS]
        order = np.lexsort(arrivals)
        rows, arrivals = take(rows, order), [each[order] for each in arrivals]
        pairs = np.flatnonzero((arrivals[0] != ALONE) & (arrivals[1] != ALONE))
        shown = pairs
        if self._join.kind == "SEMI":
            lefts, firsts = np.unique(arrivals[0][pairs], return_index=True)
            shown = pairs[firsts][~np.isin(lefts, self._used[0])]
        result: list[Message] = []
        if len(shown) and self._join.kind != "ANTI":
            result.append(Rows(self._shown(take(rows, shown))))
        self._used = [np.union1d(used, each[pairs]) for used, each in zip(self._used, arrivals, strict=True)]
        for at in sorted(self._join.preserved):
            alone = (arrivals[1 - at] == ALONE) & ~np.isin(arrivals[at], self._used[at])
            if alone.any():
                result.append(Rows(self._shown(take(rows, np.flatnonzero(alone))), padded=True))
        return result

    def _shown(self, rows: pa.Table) -> pa.Table:
        schemas = self._join.schemas[:1] if self._join.kind in ("SEMI", "ANTI") else self._join.schemas
        return rows.select([name for schema in schemas for name in schema.names])

    def _prune(self) -> None:
        """Drop the marks of rows that are no longer kept, each time their number has doubled."""
        if sum(map(len, self._used)) > self._most_used:
            for at in (0, 1):
                self._used[at] = np.intersect1d(self._used[at], numbers(self._query.content(SIDES[at]), ARRIVAL))
            self._most_used = max(1000, 2 * sum(map(len, self._used)))
