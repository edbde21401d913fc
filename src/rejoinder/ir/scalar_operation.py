"""What a call does: the DuckDB template of a function for the types that it is called with, and what it guarantees."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.monotone import Step


@dataclass(frozen=True)
class MonotoneArgument:
    """The value rises with an argument: it is not below what `steps` make of it, and at most so much `more`."""

    argument: int = 0
    steps: tuple[Step, ...] = ()
    more: int | None = 0


@dataclass(frozen=True)
class ScalarOperation:
    """How DuckDB computes a call, and what is known about the result.

    - `template`: DuckDB text with `{0}`, `{1}`, … for the arguments, and `{!message}` for the failure of the row. (A
      repetition in a regular expression must not look like a place: `{2,2}`, not `{2}`.)
    - `name`: the name of the function or operator, if the plan asks for it.
    - `can_fail`: the row may fail even if no argument does.
    - `stops_at_null`: Spark evaluates the arguments in turn and stops at a NULL; what comes after is not evaluated.
    - `is_lazy`: arguments after the first are evaluated only where they are needed, as those of COALESCE.
    - `right_first`: in turn from the right, as divisions do.
    - `makes_null`: the result may be NULL though no argument is.
    - `monotone`: what the result rises with.
    """

    template: str
    name: str = ""
    can_fail: bool = False
    stops_at_null: bool = True
    is_lazy: bool = False
    right_first: bool = False
    makes_null: bool = True
    monotone: MonotoneArgument | None = None
