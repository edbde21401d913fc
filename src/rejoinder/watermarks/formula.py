"""Formulas over watermarks, and over what is persisted of earlier epochs: how far merges and joins are.

A formula is planned once and worked out whenever something moves. All of them rise: what a formula gave once is true
for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rejoinder.ir.monotone import Step, shift, stepped


@dataclass(frozen=True)
class Watermark:
    """The watermark of a source's column, minus a constant."""

    source: str
    column: str
    minus: int = 0

    def __str__(self) -> str:
        return f"{self.source}.{self.column}" + (f" - {self.minus}" if self.minus else "")


@dataclass(frozen=True)
class Least:
    """The least of several formulas."""

    of: tuple[Formula, ...]

    def __str__(self) -> str:
        return f"least({', '.join(map(str, self.of))})"


@dataclass(frozen=True)
class Greatest:
    """The greatest of several formulas."""

    of: tuple[Formula, ...]

    def __str__(self) -> str:
        return f"greatest({', '.join(map(str, self.of))})"


@dataclass(frozen=True)
class Stepped:
    """A formula sent through steps: rounded down to a window, moved."""

    of: Formula
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        text = str(self.of)
        for step in self.steps:
            text += f" {'+' if step.plus > 0 else '-'} {abs(step.plus)}" if step.plus else ""
            text = f"floor({text}, {step.width})" if step.width > 1 else text
            text = f"{text} in units" if step.unit != step.width else text
        return text


@dataclass(frozen=True)
class Merged:
    """The least over the branches of a union that are not idle: those with a source that is not. It never goes back.

    What it was last is kept with the watermarks, under `key`. While all branches are idle it stays where it is. `place`
    is the union of a gate, whose past must not reach further back than that of what sorts out late changes there.
    """

    of: tuple[Formula, ...]
    sources: tuple[tuple[str, ...], ...]
    place: str = ""

    def __str__(self) -> str:
        return f"merged({', '.join(map(str, self.of))})"

    @property
    def key(self) -> str:
        """What identifies it: the formulas of its branches, and the sources that they read."""
        read = (f"{formula} of {', '.join(names)}" for formula, names in zip(self.of, self.sources, strict=True))
        return f"merged({'; '.join(read)})" + (f" at {self.place}" if self.place else "")


@dataclass(frozen=True)
class Kept:
    """How far a join is with a column of an input: `own`, its frontier, or the oldest row that is kept if that is less.

    A time in a change of the join has come with it, or is that of a row that is kept of the `relation`, for the `user`:
    what the join makes. Changes of the other inputs meet no row below `met`; None: no condition says so.

    It never goes back: what it was last is kept with the watermarks, under `key`, which names the join and the column
    whatever the formulas are. Before it is worked out, no more is known than the least of `own` and `met`.
    """

    own: Formula
    met: Formula | None
    user: str
    relation: str
    column: str
    key: str

    def __str__(self) -> str:
        return f"kept({self.relation}.{self.column}, {self.key})"


Formula = Watermark | Least | Greatest | Stepped | Merged | Kept
Persisted = Merged | Kept

PERSISTED = "#persisted"
"""Where the last values of merges and joins are, by key, among the watermarks: no source has such a name."""


def least(formulas: Sequence[Formula]) -> Formula:
    """The least of formulas, each once."""
    each = tuple(dict.fromkeys(formulas))
    return each[0] if len(each) == 1 else Least(each)


def greatest(formulas: Sequence[Formula]) -> Formula:
    """The greatest of formulas, each once."""
    each = tuple(dict.fromkeys(formulas))
    return each[0] if len(each) == 1 else Greatest(each)


def lowered(formula: Formula, by: int) -> Formula:
    """A formula minus a constant."""
    match formula:
        case Watermark():
            return Watermark(formula.source, formula.column, formula.minus + by)
        case Least():
            return Least(tuple(lowered(each, by) for each in formula.of))
        case Greatest():
            return Greatest(tuple(lowered(each, by) for each in formula.of))
        case Stepped() | Merged() | Kept():
            return raised(formula, shift(-by))


def raised(formula: Formula, steps: tuple[Step, ...]) -> Formula:
    """A formula sent through steps."""
    if all(step.width == step.unit == 1 for step in steps) and not isinstance(formula, Stepped | Merged | Kept):
        return lowered(formula, -sum(step.plus for step in steps))
    if isinstance(formula, Stepped):
        return replace(formula, steps=(*formula.steps, *steps))
    return Stepped(formula, steps) if steps else formula


def value_of(formula: Formula, watermarks: Mapping[str, Mapping[str, int]], none: int) -> int:
    """Work a formula out; a watermark, or what is persisted, that is not there yet is `none`, the least of all."""
    match formula:
        case Watermark():
            found = watermarks.get(formula.source, {}).get(formula.column)
            return none if found is None else found - formula.minus
        case Least():
            return min(value_of(each, watermarks, none) for each in formula.of)
        case Greatest():
            return max(value_of(each, watermarks, none) for each in formula.of)
        case Stepped():
            found = value_of(formula.of, watermarks, none)
            return none if found == none else stepped(found, formula.steps)
        case Merged():
            return watermarks.get(PERSISTED, {}).get(formula.key, none)
        case Kept(own, met):
            bound = none if met is None else min(value_of(each, watermarks, none) for each in (own, met))
            return max(bound, watermarks.get(PERSISTED, {}).get(formula.key, none))


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The formulas that a formula is made of."""
    match formula:
        case Watermark():
            return ()
        case Stepped():
            return (formula.of,)
        case Kept(own, met):
            return (own,) if met is None else (own, met)
        case _:
            return formula.of


def persisted_in(formula: Formula) -> Iterator[Persisted]:
    """Yield the parts of a formula whose values are persisted, inner parts first."""
    for each in parts_of(formula):
        yield from persisted_in(each)
    if isinstance(formula, Merged | Kept):
        yield formula


def watermarks_in(formula: Formula) -> Iterator[Watermark]:
    """The watermarks that a formula is made of."""
    if isinstance(formula, Watermark):
        yield formula
    for each in parts_of(formula):
        yield from watermarks_in(each)
