"""Expiry: which rows of a spine have expired, by their times, and which whole runs.

A row expires once no user needs it. A user has bounds on time columns, and stops needing a row as soon as one of them
has passed it. Bounds only rise, so an expired row stays expired.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.kernels.arrow.columns import take
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.store.runs.run import RunRef
from rejoinder.store.runs.time_values import nulls_of, times_of


@dataclass(frozen=True)
class Below:
    """Selects the rows with `column` < `bound`, and the rows with NULL unless `keeps_nulls`."""

    column: str
    bound: int
    keeps_nulls: bool = True

    def rows(self, table: pa.Table) -> Mask:
        """Return a mask of the selected rows."""
        is_below: Mask = times_of(table, self.column) < self.bound
        return is_below if self.keeps_nulls else is_below | nulls_of(table, self.column)

    def has_all(self, ref: RunRef) -> bool:
        """Whether the span of a run proves that all its rows are selected."""
        last = self._last(ref)
        return last is not None and last < self.bound

    def has_most(self, ref: RunRef) -> bool:
        """Whether more than half of a run is selected, estimated from its span; True for a run without a span."""
        span, last = ref.span(self.column), self._last(ref)
        return span is None or last is None or 2 * (self.bound - span[0]) > last - span[0] + 1

    def _last(self, ref: RunRef) -> int | None:
        """Return the time that the bound must exceed to select all rows of a run; None if the run has no span."""
        span = ref.span(self.column)
        return ref.latest(self.column) if span is None or not self.keeps_nulls else span[1]


@dataclass(frozen=True)
class Expiry:
    """A row has expired if, for each of the `users`, at least one bound selects it."""

    users: tuple[tuple[Below, ...], ...]

    @classmethod
    def below(cls, column: str, bound: int) -> Expiry:
        """Return the expiry of rows by a single column."""
        return cls(((Below(column, bound),),))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all bounds, each once."""
        return tuple(dict.fromkeys(bound.column for bounds in self.users for bound in bounds))

    def is_expired(self, ref: RunRef) -> bool:
        """Whether the spans of a run prove that all its rows have expired."""
        return all(any(bound.has_all(ref) for bound in bounds) for bounds in self.users)

    def is_worth_rewriting(self, ref: RunRef) -> bool:
        """Whether more than half of a run is below a bound that all users share.

        The rows that a rewrite keeps are above that bound, so the same bound never causes a second rewrite.
        """
        return any(bound.has_most(ref) for bound in self._shared())

    def _shared(self) -> list[Below]:
        """Return, for each column that every user has a bound on, the bound below which no user needs a row."""
        shared = []
        for column in self.columns:
            users = [[bound for bound in bounds if bound.column == column] for bounds in self.users]
            keeps_nulls = any(bound.keeps_nulls for bounds in users for bound in bounds)
            if all(users):
                lowest = min(max(bound.bound for bound in bounds) for bounds in users)
                shared.append(Below(column, lowest, keeps_nulls))
        return shared

    def drop_expired(self, table: pa.Table) -> pa.Table:
        """Return the rows that have not expired."""
        kept = np.flatnonzero(~self._expired(table))
        return table if len(kept) == table.num_rows else take(table, kept)

    def split(self, table: pa.Table) -> list[pa.Table]:
        """Return the rows that have not expired and those that have, without an empty part."""
        is_expired = self._expired(table)
        if not is_expired.any():
            return [table]
        parts = [take(table, np.flatnonzero(mask)) for mask in (~is_expired, is_expired)]
        return [part for part in parts if part.num_rows]

    def _expired(self, table: pa.Table) -> Mask:
        is_expired = np.ones(table.num_rows, bool)
        for bounds in self.users:
            is_expired &= np.logical_or.reduce([bound.rows(table) for bound in bounds])
        return is_expired
