"""Formulas over watermarks and over persisted values of earlier epochs: the watermarks of unions and joins.

A formula is planned once and evaluated whenever a watermark advances. Formulas are monotone: their values never fall,
so a bound that held once holds forever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rejoinder.ir.expressions.monotone import Step, apply_steps, shift
from rejoinder.ir.identities import RelationId


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
    """The minimum of several formulas."""

    of: tuple[Formula, ...]

    def __str__(self) -> str:
        return f"least({', '.join(map(str, self.of))})"


@dataclass(frozen=True)
class Greatest:
    """The maximum of several formulas."""

    of: tuple[Formula, ...]

    def __str__(self) -> str:
        return f"greatest({', '.join(map(str, self.of))})"


@dataclass(frozen=True)
class Lifted:
    """A formula with steps applied: shifted, or rounded down to the start of a window."""

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
class UnionMinimum:
    """The watermark of a union: the minimum over its branches that are not idle. It never falls.

    A branch is idle if all its sources are. While all branches are idle, the value does not change. The last value is
    persisted with the watermarks under `key`.
    """

    of: tuple[Formula, ...]
    """The formula of each branch."""
    sources: tuple[tuple[str, ...], ...]
    """The sources of each branch."""
    place: str = ""
    """The union of a gate. A gate has a value of its own: its history must not start before that of the late filter."""

    def __str__(self) -> str:
        return f"merged({', '.join(map(str, self.of))})"

    @property
    def key(self) -> str:
        """The identity in the manifest: the formulas of the branches and their sources.

        Manifests contain this text, and with it that of `str` of every formula: neither may change.
        """
        branches = (f"{formula} of {', '.join(names)}" for formula, names in zip(self.of, self.sources, strict=True))
        return f"merged({'; '.join(branches)})" + (f" at {self.place}" if self.place else "")


@dataclass(frozen=True)
class RetainedMinimum:
    """The watermark of a column in the result of a join: the minimum of `own` and of the retained rows.

    A row of the result has the time of a changed row, or that of a retained row that the change looked up. The value
    never falls: the last one is persisted with the watermarks under `key`. Before the first evaluation it is the
    minimum of `own` and `met`.
    """

    own: Formula
    """The frontier of the column in its input."""
    met: Formula | None
    """Changes of the other inputs look up no row below this; None if no condition bounds them."""
    user: RelationId
    """The result of the join."""
    relation: RelationId
    """The relation whose rows are retained for `user`."""
    column: str
    """The column of `relation`."""
    key: str
    """Identity in the manifest: the join and the column, independent of the formulas."""

    def __str__(self) -> str:
        return f"kept({self.relation}.{self.column}, {self.key})"


Formula = Watermark | Least | Greatest | Lifted | UnionMinimum | RetainedMinimum
Persisted = UnionMinimum | RetainedMinimum

PERSISTED = "#persisted"
"""The entry of the watermarks with the last values of unions and joins, by key. No source has such a name."""


def least(formulas: Sequence[Formula]) -> Formula:
    """Return the minimum of formulas, without duplicates."""
    distinct = tuple(dict.fromkeys(formulas))
    return distinct[0] if len(distinct) == 1 else Least(distinct)


def greatest(formulas: Sequence[Formula]) -> Formula:
    """Return the maximum of formulas, without duplicates."""
    distinct = tuple(dict.fromkeys(formulas))
    return distinct[0] if len(distinct) == 1 else Greatest(distinct)


def lowered(formula: Formula, by: int) -> Formula:
    """Return a formula minus a constant."""
    match formula:
        case Watermark():
            return Watermark(formula.source, formula.column, formula.minus + by)
        case Least():
            return Least(tuple(lowered(part, by) for part in formula.of))
        case Greatest():
            return Greatest(tuple(lowered(part, by) for part in formula.of))
        case Lifted() | UnionMinimum() | RetainedMinimum():
            return lift(formula, shift(-by))


def lift(formula: Formula, steps: tuple[Step, ...]) -> Formula:
    """Return a formula with steps applied."""
    if all(step.width == step.unit == 1 for step in steps) and isinstance(formula, Watermark | Least | Greatest):
        return lowered(formula, -sum(step.plus for step in steps))
    if isinstance(formula, Lifted):
        return replace(formula, steps=(*formula.steps, *steps))
    return Lifted(formula, steps) if steps else formula


def value_of(formula: Formula, watermarks: Mapping[str, Mapping[str, int]], none: int) -> int:
    """Evaluate a formula. A watermark or persisted value that does not exist yet is `none`, the smallest value."""
    match formula:
        case Watermark():
            watermark = watermarks.get(formula.source, {}).get(formula.column)
            return none if watermark is None else watermark - formula.minus
        case Least():
            return min(value_of(part, watermarks, none) for part in formula.of)
        case Greatest():
            return max(value_of(part, watermarks, none) for part in formula.of)
        case Lifted():
            value = value_of(formula.of, watermarks, none)
            return none if value == none else apply_steps(value, formula.steps)
        case UnionMinimum():
            return watermarks.get(PERSISTED, {}).get(formula.key, none)
        case RetainedMinimum(own, met):
            bound = none if met is None else min(value_of(part, watermarks, none) for part in (own, met))
            return max(bound, watermarks.get(PERSISTED, {}).get(formula.key, none))


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """Return the direct parts of a formula."""
    match formula:
        case Watermark():
            return ()
        case Lifted():
            return (formula.of,)
        case RetainedMinimum(own, met):
            return (own,) if met is None else (own, met)
        case _:
            return formula.of


def persisted_in(formula: Formula) -> Iterator[Persisted]:
    """Yield the parts of a formula whose values are persisted, inner parts first."""
    for part in parts_of(formula):
        yield from persisted_in(part)
    if isinstance(formula, UnionMinimum | RetainedMinimum):
        yield formula


def watermarks_in(formula: Formula) -> Iterator[Watermark]:
    """Yield the watermarks that a formula reads."""
    if isinstance(formula, Watermark):
        yield formula
    for part in parts_of(formula):
        yield from watermarks_in(part)
