"""Match a stream with the runs of an arrangement by key: compute the pairs, or only their number per row.

Algebra: diffs multiply; the matches of a row over all runs add up, retractions included. Cost: binary searches for the
smaller of stream and run, per run, plus the pairs; counting needs no pairs if hashes decide equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rejoinder.errors import LimitReached
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.arrow.columns import (
    DIFF,
    ERROR,
    HASH,
    SEQUENCE,
    Int64,
    contiguous,
    diffs,
    drop_unit_diffs,
    has_diffs,
    hashes,
    numbers,
    replaced,
    single_chunk,
    take,
    without,
)
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.probe import TooManyPairsError, count_matches, keep_equal, match
from rejoinder.kernels.arrow.scatter import sorted_by_hash
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.row_errors import or_null, satisfying
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.join_steps import MatchStatus, Presence
from rejoinder.runtime.matching.range_matching import bound, match_nearest, match_range, moved
from rejoinder.runtime.task import Task, key_columns, needles

Names = tuple[tuple[str, str], ...]
Positions = list[tuple[Int64, Int64]]
SMALL = 64
"""Pairs up to which consolidating the rows first does not pay."""


@dataclass(frozen=True)
class Matching:
    """A match of a stream with the runs of an arrangement."""

    stream: pa.Table
    """Sorted by the hash of its key."""
    runs: Sequence[pa.Table]
    """The runs of the arrangement."""
    here: Key
    """Key of the stream."""
    there: Arrangement
    """The arrangement, with its key."""
    limit: int
    """Largest number of pairs."""
    user: str
    """The view or derived relation, for errors."""
    between: tuple[Expression, Expression] | None = None
    """Only rows with an order value between these match."""
    latest: Expression | None = None
    """Only rows at the latest order value up to this time match."""
    strict: bool = False
    """Whether the upper bound itself is excluded, and for `between` the lower bound included."""
    near: tuple[Expression, int, int] | None = None
    """Only rows with an order value from (time − second) to (time + third) match."""

    def pairs(self, carried: Sequence[str], fetched: Names) -> pa.Table | None:
        """Return the pairs: carried columns of the stream, fetched ones (renamed) of the runs, `__diff` unless all 1.

        Returns None if there are none.
        """
        used, positions = self.limited()
        return used._gathered(positions, carried, fetched)

    def _gathered(self, positions: Positions, carried: Sequence[str], fetched: Names) -> pa.Table | None:
        signed = has_diffs(self.stream) or any(has_diffs(run) for run in self.runs)
        stream_diffs = diffs(self.stream) if signed else None
        lefts: list[Int64] = []
        products: list[Int64] = []
        arrays: list[list[pa.Array]] = [[] for _ in fetched]
        for run, (left, right) in zip(self.runs, positions, strict=True):
            if not len(left):
                continue
            lefts.append(left)
            positions = pa.array(right)
            for column, (name, _) in zip(arrays, fetched, strict=True):
                column.append(single_chunk(run.column(name)).take(positions))
            if stream_diffs is not None:
                factors = stream_diffs[left]
                products.append(factors * diffs(run)[right] if has_diffs(run) else factors)
        if not lefts:
            return None
        rows = pa.array(np.concatenate(lefts))
        columns = {name: single_chunk(self.stream.column(name)).take(rows) for name in carried}
        columns |= {output: pa.chunked_array(parts) for parts, (_, output) in zip(arrays, fetched, strict=True)}
        if signed:
            columns[DIFF] = pa.array(np.concatenate(products))
        if not columns:
            columns[HASH] = single_chunk(self.stream.column(HASH)).take(rows)
        return drop_unit_diffs(pa.table(columns))

    def counts(self, condition: Expression | None) -> Int64:
        """Return the number of matches of each row of the stream, among rows of the runs that satisfy `condition`."""
        rows = self.stream.num_rows
        if condition is not None or self.near is not None:
            # A row on which the condition fails is not a match. The lookup that computes the pairs reports the failure.
            numbered = without(replaced(self.stream, SEQUENCE, np.arange(rows)), [DIFF])
            names = () if condition is None else condition.columns
            pairs = replace(self, stream=numbered).pairs((SEQUENCE,), tuple((name, name) for name in names))
            return totals(pairs if pairs is None or condition is None else satisfying(pairs, condition)[0], rows)
        keys = key_columns(self.stream, self.here)
        total = np.zeros(rows, np.int64)
        paired = []
        for run in self.runs:
            if not has_diffs(run) and self._decided_by_hash(keys, run):
                total += count_matches(hashes(self.stream), hashes(run))
            else:
                paired.append(run)
        if not paired:
            return total
        used, positions = replace(self, stream=replaced(self.stream, SEQUENCE, np.arange(rows)), runs=paired).limited()
        for run, (left, right) in zip(used.runs, positions, strict=True):
            total += np.bincount(left, weights=diffs(run)[right], minlength=rows).astype(np.int64)
        return total

    def limited(self) -> tuple[Matching, Positions]:
        """Return the positions of the pairs, by run, and the matching whose runs they refer to.

        If there are too many, or if many of them would cancel each other, the rows are consolidated first: then the
        number of pairs depends neither on compaction nor on rows that were retracted. Otherwise a path through n
        inputs that each have a row, its retraction and a new row would find 3ⁿ pairs instead of one. Raises
        `LimitReached` if there are still too many.
        """
        if self.latest is not None or self.near is not None or self.between is not None:
            return self, list(self._positions())
        try:
            positions = self._within_limit()
            if not self._cancels(positions):
                return self, positions
            net = self._consolidated()
        except TooManyPairsError:
            net = self._consolidated()
        matches = net._matches(net.runs[0])
        if (matches * np.abs(diffs(net.stream))).sum() > self.limit:
            raise net._too_many(matches)
        return net, net._within_limit()

    def _cancels(self, positions: Positions) -> bool:
        """Return whether a quarter or more of the pairs are with retracted rows, so that half of them are not net."""
        pairs = sum(len(right) for _, right in positions)
        if pairs < SMALL:
            return False
        signed = [(run, right) for run, (_, right) in zip(self.runs, positions, strict=True) if has_diffs(run)]
        return 4 * sum(int((diffs(run)[right] < 0).sum()) for run, right in signed) >= pairs

    def _within_limit(self) -> Positions:
        positions: Positions = []
        pairs = 0
        for left, right in self._positions():
            pairs += len(left)
            if pairs > self.limit:
                raise TooManyPairsError
            positions.append((left, right))
        return positions

    def _consolidated(self) -> Matching:
        """Return the same with a single run: the consolidated rows that can match. Numbered stream rows are kept."""
        keys = np.unique(hashes(self.stream))
        parts = [run if self._is_product else take(run, match(keys, hashes(run))[1]) for run in self.runs]
        run = sorted_by_hash(consolidate(contiguous(parts)))
        if SEQUENCE in self.stream.column_names:
            return replace(self, runs=[run])
        return replace(self, runs=[run], stream=sorted_by_hash(consolidate(self.stream)))

    def _matches(self, run: pa.Table) -> Int64:
        """Return the number of rows of a run, with copies, that match each row of the stream by hash."""
        copies = np.append(0, np.cumsum(np.abs(diffs(run))))
        if self._is_product:
            return np.full(self.stream.num_rows, copies[-1], np.int64)
        needles, keys = hashes(self.stream), hashes(run)
        matches: Int64 = (
            copies[np.searchsorted(keys, needles, "right")] - copies[np.searchsorted(keys, needles, "left")]
        )
        return matches

    def _decided_by_hash(self, keys: Sequence[pa.ChunkedArray], run: pa.Table) -> bool:
        there = key_columns(run, self.there.key)
        return not keys or (self.here.exact and not any(c.null_count for c in (*keys, *there)))

    def _positions(self) -> Iterable[tuple[Int64, Int64]]:
        keys = key_columns(self.stream, self.here)
        if self.latest is not None:
            times = bound(_evaluated(self.stream, self.latest), strict=self.strict)
            return match_nearest(self.stream, self.runs, self.here, self.there, times)
        if self.near is not None:
            time, below, above = self.near
            column = _evaluated(self.stream, time)
            low, high = moved(column, -below), moved(column, above)
            return match_range(self.stream, self.runs, self.here, self.there, low=low, high=high)
        if self.between is not None:
            low, high = (_evaluated(self.stream, end) for end in self.between)
            return match_range(
                self.stream,
                self.runs,
                self.here,
                self.there,
                low=bound(low, strict=self.strict),
                high=bound(high, strict=not self.strict),
            )
        return (self._matched(keys, run) for run in self.runs)

    def _matched(self, keys: Sequence[pa.ChunkedArray], run: pa.Table) -> tuple[Int64, Int64]:
        if self._is_product:
            rows, others = self.stream.num_rows, run.num_rows
            if rows * others > self.limit:
                raise TooManyPairsError
            return np.repeat(np.arange(rows), others), np.tile(np.arange(others), rows)
        left, right = match(hashes(self.stream), hashes(run), limit=self.limit)
        if not len(left) or self._decided_by_hash(keys, run):
            return left, right
        columns = list(zip(keys, key_columns(run, self.there.key), strict=True))
        return keep_equal(left, right, columns, null_safe=self.here.null_safe)

    @property
    def _is_product(self) -> bool:
        """Whether every row of the stream matches every row of the runs, which are arranged by another key."""
        return not self.here.parts and bool(self.there.key.parts)

    def _too_many(self, matches: Int64) -> LimitReached:
        pairs, row = int((matches * np.abs(diffs(self.stream))).sum()), int(matches.argmax())
        key = [column[row].as_py() for column in key_columns(self.stream, self.here)]
        cause = " with the same key" if key else ": no condition links them"
        return LimitReached(
            f"`{self.user}` pairs {pairs:,} rows in one step, and the limit is {self.limit:,}",
            detail=f"one row matches {int(matches[row]):,} rows{cause}",
            values=f"key {key[0] if len(key) == 1 else tuple(key)!r}" if key else None,
            hint="add a condition of the form a.x = b.y, filter the inputs, or raise `max_pairs` of the flow",
        )


def _evaluated(table: pa.Table, expression: Expression) -> pa.ChunkedArray:
    return project(table, [("value", or_null(expression))]).column("value")


def changed(task: Task, step: Presence | MatchStatus) -> pa.Table | None:
    """Return the changed rows that can match by key, sorted by `__hash`; None if there are none."""
    stream = task.streams.get(step.input)
    if stream is None or not stream.num_rows:
        return None
    stream = needles(stream, step.arrangement.key, hashed=True)
    return stream if stream.num_rows else None


def aligned(rows: pa.Table, like: pa.Table) -> pa.Table:
    """Return rows on which an expression failed, with the columns of `like`; missing columns are NULL."""
    for name in like.column_names:
        if name not in rows.column_names and name not in (DIFF, ERROR):
            zeros = pa.array(np.zeros(rows.num_rows, np.uint64)) if name == HASH else None
            rows = replaced(rows, name, pa.nulls(rows.num_rows, like.field(name).type) if zeros is None else zeros)
    names = [name for name in like.column_names if name not in (DIFF, ERROR)]
    return rows.select([*names, *((DIFF,) if has_diffs(rows) else ()), ERROR])


def totals(pairs: pa.Table | None, rows: int) -> Int64:
    """Return the sum of the diffs of pairs for each row, which `__sequence` names."""
    if pairs is None or not pairs.num_rows:
        return np.zeros(rows, np.int64)
    return np.bincount(numbers(pairs, SEQUENCE), weights=diffs(pairs), minlength=rows).astype(np.int64)
