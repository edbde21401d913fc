"""Values that rise with a column: what a window's start, or a time that was moved, says about the time it is made of.

A step takes v to (v + plus) // width * unit: a shift (width and unit 1), a floor (unit = width), a change of unit. All
steps rise: of two values the larger has a result that is not smaller. So a lower bound of the column, sent through the
steps, is a lower bound of the result; and one of the result, sent through the inverse steps, is one of the column.
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

    @property
    def moves(self) -> bool:
        """Say whether it only adds."""
        return self.width == self.unit == 1


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


def inverse(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps to the least value that gives a result: `stepped(v, steps) >= r` if and only if v is not below it.

    >>> stepped(11, inverse(floor(5))), stepped(11, inverse(shift(3))), stepped(2, inverse([Step(width=24)]))
    (15, 8, 48)
    """
    turned = ((Step(step.unit - 1, step.unit, step.width), Step(-step.plus)) for step in reversed(tuple(steps)))
    return simplified(each for pair in turned for each in pair)


def simplified(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Fewer steps with the same results, so that what goes to another unit and back stays in its own.

    >>> simplified((Step(unit=24), Step(-72), Step(23, width=24)))
    (Step(plus=-3, width=1, unit=1),)
    """
    done: list[Step] = []
    for step in steps:
        _append(done, step)
    return tuple(done)


def _append(done: list[Step], step: Step) -> None:
    if step == Step():
        return
    if done and done[-1].moves:
        _append(done, replace(step, plus=done.pop().plus + step.plus))
    elif done and not step.moves and done[-1].unit % step.width == 0:  # what is rounded is a multiple already
        last = done.pop()
        _append(done, replace(last, unit=last.unit // step.width * step.unit))
        _append(done, Step(step.plus // step.width * step.unit))
    else:
        done.append(step)


@dataclass(frozen=True)
class Rising:
    """A value that is not below what `steps` make of `column`, and at most so much `more`; None: any amount more."""

    column: str
    steps: tuple[Step, ...] = ()
    more: int | None = 0

    def then(self, *steps: Step, more: int | None = 0) -> Rising:
        """The value after further steps, and then so much more at most."""
        above = self.more
        for step in steps:
            above = None if above is None else -(-above // step.width) * step.unit
        return Rising(self.column, (*self.steps, *steps), None if above is None or more is None else above + more)

    def on(self, inner: Rising) -> Rising:
        """The same of a column that is itself such a value."""
        return inner.then(*self.steps, more=self.more)

    def least(self) -> tuple[Step, ...] | None:
        """The steps from a value to the least that the column can be if this is not below the value; None: anything."""
        return None if self.more is None else simplified((*shift(-self.more), *inverse(self.steps)))

    @property
    def span(self) -> tuple[int, int] | None:
        """(least, most) that the value can be above its column; None if it counts in another unit, or can be more."""
        least = most = 0
        for step in self.steps:
            if step.width != step.unit:
                return None
            least, most = least + step.plus - step.width + 1, most + step.plus
        return None if self.more is None else (least, most + self.more)
