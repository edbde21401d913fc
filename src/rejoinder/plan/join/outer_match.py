"""Inputs with a mode: the key of its lookups, the left rows whose match status it changes, and which rows count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rejoinder.ir.canonical import canonical_text
from rejoinder.ir.expression import Expression, column, conjunction, renamed
from rejoinder.ir.identities import ColumnId
from rejoinder.plan.blocks.normal_form import Block, Input
from rejoinder.plan.join.join_graph import JoinGraph
from rejoinder.plan.physical.arrangement import Arrangement, Key


def tested_rows(block: Block, graph: JoinGraph, at: int) -> Expression | None:
    """Which rows of an input that is asked for keys count; None: all."""
    return _plain_condition(block, at, graph.filters[at])


def left_rows(block: Block, graph: JoinGraph, at: int) -> Expression | None:
    """A condition on left rows: only these can have a partner; None: all can."""
    left = left_input(graph, at)
    return _plain_condition(block, left, (*graph.filters[left], *graph.on[at].guards))


def _plain_condition(block: Block, at: int, tests: Sequence[Expression]) -> Expression | None:
    plain = dict(block.inputs[at].columns)
    return conjunction([renamed(test, {i: plain[i] for i in test.columns}) for test in tests])


def arranged(each: Input, key: Key) -> Arrangement:
    """The arrangement of an input's relation by a key over the input's identifiers."""
    plain = dict(each.columns)
    parts = tuple(renamed(part, {i: plain[i] for i in part.columns}) for part in key.parts)
    return Arrangement(each.relation, Key(parts, key.null_safe), each.schema)


def key_columns(graph: JoinGraph, at: int) -> tuple[Expression, ...]:
    """The columns that carry the key of an input with a mode when its changes start a path: padding has no others."""
    return tuple(
        column(str(ColumnId(at, f"__key{number}")), link.sides[1].type)
        for number, link in enumerate(graph.on[at].links)
    )


def left_input(graph: JoinGraph, at: int) -> int:
    """The input with the left rows: changes of an input with conditions on pairs change their match status."""
    (found,) = graph.on[at].needs
    return found


def left_arrangement(block: Block, graph: JoinGraph, at: int) -> tuple[Arrangement, Key]:
    """The arrangement of the left rows, and their key over the block's columns."""
    _, order = own_arrangement(block, graph, at)
    links = [graph.on[at].links[number] for number in order]
    safe = frozenset(place for place, link in enumerate(links) if link.null_safe)
    key = Key(tuple(link.sides[0] for link in links), safe)
    return arranged(block.inputs[left_input(graph, at)], key), key


def own_arrangement(block: Block, graph: JoinGraph, at: int) -> tuple[Arrangement, tuple[int, ...]]:
    """The arrangement by which an input with a mode is looked up, and which link each part of its key is."""
    links = graph.on[at].links
    side = 0 if graph.on[at].pairs else 1  # left rows lie in the buckets of their own arrangement
    order = tuple(sorted(range(len(links)), key=lambda number: canonical_text(links[number].sides[side].node)))
    safe = frozenset(place for place, number in enumerate(order) if links[number].null_safe)
    arrangement = arranged(block.inputs[at], Key(tuple(links[number].sides[1] for number in order), safe))
    versions = block.inputs[at].versions
    if graph.on[at].window is not None and versions is not None:
        arrangement = replace(arrangement, order=versions.time)
    return arrangement, order
