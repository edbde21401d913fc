"""Calls of the plan's primitive aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.user_functions import UserFunction

Function = Literal[
    "count",
    "sum",
    "min",
    "max",
    "m2",
    "comoment",
    "skewness",
    "kurtosis",
    "bit_and",
    "bit_or",
    "bit_xor",
    "at",
    "list",
    "single",
    "user",
]
"""Primitive aggregates.

- `m2`: the sum of the squares of the distances from the mean; `comoment`: of the products, of a struct of two numbers;
- `at`: the value at a position, `list`: all values, both of rows in a `ValueOrder`;
- `single`: the only value of a group that is not NULL;
- `user`: an aggregate of the user, over structs of its arguments.
"""


@dataclass(frozen=True)
class Call:
    """A call of an aggregate function, which ignores NULL."""

    function: Function
    argument: Expression | None
    """None for `count(*)`."""
    type: pa.DataType
    options: tuple[str | float, ...] = ()
    """Of `at`: which position, and the fraction that it is computed from."""
    user: UserFunction | None = None
    """Of `user`: the aggregate."""


@dataclass(frozen=True)
class ValueOrder:
    """The order of the rows of a group for `at` and `list`. Rows that are equal in all columns are equal."""

    columns: tuple[tuple[Expression, str], ...]
    """Expressions, each with its direction: DESC NULLS LAST."""
    weight: Expression
    """How many values a row stands for; NULL for none."""
