"""Formulas over watermarks as text, for EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.formats.text.row_text import length_text
from rejoinder.ir.expressions.monotone import Step, floor, shift, simplified
from rejoinder.ir.identities import is_on_time, source_of
from rejoinder.watermarks.formula import (
    Formula,
    Greatest,
    Least,
    Lifted,
    RetainedMinimum,
    UnionMinimum,
    Watermark,
    watermarks_in,
)

SECOND, DAY = 1_000_000, 86_400_000_000
Kinds = Callable[[str, str], pa.DataType]


def amount_text(amount: int, kind: pa.DataType) -> str:
    """Format an amount in the unit of a type of times.

    >>> amount_text(300_000_000, pa.timestamp("us")), amount_text(-1, pa.date32()), amount_text(7, pa.int64())
    ('5 minutes', '-1 day', '7')
    """
    if pa.types.is_date(kind):
        amount *= DAY
    elif not pa.types.is_timestamp(kind) and not pa.types.is_struct(kind):
        return str(amount)
    sign = "-" if amount < 0 else ""
    return sign + (length_text(abs(amount)) if amount % SECOND == 0 else f"{abs(amount) / SECOND:.12g} s")


def formula_text(formula: Formula, kinds: Kinds) -> str:
    """Format a formula; `kinds` returns the type of a column of a source."""
    if isinstance(formula, Watermark):
        kind = kinds(formula.source, formula.column)
        return f"the watermark of {formula.source}.{formula.column}" + _moved(-formula.minus, kind)
    if isinstance(formula, Lifted):
        text, kind = formula_text(formula.of, kinds), kind_of(formula.of, kinds)
        for step in simplified(formula.steps):
            text += _stepped(step, kind)
            kind = _counted(step, kind)
        return text
    if isinstance(formula, UnionMinimum):
        return f"least of those not idle({', '.join(formula_text(each, kinds) for each in formula.of)})"
    if isinstance(formula, RetainedMinimum):
        named = f"{source_of(formula.relation)}.{formula.column}" if is_on_time(formula.relation) else "row"
        oldest = f"the oldest {named} kept"
        if formula.met is not None:
            oldest = f"greatest({formula_text(formula.met, kinds)}, {oldest})"
        return f"least({formula_text(formula.own, kinds)}, {oldest})"
    word = "least" if isinstance(formula, Least) else "greatest"
    flat = (inner for each in formula.of for inner in (each.of if isinstance(each, type(formula)) else (each,)))
    return f"{word}({', '.join(dict.fromkeys(formula_text(each, kinds) for each in flat))})"


def passed_text(time: str, limit: Formula, kinds: Kinds, *, at: bool) -> str:
    """Format the condition that a limit has passed a time; with `at`, that it has reached the end of a window."""
    match limit:
        case Lifted(inner, steps):
            steps = simplified(steps)
            limit = Lifted(inner, steps) if steps else inner
            if at and len(steps) == 2 and steps == (*floor(steps[0].width), *shift(steps[0].width - 1)):
                limit = inner  # the next window has begun
    if not is_plain(limit):
        return f"{time} {'<=' if at else '<'} {formula_text(limit, kinds)}"
    named = sorted({f"{each.source}.{each.column}" for each in watermarks_in(limit)})
    word, have = ("watermark", "has") if len(named) == 1 else ("watermarks", "have")
    return f"the {word} of {' and '.join(named)} {have} passed {time}"


def is_plain(formula: Formula) -> bool:
    """Return whether a formula is a watermark, or the minimum of watermarks."""
    if isinstance(formula, Least):
        return all(is_plain(each) for each in formula.of)
    return isinstance(formula, Watermark) and not formula.minus


def kind_of(formula: Formula, kinds: Kinds) -> pa.DataType:
    """Return the type of the value of a formula."""
    match formula:
        case Watermark():
            return kinds(formula.source, formula.column)
        case Lifted():
            kind = kind_of(formula.of, kinds)
            for step in formula.steps:
                kind = _counted(step, kind)
            return kind
        case RetainedMinimum():
            return kind_of(formula.own, kinds)
        case Least() | Greatest() | UnionMinimum():
            return kind_of(formula.of[0], kinds)


def _counted(step: Step, kind: pa.DataType) -> pa.DataType:
    """Return the type after a step: it may convert times to dates, or dates to times."""
    if step.width == step.unit or pa.types.is_integer(kind):
        return kind
    return pa.date32() if step.width > step.unit else pa.timestamp("us")


def _moved(by: int, kind: pa.DataType) -> str:
    return f" {'+' if by > 0 else '-'} {amount_text(abs(by), kind)}" if by else ""


def _stepped(step: Step, kind: pa.DataType) -> str:
    if step.width == 1:
        return _moved(step.plus, kind)
    if step.width != step.unit and pa.types.is_integer(kind):
        return f"{_moved(step.plus, kind)}, divided by {step.width}"
    is_up = (step.plus + 1) % (SECOND if pa.types.is_timestamp(kind) else step.width) == 0
    plus, word = (step.plus - step.width + 1, "up") if is_up else (step.plus, "down")
    return f"{_moved(plus, kind)}, rounded {word} to {amount_text(step.width, kind)}"
