"""Find the nearest live order value before or after a given one, over several runs that may retract each other's rows.

A value is *live* for a key if the diffs of all rows with that key and that value, in all runs, sum to more than zero.
Keys are compared by value (`same`), so that rows of another key with an equal hash neither make a value live nor end
the search.
Cost: per needle and run a binary search, plus the rows at the nearest value. Dead values are skipped in blocks that
double, so d dead rows cost O(d) and O(log d + runs) iterations, in which only needles without an answer take part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.kernels.arrow.columns import Int64, UInt64, has_diffs
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.ordered import GREATEST, LEAST, Bound, Ordered, Spans, between, extent, spans
from rejoinder.kernels.arrow.probe import expand

BLOCK_ROWS = 1 << 22

Same = Callable[[int, Int64, Int64], Mask]
"""From the number of a run, needles, and rows of the run: a mask of the pairs with equal keys."""


@dataclass(frozen=True)
class Search:
    """A search for needles, sorted by hash, in several runs."""

    size: int
    """Number of needles."""
    runs: Sequence[Ordered]
    met: Sequence[Spans]
    """The rows of each run that have the hash of a needle."""
    same: Same | None
    """None if equal hashes imply equal keys."""

    def pairs(self, number: int, rows: Spans) -> tuple[Int64, Int64]:
        """Return pairs of needles and rows, for the rows of spans of a run that have the key of their needle."""
        left, right = expand(rows.who, rows.low, rows.high - rows.low)
        if self.same is None or not len(left):
            return left, right
        equal = self.same(number, left, right)
        return (left, right) if equal.all() else (left[equal], right[equal])


def search(needles: UInt64, runs: Sequence[Ordered], same: Same | None) -> Search:
    """Return the search for ascending needles in the runs."""
    return Search(len(needles), runs, [spans(needles, run) for run in runs], same)


def within(found: Search, low: Bound | None, high: Bound | None) -> list[tuple[Int64, Int64]]:
    """Return all rows within the bounds of each needle: pairs of positions, by run."""
    return [found.pairs(at, between(run, found.met[at], low, high)) for at, run in enumerate(found.runs)]


def weights(found: Search, values: Int64) -> Int64:
    """Return the sum of the diffs of the rows at one order value per needle."""
    here = Bound(values)
    return _weights(found, [between(run, met, here, here) for run, met in zip(found.runs, found.met, strict=True)])


def nearest(
    found: Search, values: Int64, *, later: bool, strict: bool, known: Mask | None = None
) -> tuple[Int64, Mask]:
    """Find the latest live value up to a given one per needle, or (`later`) the earliest from it on.

    `strict`: the given value itself does not count. `known` says which needles search, the mask which found a value.
    """
    result = _nearest(found, Bound(values, strict, known), later=later)
    return result.values, result.answered


def nearest_rows(found: Search, bound: Bound, *, later: bool) -> list[tuple[Int64, Int64]]:
    """Return all rows at the nearest live value of each needle: pairs of positions, by run."""
    result = _nearest(found, bound, later=later)
    pairs = [found.pairs(number, rows) for number, rows in enumerate(result.rows)]
    behind = result.answered & ~result.at_once
    if not behind.any():
        return pairs
    here = Bound(result.values, known=behind)
    more = within(found, here, here)
    return [
        (np.concatenate([left, other_left]), np.concatenate([right, other_right]))
        for (left, right), (other_left, other_right) in zip(pairs, more, strict=True)
    ]


@dataclass(frozen=True)
class _Nearest:
    """The value of each needle, which needles have one, and the rows at it for needles that found it at once."""

    values: Int64
    answered: Mask
    at_once: Mask
    rows: Sequence[Spans]


def _nearest(found: Search, bound: Bound, *, later: bool) -> _Nearest:
    result = np.zeros(found.size, np.int64)
    answered = np.zeros(found.size, bool)
    at_once, rows = answered, [part.select(answered[part.who]) for part in found.met]
    rest = [
        between(run, met, *((bound, None) if later else (None, bound)))
        for run, met in zip(found.runs, found.met, strict=True)
    ]
    width = 1
    while any(len(part.who) for part in rest):
        edge = block_edge(found, rest, width, later=later)
        blocks = []
        for at, (run, part) in enumerate(zip(found.runs, rest, strict=True)):
            middle = extent(run, part, edge[part.who], later=later)
            before, after = Spans(part.who, part.low, middle), Spans(part.who, middle, part.high)
            block, rest[at] = (before, after) if later else (after, before)
            blocks.append(block.select(block.low < block.high))
        if width == 1:  # a block of one row per run ends at its value, so that each needle has just one value
            at_once = _weights(found, blocks) > 0
            rows = [block.select(at_once[block.who]) for block in blocks]
            answered, result = at_once.copy(), edge
        else:
            who, value = _live(found, blocks, later)
            result[who], answered[who] = value, True
        assert any(len(block.who) for block in blocks), "a run is out of order"
        rest = [part.select((part.low < part.high) & ~answered[part.who]) for part in rest]
        open_rows = sum(len(part.who) for part in rest)
        width = max(2, min(2 * width, BLOCK_ROWS // max(1, open_rows)))
    return _Nearest(result, answered, at_once, rows)


def block_edge(found: Search, rest: Sequence[Spans], width: int, *, later: bool) -> Int64:
    """Return the value that the nearest block of every run reaches: no run was searched beyond it."""
    edge = np.full(found.size, GREATEST if later else LEAST, np.int64)
    for run, part in zip(found.runs, rest, strict=True):
        if later:
            reached = run.values[np.minimum(part.low + width, part.high) - 1]
            edge[part.who] = np.minimum(edge[part.who], reached)
        else:
            reached = run.values[np.maximum(part.high - width, part.low)]
            edge[part.who] = np.maximum(edge[part.who], reached)
    return edge


def _weights(found: Search, rows: Sequence[Spans]) -> Int64:
    total = np.zeros(found.size, np.int64)
    for number, (run, part) in enumerate(zip(found.runs, rows, strict=True)):
        if found.same is None and not has_diffs(run.table):
            total[part.who] += part.high - part.low
            continue
        left, right = found.pairs(number, part)
        if len(left):
            starts = np.flatnonzero(np.concatenate([[True], left[1:] != left[:-1]]))
            total[left[starts]] += np.add.reduceat(run.diffs(right), starts)
    return total


def _live(found: Search, blocks: Sequence[Spans], later: bool) -> tuple[Int64, Int64]:
    """Return the needles that have a live value in their blocks, and the nearest value of each."""
    left, value = live_values(found, blocks)
    changes = left[1:] != left[:-1]
    nearest_one = np.concatenate([[True], changes] if later else [changes, [True]])[: len(left)]
    return left[nearest_one], value[nearest_one]


def live_values(found: Search, blocks: Sequence[Spans]) -> tuple[Int64, Int64]:
    """Return the live values in the blocks of needles: pairs of needle and value, both ascending."""
    lefts, values, counts = [], [], []
    for number, (run, part) in enumerate(zip(found.runs, blocks, strict=True)):
        left, right = found.pairs(number, part)
        lefts.append(left)
        values.append(run.values[right].astype(np.int64))
        counts.append(run.diffs(right))
    left, value, count = np.concatenate(lefts), np.concatenate(values), np.concatenate(counts)
    if not len(left):
        return left, value
    order = np.lexsort((value, left))
    left, value = left[order], value[order]
    starts = np.flatnonzero(np.concatenate([[True], (left[1:] != left[:-1]) | (value[1:] != value[:-1])]))
    live = starts[np.add.reduceat(count[order], starts) > 0]
    return left[live], value[live]
