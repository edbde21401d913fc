"""Retention bounds: the times below which rows of an arrangement expire."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.expressions.expression import Expression
from rejoinder.watermarks.formula import Formula


@dataclass(frozen=True)
class RetentionBound:
    """A user no longer needs a row once `column` < `below`."""

    column: str
    below: Formula
    keeps_nulls: bool = True
    """Whether the user needs rows whose `column` is NULL."""

    def __str__(self) -> str:
        return f"{self.column} >= {self.below}"


@dataclass(frozen=True)
class Retention:
    """When rows of an arrangement expire: once no user needs them."""

    users: tuple[tuple[RetentionBound, ...], ...]
    """The bounds of each user. A user no longer needs a row once the first of its bounds has passed it."""
    condition: Expression | None = None
    """Rows for which this is not true are never stored, because no user needs them."""
    conditions: tuple[str, ...] = ()
    """The conditions of the users, as text; `condition` is their disjunction."""

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, bounds)) for bounds in self.users)

    @property
    def bounds(self) -> tuple[RetentionBound, ...]:
        """Return the bounds of all users, without duplicates."""
        return tuple(dict.fromkeys(bound for bounds in self.users for bound in bounds))
