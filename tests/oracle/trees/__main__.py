"""Plays random trees: `python -m tests.oracle.trees --first 1 --flows 100`; `--seed 17` plays one, and shrinks it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.oracle.trees.tree_flows import TREES, flow
from tests.oracle.trees.tree_play import Outcome, played
from tests.oracle.trees.tree_shrinking import shrunk


def main() -> int:
    """Play what the command line asks for; 1 if a flow fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.trees", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this one, and shrink it if it fails")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--flows", type=int, default=20, help=f"how many flows, each of {TREES} trees")
    parser.add_argument("--seconds", type=float, default=120, help="how long to shrink")
    given = parser.parse_args()
    if given.seed is not None:
        return _one(given.seed, given.seconds)
    return _many(range(given.first, given.first + given.flows))


def _one(seed: int, seconds: float) -> int:
    tree_flow = flow(seed)
    outcome = played(tree_flow)
    if not outcome.failure:
        print(f"seed {seed} passes: {outcome.views} trees; refused: {dict(outcome.refused)}")
        return 0
    print(f"{outcome.failure}\n{outcome.report}\nshrinking for at most {seconds:.0f} s", flush=True)
    smallest = shrunk(tree_flow, seconds)
    print(f"{smallest.scenario}\n{played(smallest).report}")
    return 1


def _many(seeds: range) -> int:
    total, failures = Outcome(), Counter[str]()
    for seed in seeds:
        outcome = played(flow(seed))
        total.views += outcome.views
        total.rows += outcome.rows
        total.cpu += outcome.cpu
        total.refused += outcome.refused
        total.not_in_duckdb += outcome.not_in_duckdb
        if outcome.failure:
            failures[outcome.failure] += 1
            print(f"seed {seed}: {outcome.failure}: {outcome.report[-300:]!r}", flush=True)
    print(f"{total.views} trees, {total.rows} rows, {total.cpu:.1f} s CPU")
    for title, counts in (("refused", total.refused), ("not in DuckDB", total.not_in_duckdb), ("failed", failures)):
        print(f"{title}: {sum(counts.values())}")
        for reason, count in counts.most_common():
            print(f"  {count:4} {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
