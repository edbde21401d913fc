"""Retention bounds: the times below which rows of an arrangement are no longer needed, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.expression import Expression
from rejoinder.watermarks.formula import Formula


@dataclass(frozen=True)
class Limit:
    """A row is no longer needed once `column` < `below`. Rows with NULL are not needed either, unless `keeps_nulls`."""

    column: str
    below: Formula
    keeps_nulls: bool = True

    def __str__(self) -> str:
        return f"{self.column} >= {self.below}"


@dataclass(frozen=True)
class Retention:
    """Rows of an arrangement may be forgotten once none of its `users` asks for them any more.

    Of the limits of a user one is enough: the first that passes a row ends it. Rows for which the `condition` is not
    true are not kept at all: nobody asks for them.
    """

    users: tuple[tuple[Limit, ...], ...]
    condition: Expression | None = None
    conditions: tuple[str, ...] = ()
    """The conditions of the users, of which `condition` is the disjunction; none if there is no condition."""

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, limits)) for limits in self.users)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of all users, each once."""
        return tuple(dict.fromkeys(limit for limits in self.users for limit in limits))
