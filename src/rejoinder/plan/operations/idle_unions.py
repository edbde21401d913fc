"""Unions of streams that may be idle: rows of a branch that was idle can be late for the union.

A union ignores an idle branch (`formula.UnionMinimum`), so its watermark advances without the branch. A later change
below the watermark would find expired state: it goes to the side output instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.operations.side_outputs import filter_late
from rejoinder.plan.physical.fragments import Fragment, Rounds
from rejoinder.watermarks.formula import UnionMinimum

POLICIES = ("fail", "keep", "drop")
"""What becomes of late rows; of several sources the first of these counts."""


def on_time_fragments(rounds: Rounds, union: Derived, branches: Sequence[Sequence[Fragment]]) -> list[Fragment]:
    """Return the changes of a union's branches without rows that are late for the union."""
    found = [(name, rounds.retentions.frontiers.of(union.id, name)) for name in union.schema.names]
    times = tuple((name, formula) for name, formula in found if isinstance(formula, UnionMinimum))
    if not times:
        return [fragment for fragments in branches for fragment in fragments]
    views, sources = rounds.program.readers(union.id), rounds.program.sources
    labels = tuple((name, rounds.labels.column(union.id, name)) for name in union.schema.names)
    result = []
    for names, fragments in zip(times[0][1].sources, branches, strict=True):
        policy = min((sources[name].options.get("late", "keep") for name in names), key=POLICIES.index)
        for fragment in fragments:
            whose = ", ".join(names)
            result.append(filter_late(rounds, fragment, whose, times, views, policy, labels, keeps_nulls=True))
    return result
