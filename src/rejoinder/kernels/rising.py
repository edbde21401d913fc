"""Values that rise with a column: what a window's start, or a time that was moved, says about the time it is made of.

A step takes v to (v + plus) // width * unit: a shift (width and unit 1), a floor (unit = width), a change of unit. All
steps rise: of two values the larger has a result that is not smaller. So a lower bound of the column, sent through the
steps, is a lower bound of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """One step: add, round down to a multiple of `width`, count in units."""

    plus: int = 0
    width: int = 1
    unit: int = 1

    def of(self, value: int) -> int:
        """The result for a value."""
        return (value + self.plus) // self.width * self.unit


def floor(width: int, plus: int = 0) -> tuple[Step, ...]:
    """The steps that round (value + plus) down to a multiple of a width.

    >>> stepped(17, floor(5)), stepped(17, floor(5, plus=-10)), stepped(17, shift(3))
    (15, 5, 20)
    """
    return (Step(plus, width, width),)


def shift(by: int) -> tuple[Step, ...]:
    """The steps that add a constant."""
    return (Step(by),) if by else ()


def stepped(value: int, steps: Iterable[Step]) -> int:
    """Send a value through steps."""
    for step in steps:
        value = step.of(value)
    return value


@dataclass(frozen=True)
class Rising:
    """A value that is not below what `steps` make of `column`; `exact`: it is just that."""

    column: str
    steps: tuple[Step, ...] = ()
    exact: bool = True

    def then(self, *steps: Step, exact: bool = True) -> Rising:
        """The value after further steps."""
        return replace(self, steps=(*self.steps, *steps), exact=self.exact and exact)

    def on(self, inner: Rising) -> Rising:
        """The same of a column that is itself such a value."""
        return Rising(inner.column, (*inner.steps, *self.steps), self.exact and inner.exact)

    @property
    def span(self) -> tuple[int, int] | None:
        """(least, most) that the value can be above its column; None if it counts in another unit, or can be more."""
        least = most = 0
        for step in self.steps:
            if step.width != step.unit:
                return None
            least, most = least + step.plus - step.width + 1, most + step.plus
        return (least, most) if self.exact else None
