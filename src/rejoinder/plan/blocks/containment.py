"""Recognise that a time lies in a validity window: `start <= time AND time < end`, or open at its start instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Predicate
from rejoinder.plan.blocks.normal_form import Input


@dataclass(frozen=True)
class Containment:
    """The window's columns, the time of another input, and the two conditions that say it.

    `strict`: the window is (start, end], so that what begins at the very time is too late.
    """

    start: Expression
    end: Expression
    time: Expression
    predicates: tuple[Predicate, Predicate]
    strict: bool


def containment(windows: Input, predicates: Sequence[Predicate]) -> Containment | None:
    """Find the time that has to lie in the windows of an input of versions; None if there is none."""
    if windows.versions is None:
        return None
    ids = {name: i for i, name in windows.columns}
    start, end = ids.get(windows.versions.time), ids.get(windows.versions.end)
    own = set(ids.values())
    started: dict[tuple[Expression, bool], Predicate] = {}
    for predicate in predicates:
        if predicate.order is not None:
            lesser, greater = predicate.order
            if _is(lesser, start) and greater.columns and not own & set(greater.columns):
                started[greater, predicate.strict] = predicate
    for predicate in predicates:
        if predicate.order is None:
            continue
        time, last = predicate.order
        first = started.get((time, not predicate.strict))
        if _is(last, end) and first is not None and time.type == last.type:
            assert first.order is not None
            return Containment(first.order[0], last, time, (first, predicate), first.strict)
    return None


def _is(side: Expression, identifier: str | None) -> bool:
    return side.is_column and side.columns[0] == identifier
