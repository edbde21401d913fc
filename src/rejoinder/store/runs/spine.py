"""A spine: the runs of one arrangement (or changelog) within one range of hashes, in geometric sizes.

Invariants:
- the sum of all runs is the relation: their order does not matter, and compaction never changes the sum;
- runs of an arrangement with an order column are sorted by it within a hash, and compaction keeps that order;
- a level holds fewer than `fan` complete runs, besides those being compacted, so a spine of n rows has O(log n) runs;
- a row is rewritten at most once per level: inserting n rows costs O(n log n) in total;
- expired rows (`Expiry`) may or may not still be on disk. A run whose spans prove that all its rows have expired is
  dropped without being read; compaction leaves expired rows out; a run with mostly expired rows is rewritten. None of
  this happens to rows of the current epoch. A reader of a whole spine must leave expired rows out as well;
- a compaction advances piece by piece, in order of hash, at most `PIECE_BYTES` at a time, and each epoch pays at most
  in proportion to what it inserted: no epoch pays for the whole state. A compaction in progress is visible only as
  references that cover a part of a file; it has no other state, and readers need not know about it.

The cost argument: each inserted row brings credit to rewrite as many rows as the spine has levels, and `SPARE_CREDIT`
more, so a compaction into a level is complete before the next one into it is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import EPOCH, contiguous, hashes, numbers, replaced, single_chunk, with_payload
from rejoinder.kernels.arrow.consolidate import consolidate_groups
from rejoinder.kernels.arrow.ordered import order_by_hash_and_value
from rejoinder.kernels.arrow.sorting import order_by_hash
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.expiry import Expiry
from rejoinder.store.runs.run import RunRef, new_name, read_run, with_epoch, write_run

SMALLEST_LEVEL_ROWS = 4096
PIECE_BYTES = 32 << 20
SPARE_CREDIT = 2


@dataclass(frozen=True)
class Spine:
    """References to the runs, and the credit (in rows) that insertions have left for compaction."""

    refs: tuple[RunRef, ...] = ()
    credit: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        return {"refs": [ref.to_json() for ref in self.refs], "credit": self.credit}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Spine:
        """Read what `to_json` returned."""
        return cls(tuple(RunRef.from_json(ref) for ref in data["refs"]), data["credit"])

    def within(self, first: int, last: int) -> Spine:
        """Return the part of the spine that covers a range of hashes: what one task sees."""
        refs = tuple(ref.clipped(first, last) for ref in self.refs if ref.overlaps(first, last))
        return Spine(refs, self.credit)

    @property
    def rows(self) -> int:
        """Number of rows on disk, including retractions that no compaction has cancelled yet."""
        return sum(ref.rows for ref in self.refs)

    @property
    def bytes(self) -> int:
        """Number of bytes on disk."""
        return sum(ref.bytes for ref in self.refs)

    @property
    def runs(self) -> int:
        """Number of runs (a run may consist of several pieces)."""
        return len({ref.run for ref in self.refs})


@dataclass(frozen=True)
class Compaction:
    """How a spine is compacted."""

    fan: int
    """How many runs of a level become one run of the next level."""
    changelog: bool = False
    """Whether the runs belong to a changelog, whose rows have an epoch."""
    since: int = -1
    """A changelog keeps the epochs after this one apart; earlier ones become this one."""
    order: str | None = None
    """The column by which rows of equal hash are sorted."""
    expiry: Expiry | None = None
    """Which rows a compaction drops."""
    times: tuple[str, ...] = ()
    """Columns of which runs store the span, besides those of `expiry`."""
    columns: tuple[str, ...] | None = None
    """The columns that a compaction keeps; None: all. Older runs may have more."""

    @property
    def spanned(self) -> list[str]:
        """The columns of which runs store the span."""
        bounded = () if self.expiry is None else self.expiry.columns
        return list(dict.fromkeys((*bounded, *self.times)))


def level_of(rows: int, fan: int) -> int:
    """Return the level of a new run: by size, so that a large load is not compacted together with small epochs."""
    level = 0
    while rows > SMALLEST_LEVEL_ROWS * fan**level:
        level += 1
    return level


def insert(spine: Spine, ref: RunRef) -> Spine:
    """Return the spine with one more run; its rows bring credit for compaction."""
    levels = len({present.level for present in spine.refs} | {ref.level})
    return Spine((*spine.refs, ref), spine.credit + (levels + SPARE_CREDIT) * ref.rows)


def maintain(store: ObjectStore, spine: Spine, compaction: Compaction, *, epoch: int, bounds: tuple[int, int]) -> Spine:
    """Compact as far as the credit goes. The result denotes the same relation."""
    while True:
        spine = _begin_compactions(spine, compaction, epoch)
        inputs = _next_inputs(spine)
        if not inputs:
            return replace(spine, credit=0)
        rows = sum(ref.rows for ref in inputs)
        if rows > spine.credit and rows > SMALLEST_LEVEL_ROWS * compaction.fan:
            size = sum(ref.bytes for ref in inputs)
            if spine.credit * size < rows * PIECE_BYTES:  # the credit does not pay for a whole piece
                return spine
        spine = _advance(store, spine, inputs, compaction, epoch, bounds)


def _begin_compactions(spine: Spine, compaction: Compaction, epoch: int) -> Spine:
    """Mark the inputs of new runs: complete runs of a level that has `fan` of them, and runs worth rewriting."""
    refs = list(spine.refs)
    growing = {ref.into for ref in refs if ref.into}
    levels: dict[tuple[int, int], dict[str, None]] = {}
    for ref in refs:
        if not ref.into and ref.run not in growing:
            levels.setdefault((ref.segment, ref.level), {})[ref.run] = None
    inputs = [runs.keys() for runs in levels.values() if len(runs) >= compaction.fan]
    if compaction.expiry is not None:
        # Rows of the current epoch stay: steps of this epoch may still look them up.
        stale = {ref.run for ref in refs if ref.epochs[1] < epoch and compaction.expiry.is_worth_rewriting(ref)}
        alone = [run for runs in levels.values() if len(runs) < compaction.fan for run in runs if run in stale]
        inputs += [dict.fromkeys([run]).keys() for run in alone]
    for runs in inputs:
        target = new_name("merge", epoch)
        refs = [replace(ref, into=target) if ref.run in runs and not ref.into else ref for ref in refs]
    return replace(spine, refs=tuple(refs))


def _next_inputs(spine: Spine) -> list[RunRef]:
    """Return the inputs of the compaction in progress with the lowest level; empty if there is none."""
    inputs: dict[str, list[RunRef]] = {}
    for ref in spine.refs:
        if ref.into:
            inputs.setdefault(ref.into, []).append(ref)
    return min(inputs.values(), key=lambda refs: refs[0].level, default=[])


def _advance(
    store: ObjectStore,
    spine: Spine,
    inputs: Sequence[RunRef],
    compaction: Compaction,
    epoch: int,
    bounds: tuple[int, int],
) -> Spine:
    """Rewrite the next piece of a compaction: the lowest hashes of its inputs, at most `PIECE_BYTES`."""
    first = min(ref.first for ref in inputs)
    last = max(ref.last for ref in inputs)
    size = sum(ref.bytes for ref in inputs)
    cut = last if size <= PIECE_BYTES else first + (last - first) * PIECE_BYTES // size
    taken = [ref.clipped(first, cut) for ref in inputs if ref.overlaps(first, cut)]
    table = compact([_rows(store, ref, compaction, epoch) for ref in taken], compaction)
    kept = [ref for ref in spine.refs if ref not in inputs]
    kept += [ref.clipped(cut + 1, last) for ref in inputs if ref.last > cut]
    if table.num_rows:
        target = inputs[0].into
        rises = len({ref.run for ref in inputs}) > 1  # a run that is rewritten alone stays in its level
        kept.append(
            write_run(
                store,
                table,
                epoch=epoch,
                level=inputs[0].level + rises,
                bounds=(first, cut),
                run=target,
                segment=inputs[0].segment,
                times=compaction.spanned,
            )
        )
    return Spine(tuple(kept), max(0, spine.credit - sum(ref.rows for ref in taken)))


def _rows(store: ObjectStore, ref: RunRef, compaction: Compaction, epoch: int) -> pa.Table:
    table = read_run(store, ref)
    if compaction.columns is not None:
        table = with_payload(table, compaction.columns)
    if compaction.changelog:
        table = with_epoch(table, ref)
    if compaction.expiry is None or ref.epochs[1] >= epoch:
        return table
    return compaction.expiry.drop_expired(table)


def compact(tables: Sequence[pa.Table], compaction: Compaction) -> pa.Table:
    """Return the rows of sorted tables as one sorted and consolidated table."""
    table = contiguous(tables)
    if compaction.changelog:
        table = replaced(table, EPOCH, np.maximum(numbers(table, EPOCH), compaction.since))
    keys = hashes(table)
    if compaction.order is None:
        order = order_by_hash(keys)
    else:
        order = order_by_hash_and_value(keys, single_chunk(table.column(compaction.order)))
    return consolidate_groups(table, keys, order)
