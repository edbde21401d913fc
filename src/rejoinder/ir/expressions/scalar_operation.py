"""What a call does: the name of a function, and what the registry of functions knows about this use of it.

The text that computes a function is not here. `kernels.duckdb.functions` finds it by name when a call is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rejoinder.ir.expressions.monotone import Step
from rejoinder.ir.user_functions import UserFunction

Evaluation = Literal["in turn", "from the right", "all", "lazy"]
"""Which arguments Spark evaluates for a row.

- `in turn`: from the left, until one is NULL. Arguments after it are not evaluated, and cannot fail.
- `from the right`: the same from the right, as divisions do.
- `all`: every argument.
- `lazy`: the first argument, then others only where they are needed, as in COALESCE.
"""

Nulls = Literal["propagated", "possible", "never"]
"""When the result is NULL: only if an argument is, perhaps also otherwise, or never."""

Option = str | int


@dataclass(frozen=True)
class MonotoneArgument:
    """A result v with `steps(argument) <= v <= steps(argument) + more`. If `more` is None, v has no upper bound."""

    argument: int = 0
    steps: tuple[Step, ...] = ()
    more: int | None = 0


@dataclass(frozen=True)
class ScalarOperation:
    """A function as a call uses it."""

    name: str
    """The name in the registry of functions."""
    options: tuple[Option, ...] = ()
    """What is fixed for all rows and is not an argument, such as the unit of DATE_TRUNC."""
    evaluation: Evaluation = "in turn"
    nulls: Nulls = "possible"
    can_fail: bool = False
    """Whether a row may fail although none of its arguments does."""
    monotone: MonotoneArgument | None = None
    """The argument with which the result is monotone."""
    user: UserFunction | None = None
    """The function, if it is one of the user's."""
