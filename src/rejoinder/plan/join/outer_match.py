"""Inputs with a mode: the key of their lookups, and the left rows whose match status their changes update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rejoinder.ir.expressions.canonical import canonical_text
from rejoinder.ir.expressions.expression import Expression, column, conjunction, renamed
from rejoinder.ir.identities import column_text
from rejoinder.plan.blocks.normal_form import Block, Input
from rejoinder.plan.join.join_graph import JoinGraph
from rejoinder.plan.physical.arrangement import Arrangement, Key


def tested_rows(block: Block, graph: JoinGraph, at: int) -> Expression | None:
    """Return the condition on rows of an input whose keys are tested; None: all rows count."""
    return _plain_condition(block, at, graph.filters[at])


def left_rows(block: Block, graph: JoinGraph, at: int) -> Expression | None:
    """Return the condition on left rows that can have a match; None: all can."""
    left = left_input(graph, at)
    return _plain_condition(block, left, (*graph.filters[left], *graph.on[at].guards))


def _plain_condition(block: Block, at: int, tests: Sequence[Expression]) -> Expression | None:
    plain = dict(block.inputs[at].columns)
    return conjunction([renamed(test, {i: plain[i] for i in test.columns}) for test in tests])


def arranged(each: Input, key: Key) -> Arrangement:
    """Return the arrangement of an input's relation by a key over the column ids of the input."""
    plain = dict(each.columns)
    parts = tuple(renamed(part, {i: plain[i] for i in part.columns}) for part in key.parts)
    return Arrangement(each.relation, Key(parts, key.null_safe), each.schema)


def key_columns(graph: JoinGraph, at: int) -> tuple[Expression, ...]:
    """Return the columns with the key of an input with a mode, at the start of its path. Padding has no others."""
    return tuple(
        column(column_text(at, f"__key{number}"), link.sides[1].type) for number, link in enumerate(graph.on[at].links)
    )


def left_input(graph: JoinGraph, at: int) -> int:
    """Return the input of the left rows whose match status changes of an input with conditions on pairs update."""
    (found,) = graph.on[at].needs
    return found


def left_arrangement(block: Block, graph: JoinGraph, at: int) -> tuple[Arrangement, Key]:
    """Return the arrangement of the left rows, and their key over the block's columns."""
    _, order = own_arrangement(block, graph, at)
    links = [graph.on[at].links[number] for number in order]
    safe = frozenset(place for place, link in enumerate(links) if link.null_safe)
    key = Key(tuple(link.sides[0] for link in links), safe)
    return arranged(block.inputs[left_input(graph, at)], key), key


def own_arrangement(block: Block, graph: JoinGraph, at: int) -> tuple[Arrangement, tuple[int, ...]]:
    """Return the arrangement of an input with a mode, and the number of the link for each part of its key."""
    links = graph.on[at].links
    side = 0 if graph.on[at].pairs else 1  # MatchStatus reads left rows in the buckets of their own arrangement
    order = tuple(sorted(range(len(links)), key=lambda number: canonical_text(links[number].sides[side].node)))
    safe = frozenset(place for place, number in enumerate(order) if links[number].null_safe)
    arrangement = arranged(block.inputs[at], Key(tuple(links[number].sides[1] for number in order), safe))
    versions = block.inputs[at].versions
    if graph.on[at].window is not None and versions is not None:
        arrangement = replace(arrangement, order=versions.time)
    return arrangement, order
