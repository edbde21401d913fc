"""Classify the ON of a LEFT, SEMI or ANTI join: keys, conditions on pairs, and the inputs that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Predicate
from rejoinder.plan.blocks.containment import containment
from rejoinder.plan.blocks.normal_form import Block, Input, Mode, inlined
from rejoinder.plan.blocks.padding import is_null_on_padding


@dataclass(frozen=True)
class Conditions:
    """The conditions of a one-sided join."""

    all: tuple[Predicate, ...]
    residual: bool
    """Whether there are conditions on pairs besides equalities, or conditions that can fail on a left row: these are
    evaluated only if the row has a match."""
    keyed: bool
    """Whether there is an equality."""
    needs_one_input: bool
    """Whether the left side must be one input."""

    @classmethod
    def of(cls, left: Block, right: Block, on: tuple[Predicate, ...], mode: Mode) -> Conditions:
        """Classify the conditions of a join whose right side is one input."""
        predicates = inlined(on, dict((*left.outputs, *right.outputs)))
        there = {i for i, _ in right.inputs[0].columns}
        owner = {i: at for at, each in enumerate(left.inputs) for i, _ in each.columns}
        keys = [p for p in predicates if _is_key(p, there)]
        others = [p for p in predicates if not _is_key(p, there)]
        window = _only_window(left, right, predicates, keys) if mode == "left" else ()
        residual = any(
            set(p.expression.columns) - there and (there & set(p.expression.columns) or p.expression.can_fail)
            for p in others
            if not any(p is one for one in window)
        )
        readers = [{owner[i] for i in _outer_side(p, there).columns} for p in keys]
        padded = [
            p
            for p, inputs in zip(keys, readers, strict=True)
            if any(left.inputs[at].mode == "left" and _matches_padding(p, left.inputs[at], there) for at in inputs)
        ]
        spread = any(len(inputs) > 1 for inputs in readers)
        if residual:
            outer = {owner[i] for p in predicates for i in p.expression.columns if i not in there}
            spread = len(outer) > 1 or any(not _is_plain(left.inputs[at]) for at in outer)
        keyed = bool(keys) and right.inputs[0].versions is None
        return cls(oriented(predicates, there), residual, keyed, spread or bool(padded))


def _is_plain(each: Input) -> bool:
    return each.mode == "inner" and each.versions is None and not each.arrival


def _only_window(
    left: Block, right: Block, predicates: tuple[Predicate, ...], keys: list[Predicate]
) -> tuple[Predicate, ...]:
    """Return the conditions that a left time lies in a window of the right side, if the join has no other conditions.

    Then the match status of a row depends only on its partition and time. A filter would leave gaps between windows.
    """
    only = right.inputs[0]
    found = containment(only, predicates)
    if found is None or only.versions is None or right.predicates:
        return ()
    ids = {name: i for i, name in only.columns}
    there = set(ids.values())
    sides = [side for p in keys if p.equality is not None for side in p.equality if set(side.columns) <= there]
    partition = {ids[name] for name in only.versions.partition}
    exact = all(side.is_column for side in sides) and not any(p.null_safe for p in keys)
    filtered = any(set(p.expression.columns) <= there for p in predicates)
    owners = {at for at, each in enumerate(left.inputs) for i, _ in each.columns if i in found.time.columns}
    if not exact or filtered or len(owners) > 1 or sorted(i for s in sides for i in s.columns) != sorted(partition):
        return ()
    return found.predicates


def _is_key(p: Predicate, there: set[str]) -> bool:
    """Return whether a predicate is an equality between the right and the left side."""
    if p.equality is None:
        return False
    sides = [set(side.columns) for side in p.equality]
    return all(sides) and any(a <= there and not b & there for a, b in (sides, sides[::-1]))


def _matches_padding(p: Predicate, each: Input, there: set[str]) -> bool:
    """Return whether padding of an input may have a match by this key."""
    side = _outer_side(p, there)
    alone = set(side.columns) <= {i for i, _ in each.columns}
    return p.null_safe or not (alone and is_null_on_padding(side, each))


def _outer_side(p: Predicate, there: set[str]) -> Expression:
    assert p.equality is not None
    return p.equality[1] if set(p.equality[0].columns) <= there else p.equality[0]


def oriented(predicates: Sequence[Predicate], there: set[str]) -> tuple[Predicate, ...]:
    """Orient the equalities that are keys, left side first; the others become plain conditions."""
    result = []
    for p in predicates:
        if not _is_key(p, there):
            result.append(replace(p, equality=None))
            continue
        assert p.equality is not None
        ours = _outer_side(p, there)
        theirs = p.equality[0] if ours is p.equality[1] else p.equality[1]
        result.append(replace(p, equality=(ours, theirs)))
    return tuple(result)
