"""Monotone functions of a column, such as the start of a window or a shifted time.

A step maps v to (v + plus) // width * unit: a shift (width and unit 1), a floor (unit = width), or a change of unit.
Every step is monotone. Steps applied to a lower bound of the column therefore give a lower bound of the value, and
inverse steps applied to a lower bound of the value give a lower bound of the column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """One step: add `plus`, round down to a multiple of `width`, count in units."""

    plus: int = 0
    width: int = 1
    unit: int = 1

    def of(self, value: int) -> int:
        """Apply the step to a value."""
        return (value + self.plus) // self.width * self.unit

    @property
    def moves(self) -> bool:
        """Say whether it only adds."""
        return self.width == self.unit == 1


def floor(width: int, plus: int = 0) -> tuple[Step, ...]:
    """The steps that round (value + plus) down to a multiple of a width.

    >>> apply_steps(17, floor(5)), apply_steps(17, floor(5, plus=-10)), apply_steps(17, shift(3))
    (15, 5, 20)
    """
    return (Step(plus, width, width),)


def shift(by: int) -> tuple[Step, ...]:
    """The steps that add a constant."""
    return (Step(by),) if by else ()


def apply_steps(value: int, steps: Iterable[Step]) -> int:
    """Apply steps to a value."""
    for step in steps:
        value = step.of(value)
    return value


def inverse(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps from a result r to the least v with `apply_steps(v, steps) >= r`.

    >>> apply_steps(11, inverse(floor(5))), apply_steps(11, inverse(shift(3)))
    (15, 8)
    """
    pairs = ((Step(step.unit - 1, step.unit, step.width), Step(-step.plus)) for step in reversed(tuple(steps)))
    return simplified(step for pair in pairs for step in pair)


def simplified(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Fewer steps with the same results. A change to another unit and back disappears.

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
    elif done and not step.moves and done[-1].unit % step.width == 0:  # the value is a multiple of the width already
        last = done.pop()
        _append(done, replace(last, unit=last.unit // step.width * step.unit))
        _append(done, Step(step.plus // step.width * step.unit))
    else:
        done.append(step)


@dataclass(frozen=True)
class Monotone:
    """A value v with `steps(column) <= v <= steps(column) + more`. If `more` is None, v has no upper bound."""

    column: str
    steps: tuple[Step, ...] = ()
    more: int | None = 0

    def then(self, *steps: Step, more: int | None = 0) -> Monotone:
        """Apply further steps, whose result may be exceeded by at most `more`."""
        above = self.more
        for step in steps:
            above = None if above is None else -(-above // step.width) * step.unit
        return Monotone(self.column, (*self.steps, *steps), None if above is None or more is None else above + more)

    def on(self, inner: Monotone) -> Monotone:
        """Compose with the value of the column, itself a function of another column."""
        return inner.then(*self.steps, more=self.more)

    def least(self) -> tuple[Step, ...] | None:
        """The steps from a lower bound of the value to the least possible column; None if there is no such bound."""
        return None if self.more is None else simplified((*shift(-self.more), *inverse(self.steps)))

    @property
    def span(self) -> tuple[int, int] | None:
        """(least, most) of value minus column; None if the value has another unit or no upper bound."""
        least = most = 0
        for step in self.steps:
            if step.width != step.unit:
                return None
            least, most = least + step.plus - step.width + 1, most + step.plus
        return None if self.more is None else (least, most + self.more)
