"""A smaller world that fails alike: fewer kinds of faults, fewer ticks, fewer pauses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.knobs import Knobs, knobs_of
from tests.simulation.ledger import Violation
from tests.simulation.world import World


def kind_of(seed: int, known: Knobs) -> str | None:
    """How a world fails; None if it does not."""
    try:
        World(seed, known).run()
    except Violation as violation:
        return violation.kind
    return None


def shrunk(seed: int) -> Knobs:
    """The least knobs that were found with which the seed fails as it does with its own."""
    known = knobs_of(seed)
    wanted = kind_of(seed, known)
    is_smaller = wanted is not None
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(known):
            if kind_of(seed, smaller) == wanted:
                known, is_smaller = smaller, True
                break
    return known


def _smaller(known: Knobs) -> Iterator[Knobs]:
    for fault in known.faults:
        yield known.without(fault)
    if known.ticks > 5:
        yield replace(known, ticks=known.ticks * 2 // 3)
    if known.commits > 2:
        yield replace(known, commits=known.commits * 2 // 3)
    if known.switch:
        yield replace(known, switch=0.0)
    if known.small_spines:
        yield replace(known, small_spines=False)
    plain = replace(known, history=10_000, part_rows=100_000, timeline_block=256)
    if plain != known:
        yield plain
