"""Forgetting: which rows of a spine are over, by their times, and which runs are as a whole.

A row is over once no user needs it any more; of the bounds of a user, on columns of times, one is enough. What is over
stays over: bounds only rise.
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
    """The rows whose `column` is below a bound; those that are NULL there too, unless they are `timeless`."""

    column: str
    bound: int
    timeless: bool = True

    def rows(self, table: pa.Table) -> Mask:
        """Which rows they are."""
        found: Mask = times_of(table, self.column) < self.bound
        return found if self.timeless else found | nulls_of(table, self.column)

    def has_all(self, ref: RunRef) -> bool:
        """Whether they are all rows of a run, as far as its span tells."""
        last = self._last(ref)
        return last is not None and last < self.bound

    def has_most(self, ref: RunRef) -> bool:
        """Whether they are more than half of a run, as far as its span tells, or it has none."""
        span, last = ref.span(self.column), self._last(ref)
        return span is None or last is None or 2 * (self.bound - span[0]) > last - span[0] + 1

    def _last(self, ref: RunRef) -> int | None:
        """The time that the bound has to pass to be above all rows of a run; None if it does not tell."""
        span = ref.span(self.column)
        return ref.latest(self.column) if span is None or not self.timeless else span[1]


@dataclass(frozen=True)
class Forgetting:
    """What is over: the rows that, of each of the `users`, are below one bound at least."""

    users: tuple[tuple[Below, ...], ...]

    @classmethod
    def below(cls, column: str, bound: int) -> Forgetting:
        """What is over by one column."""
        return cls(((Below(column, bound),),))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell, each once."""
        return tuple(dict.fromkeys(each.column for bounds in self.users for each in bounds))

    def is_over(self, ref: RunRef) -> bool:
        """Whether no row of a run is needed any more."""
        return all(any(each.has_all(ref) for each in bounds) for bounds in self.users)

    def is_worth(self, ref: RunRef) -> bool:
        """Whether a run is worth a rewrite: more than half of it is below a bound that all users share.

        What stays is above that bound, so that no run is rewritten twice because of the same one.
        """
        return any(each.has_most(ref) for each in self._shared())

    def _shared(self) -> list[Below]:
        """For each column by which every user forgets, what they all do without."""
        found = []
        for column in self.columns:
            users = [[each for each in user if each.column == column] for user in self.users]
            timeless = any(each.timeless for user in users for each in user)
            if all(users):
                found.append(Below(column, min(max(each.bound for each in user) for user in users), timeless))
        return found

    def needed(self, table: pa.Table) -> pa.Table:
        """The rows that are still needed."""
        kept = np.flatnonzero(~self._over(table))
        return table if len(kept) == table.num_rows else take(table, kept)

    def split(self, table: pa.Table) -> list[pa.Table]:
        """The rows that are still needed, and the others; without a part that is empty."""
        is_over = self._over(table)
        if not is_over.any():
            return [table]
        parts = [take(table, np.flatnonzero(mask)) for mask in (~is_over, is_over)]
        return [part for part in parts if part.num_rows]

    def _over(self, table: pa.Table) -> Mask:
        result = np.ones(table.num_rows, bool)
        for bounds in self.users:
            result &= np.logical_or.reduce([each.rows(table) for each in bounds])
        return result
