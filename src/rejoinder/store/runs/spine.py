"""A spine: the runs of one arrangement (or changelog) within one range of hashes, in geometric sizes.

Invariants:
- the sum of all runs is the relation: no order among them matters, and merging never changes the sum;
- runs of an arrangement with an order column are sorted by it within a hash, and merging keeps that;
- a level holds fewer than `fan` complete runs, but for those being merged, so a spine of n rows has O(log n) runs;
- a row is rewritten at most once per level: inserting n rows costs O(n log n) in all;
- rows that a `Forgetting` says are over may be there or not: a run of which its spans tell so is dropped without being
  read, merges leave such rows out, and a run that has more of them than others is rewritten; none of this before
  their epoch is over. Who reads a whole spine leaves them out as well;
- a merge goes on piece by piece, in order of hash, at most `PIECE_BYTES` at a time, and each epoch pays at most in
  proportion to what it inserted: no epoch pays for the whole state. A merge under way is visible only as
  references that cover a part of a file; there is no other state of it, and readers need not know.

The cost argument: each inserted row brings credit to rewrite as many rows as the spine has levels, and `SPARE_CREDIT`
more, so a merge into a level is done before the next one into it is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import EPOCH, contiguous, hashes, numbers, replaced, single_chunk
from rejoinder.kernels.arrow.consolidate import consolidate_groups
from rejoinder.kernels.arrow.ordered import order_by_hash_and_value
from rejoinder.kernels.arrow.sorting import order_by_hash
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Forgetting
from rejoinder.store.runs.run import RunRef, new_name, read_run, with_epoch, write_run

SMALLEST_LEVEL_ROWS = 4096
PIECE_BYTES = 32 << 20
SPARE_CREDIT = 2


@dataclass(frozen=True)
class Spine:
    """References to the runs, and the credit (in rows) that insertions have left for merges."""

    refs: tuple[RunRef, ...] = ()
    credit: int = 0

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest."""
        return {"refs": [ref.to_json() for ref in self.refs], "credit": self.credit}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Spine:
        """Read what `to_json` gave."""
        return cls(tuple(RunRef.from_json(ref) for ref in data["refs"]), data["credit"])

    def within(self, first: int, last: int) -> Spine:
        """The part of the spine that covers a range of hashes: what one task sees."""
        refs = tuple(ref.clipped(first, last) for ref in self.refs if ref.overlaps(first, last))
        return Spine(refs, self.credit)

    @property
    def rows(self) -> int:
        """Rows held, retractions that are not merged away yet included."""
        return sum(ref.rows for ref in self.refs)

    @property
    def bytes(self) -> int:
        """Bytes held on disk."""
        return sum(ref.bytes for ref in self.refs)

    @property
    def runs(self) -> int:
        """Number of runs (a run may consist of several pieces)."""
        return len({ref.run for ref in self.refs})


@dataclass(frozen=True)
class Merging:
    """How a spine merges: `fan` runs of a level into one of the next; changelogs keep epochs after `since`.

    `order` names the column by which rows of equal hash are sorted, `times` those of which runs know the span, besides
    those that they are forgotten by.
    """

    fan: int
    changelog: bool = False
    since: int = -1
    order: str | None = None
    forgetting: Forgetting | None = None
    times: tuple[str, ...] = ()

    @property
    def spanned(self) -> list[str]:
        """The columns of which runs know the span."""
        forgotten = () if self.forgetting is None else self.forgetting.columns
        return list(dict.fromkeys((*forgotten, *self.times)))


def level_of(rows: int, fan: int) -> int:
    """The level of a new run: by size, so that a large load is not merged with small epochs."""
    level = 0
    while rows > SMALLEST_LEVEL_ROWS * fan**level:
        level += 1
    return level


def insert(spine: Spine, ref: RunRef) -> Spine:
    """Add a run; its rows bring credit for merges."""
    levels = len({known.level for known in spine.refs} | {ref.level})
    return Spine((*spine.refs, ref), spine.credit + (levels + SPARE_CREDIT) * ref.rows)


