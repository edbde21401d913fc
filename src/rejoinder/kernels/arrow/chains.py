"""Follow a chain of live order values, each at most a gap after the one before it, over several runs.

Rows are read in blocks that double, so a chain of n rows costs O(n) and O(log n + runs) iterations, and at most about
as many rows behind its end.
"""

from __future__ import annotations

import numpy as np

from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.arrow.nearest import Search, block_edge, live_values
from rejoinder.kernels.arrow.ordered import Bound, Spans, between, extent

FIRST_BLOCK = 16


def chain_ends(found: Search, first: Int64, stop: Int64, gap: int, known: Mask) -> Int64:
    """Return the last live value of the chain that starts at the live value `first`, below `stop`, per needle.

    Needles that are not `known` are not followed; their result is `first`.
    """
    reached: Int64 = first.copy()
    low, high = Bound(first, strict=True, known=known), Bound(stop, strict=True)
    rest = [between(run, met, low, high) for run, met in zip(found.runs, found.met, strict=True)]
    width = FIRST_BLOCK
    while any(len(part.who) for part in rest):
        edge = block_edge(found, rest, width, later=True)
        blocks = []
        for number, (run, part) in enumerate(zip(found.runs, rest, strict=True)):
            middle = extent(run, part, edge[part.who], later=True)
            block = Spans(part.who, part.low, middle)
            blocks.append(block.select(block.low < block.high))
            rest[number] = Spans(part.who, middle, part.high)
        needles, values = live_values(found, blocks)
        _extend(reached, needles, values, gap)
        # All values up to the edge have been seen, so a chain that ends more than a gap before it has ended.
        is_open = edge - reached <= gap
        rest = [part.select((part.low < part.high) & is_open[part.who]) for part in rest]
        width *= 2
    return reached


def _extend(reached: Int64, needles: Int64, values: Int64, gap: int) -> None:
    """Add ascending values of each needle to its chain, up to the first gap."""
    if not len(needles):
        return
    starts = np.concatenate([[True], needles[1:] != needles[:-1]])
    before = np.concatenate([[0], values[:-1]])
    before[starts] = reached[needles[starts]]
    gaps = np.cumsum(values - before > gap)
    group = np.cumsum(starts) - 1
    gaps_before = gaps[starts] - (values - before > gap)[starts]
    linked = gaps == gaps_before[group]
    np.maximum.at(reached, needles[linked], values[linked])
