"""StreamJoin: join two streams within time bounds, with state that watermarks bound.

A pair is emitted when its second row arrives. A row is retained until a watermark excludes later matches. If it had no
match by then and its side is preserved, it is emitted with NULL padding, before the watermarks that would make it late.
A row that has already expired when it arrives is joined with the retained rows, but not retained. Late rows are
returned.

The output watermark of a column is the minimum of the received watermark and either (`min_buffer`) the smallest
retained time, or (`wm_state`) the smallest time that could be retained. The former is the largest sound value; the
latter is the same on all instances of a join, whatever rows they retain.
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
"""The arrival number that stands for the missing match of a padded row."""


class StreamJoin(Operator):
    """Join input 0 with input 1. `max_rows` caps the retained rows of both inputs together.

    With several `instances`, each has a number. If the join has equal columns (`on`), rows go to the instance of their
    key. Otherwise one side goes to all instances, and the other, the preserved one, is distributed. See `routed`.

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
                detail="no row could match a later one",
                hint="cap the rows of both sides at 1 or more, or remove `max_rows`",
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
                detail="one side would have to go to all instances, and each would emit its rows without a match",
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
        """Return the side whose rows go to every instance; None with equal columns."""
        if self._join.on:
            return None
        return 0 if self._join.kind == "RIGHT" else 1

    def buffer(self, ordinal: int) -> pa.Table:
        """Return the retained rows of a side in order of arrival, and whether each had a match (`__used`)."""
        rows = self._query.content(SIDES[ordinal])
        rows = take(rows, np.flatnonzero(self._kept(ordinal, rows)))
        used = np.isin(numbers(rows, ARRIVAL), self._used[ordinal])
        return replaced(without(rows, [ARRIVAL]), USED, used)

    def limits(self) -> dict[int, dict[int, int | None]]:
        """Return, for each key, the smallest time that can still match, by the key whose watermark bounds it."""
        result: dict[int, dict[int, int | None]] = {key: {} for key in self._join.keys}
        for given, to in self._join.postpone.items():
            received = self._received(given)
            for key, minus in to.items():
                result[key][given] = None if received is None else received - minus
        return result

    def received(self) -> dict[int, int]:
        """Return the last received watermark by key."""
        times = {key: self._received(key) for key in self._join.keys}
        return {key: time for key, time in times.items() if time is not None}

    def emitted(self) -> dict[int, int]:
        """Return the last emitted watermark by key."""
        return dict(self._emitted)

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Join rows with the retained rows of the other side; retain those that can match later."""
        table = with_columns(table, self._join.schemas[ordinal], ordinal)
        late = self._late(ordinal, table)
        result: list[Message] = [LateRows(ordinal, take(table, np.flatnonzero(late)))] if late.any() else []
        table = take(table, np.flatnonzero(~late)) if late.any() else table
        if not table.num_rows:
            return result
        self._refuse_too_many(ordinal, table)
        return result + self._emit(self._query.run({SIDES[ordinal]: self._numbered(table)}, {}))

    def on_input_watermark(self, ordinal: int, watermark: Watermark) -> list[Message]:
        """Drop expired rows, then emit watermarks as far as the retained rows allow.

        A key that is not a time of this input is dropped: no output column has it.
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
        """Return retained rows and watermarks. Only instance 0 returns the rows that all instances have."""
        rows = [None if side == self.broadcast and self._instance else self.buffer(side) for side in (0, 1)]
        return super().snapshot() | {"rows": rows, "emitted": [list(pair) for pair in sorted(self._emitted.items())]}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Continue from the snapshots of all former instances; each instance takes the rows that belong to it."""
        super().restore(*snapshots)
        self._emitted = smallest(dict(snapshot["emitted"]) for snapshot in snapshots)
        self._query = running_join(self._join, is_capped=self._max_rows is not None)
        self._used = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        kept: dict[str, pa.Table] = {}
        for side in (0, 1):
            tables = [snapshot["rows"][side] for snapshot in snapshots if snapshot["rows"][side] is not None]
            if tables:
                table = contiguous(tables)
                rows = with_columns(without(table, [USED]), self._join.schemas[side], side)
                mine = np.flatnonzero(self._belongs(side, rows, self._instances, self._instance))
                kept[SIDES[side]] = self._numbered(take(rows, mine))
                used = np.array(numbers(table, USED), dtype=np.bool_)[mine]
                self._used[side] = numbers(kept[SIDES[side]], ARRIVAL)[used]
        received = self.received()
        times = [{name: received[key] for name, key in of.items() if key in received} for of in self._join.times]
        self._at_most = sum(table.num_rows for table in kept.values())
        self._query.run(kept, dict(zip(SIDES, times, strict=True)))  # its output was emitted before the snapshot

    def routed(self, ordinal: int, batch: pa.Table, instances: int) -> list[pa.Table]:
        """Split rows of an input for a number of instances. Rows of the broadcast side are in every part."""
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
        """Return the smallest time of each key that can still match, if it is bounded."""
        bounds = {key: [value for value in of.values() if value is not None] for key, of in self.limits().items()}
        return {key: max(values) for key, values in bounds.items() if values}

    def _output(self, key: int, limits: Mapping[int, int]) -> int | None:
        received = self._received(key)
        if received is None:
            return None
        if self._formula == "wm_state":
            return min(received, limits[key]) if key in limits else None
        kept = self._query.watermark(self._join.column_of(key))
        return received if kept is None else min(received, kept)

    def _late(self, ordinal: int, table: pa.Table) -> Mask:
        """Return a mask of the late rows: below a received watermark of one of their columns, or without a time."""
        late = np.zeros(table.num_rows, bool)
        for name, key in self._join.times[ordinal].items():
            times, received = times_of(table, name), self._received(key)
            late |= times == NO_TIME
            if received is not None:
                late |= times < received
        return late

    def _expired(self, ordinal: int, table: pa.Table) -> Mask:
        """Return a mask of the rows that no later row can match."""
        limits = self._limits()
        expired = np.zeros(table.num_rows, bool)
        for name, key in self._join.times[ordinal].items():
            if key in limits:
                expired |= times_of(table, name) < limits[key]
        return expired

    def _can_match(self, ordinal: int, table: pa.Table) -> Mask:
        """Return a mask of the rows that satisfy the condition on their side alone."""
        single = self._join.single.get(ordinal)
        if single is None:
            return np.ones(table.num_rows, bool)
        return np.asarray(project(table, [("result", single)]).column("result").fill_null(False))

    def _kept(self, ordinal: int, table: pa.Table) -> Mask:
        """Return a mask of the rows that a later row can match."""
        return self._can_match(ordinal, table) & ~self._expired(ordinal, table)

    def _refuse_too_many(self, ordinal: int, table: pa.Table) -> None:
        if self._max_rows is None:
            return
        more = int(self._kept(ordinal, table).sum())
        self._at_most += more
        if self._at_most <= self._max_rows:
            return
        kept = [self.buffer(side).num_rows for side in (0, 1)]  # some of the counted rows have expired
        self._at_most = sum(kept)
        if sum(kept) + more > self._max_rows:
            raise LimitReached(
                f"the join would keep {sum(kept) + more:,} rows, and the limit is {self._max_rows:,}",
                detail=f"input 0 has {kept[0]:,} and input 1 {kept[1]:,}; input {ordinal} adds {more:,}",
                hint="check which input's watermark does not advance, or raise `max_rows`",
            )
        self._at_most += more

    def _numbered(self, table: pa.Table) -> pa.Table:
        first = self._arrivals
        self._arrivals += table.num_rows
        return replaced(table, ARRIVAL, np.arange(first, self._arrivals))

    def _emit(self, rows: pa.Table) -> list[Message]:
        """Return messages of the emitted rows: pairs (for SEMI, left rows with their first match), then padding.

        A row that was restored as used may be padded by the query, because its match was not restored. It is dropped.
        """
        if not rows.num_rows:
            return []
        arrivals = [numbers(replaced(rows, name, rows.column(name).fill_null(ALONE)), name) for name in ARRIVALS]
        order = np.lexsort(arrivals)
        rows, arrivals = take(rows, order), [side[order] for side in arrivals]
        pairs = np.flatnonzero((arrivals[0] != ALONE) & (arrivals[1] != ALONE))
        shown = pairs
        if self._join.kind == "SEMI":
            lefts, firsts = np.unique(arrivals[0][pairs], return_index=True)
            shown = pairs[firsts][~np.isin(lefts, self._used[0])]
        result: list[Message] = []
        if len(shown) and self._join.kind != "ANTI":
            result.append(Rows(self._shown(take(rows, shown))))
        self._used = [np.union1d(used, side[pairs]) for used, side in zip(self._used, arrivals, strict=True)]
        for side in sorted(self._join.preserved):
            alone = (arrivals[1 - side] == ALONE) & ~np.isin(arrivals[side], self._used[side])
            if alone.any():
                result.append(Rows(self._shown(take(rows, np.flatnonzero(alone))), padded=True))
        return result

    def _shown(self, rows: pa.Table) -> pa.Table:
        schemas = self._join.schemas[:1] if self._join.kind in ("SEMI", "ANTI") else self._join.schemas
        return rows.select([name for schema in schemas for name in schema.names])

    def _prune(self) -> None:
        """Drop the marks of rows that are no longer retained, each time their number has doubled."""
        if sum(map(len, self._used)) > self._most_used:
            for side in (0, 1):
                retained = numbers(self._query.content(SIDES[side]), ARRIVAL)
                self._used[side] = np.intersect1d(self._used[side], retained)
            self._most_used = max(1000, 2 * sum(map(len, self._used)))