def maintain(store: ObjectStore, spine: Spine, how: Merging, *, epoch: int, bounds: tuple[int, int]) -> Spine:
    """Merge as far as the credit goes. The result denotes the same relation."""
    while True:
        spine = _begin_merges(spine, how, epoch)
        inputs = _next_merge(spine)
        if not inputs:
            return replace(spine, credit=0)
        rows = sum(ref.rows for ref in inputs)
        if rows > spine.credit and rows > SMALLEST_LEVEL_ROWS * how.fan:
            size = sum(ref.bytes for ref in inputs)
            if spine.credit * size < rows * PIECE_BYTES:
                return spine
        spine = _advance(store, spine, inputs, how, epoch, bounds)


def _begin_merges(spine: Spine, how: Merging, epoch: int) -> Spine:
    """Mark what goes into new runs: complete runs of a level that has `fan` of them, and what is worth a rewrite."""
    refs = list(spine.refs)
    growing = {ref.into for ref in refs if ref.into}
    levels: dict[tuple[int, int], dict[str, None]] = {}
    for ref in refs:
        if not ref.into and ref.run not in growing:
            levels.setdefault((ref.segment, ref.level), {})[ref.run] = None
    full = [runs.keys() for runs in levels.values() if len(runs) >= how.fan]
    if how.forgetting is not None:
        stale = {ref.run for ref in refs if ref.epochs[1] < epoch and how.forgetting.is_worth(ref)}
        alone = [run for runs in levels.values() if len(runs) < how.fan for run in runs if run in stale]
        full += [dict.fromkeys([run]).keys() for run in alone]
    for runs in full:
        target = new_name("merge", epoch)
        refs = [replace(ref, into=target) if ref.run in runs and not ref.into else ref for ref in refs]
    return replace(spine, refs=tuple(refs))


def _next_merge(spine: Spine) -> list[RunRef]:
    """The inputs of the merge under way with the lowest level, if any."""
    merges: dict[str, list[RunRef]] = {}
    for ref in spine.refs:
        if ref.into:
            merges.setdefault(ref.into, []).append(ref)
    return min(merges.values(), key=lambda refs: refs[0].level, default=[])


def _advance(
    store: ObjectStore, spine: Spine, inputs: Sequence[RunRef], how: Merging, epoch: int, bounds: tuple[int, int]
) -> Spine:
    """Rewrite the next piece of a merge: the lowest hashes of its inputs, at most `PIECE_BYTES`."""
    first = min(ref.first for ref in inputs)
    last = max(ref.last for ref in inputs)
    size = sum(ref.bytes for ref in inputs)
    cut = last if size <= PIECE_BYTES else first + (last - first) * PIECE_BYTES // size
    taken = [ref.clipped(first, cut) for ref in inputs if ref.overlaps(first, cut)]
    table = merged([_rows(store, ref, how, epoch) for ref in taken], how)
    kept = [ref for ref in spine.refs if ref not in inputs]
    kept += [ref.clipped(cut + 1, last) for ref in inputs if ref.last > cut]
    if table.num_rows:
        target = inputs[0].into
        is_merge = len({ref.run for ref in inputs}) > 1
        kept.append(
            write_run(
                store,
                table,
                epoch=epoch,
                level=inputs[0].level + is_merge,
                bounds=(first, cut),
                run=target,
                segment=inputs[0].segment,
                times=how.spanned,
            )
        )
    return Spine(tuple(kept), max(0, spine.credit - sum(ref.rows for ref in taken)))


def _rows(store: ObjectStore, ref: RunRef, how: Merging, epoch: int) -> pa.Table:
    table = read_run(store, ref)
    if how.changelog:
        table = with_epoch(table, ref)
    if how.forgetting is None or ref.epochs[1] >= epoch:
        return table
    return how.forgetting.needed(table)


def merged(tables: Sequence[pa.Table], how: Merging) -> pa.Table:
    """Merge sorted tables into one sorted and netted table."""
    table = contiguous(tables)
    if how.changelog:
        table = replaced(table, EPOCH, np.maximum(numbers(table, EPOCH), how.since))
    keys = hashes(table)
    if how.order is None:
        order = order_by_hash(keys)
    else:
        order = order_by_hash_and_value(keys, single_chunk(table.column(how.order)))
    return consolidate_groups(table, keys, order)
