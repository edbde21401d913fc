"""Run seeds: `python -m tests.simulation --seeds 200`, or one with its trace: `--seed 17 --trace`.

`--seed 17 --shrink` looks for fewer faults and ticks that still fail. `--processes 2` shares the seeds out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import sys
from collections import Counter
from collections.abc import Iterator

from tests.simulation.knobs import Knobs, knobs_of
from tests.simulation.seeds import Tally, run_pair, run_seed
from tests.simulation.shrink import shrunk


def main() -> int:
    """Run what the command line asks for; 1 if a seed fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--fresh", action="store_true", help="draw the first seed")
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--processes", type=int, default=1, help="how many at a time")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument("--shrink", action="store_true", help="look for a smaller world that fails alike")
    parser.add_argument("--digests", action="store_true", help="print what each seed's trace comes to")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    parser.add_argument("--without", default="", help="kinds of faults to leave out, by commas")
    given = parser.parse_args()
    first = secrets.randbelow(10**9) if given.fresh else given.first
    seeds = [given.seed] if given.seed is not None else list(range(first, first + given.seeds))
    print(f"seeds {seeds[0]} to {seeds[-1]}")
    total = Tally()
    for tally in _tallies(given, seeds):
        total.add(tally)
        for seed, _, text in tally.failed:
            print(f"seed {seed}: {text}\nrun it again: python -m tests.simulation --seed {seed} --trace", flush=True)
            if given.shrink:
                print(shrunk(seed))
        if tally.failed and not given.keep_going:
            break
    if given.digests:
        print("\n".join(sorted(total.digests)))
    print(
        f"{total.seeds} seeds, {total.epochs} epochs, {total.ticks} checks of all invariants, "
        f"{total.cpu:.0f} s CPU ({total.cpu / total.seeds:.2f} s per seed)"
    )
    print("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(total.faults.items())))
    print(
        "failed: " + (", ".join(f"{n} {kind}" for kind, n in Counter(k for _, k, _ in total.failed).items()) or "none")
    )
    return 1 if total.failed else 0


def _tallies(given: argparse.Namespace, seeds: list[int]) -> Iterator[Tally]:
    without = [fault for fault in given.without.split(",") if fault]
    work = [(seed, _knobs(seed, without)) for seed in seeds]
    if given.processes == 1:
        for seed, known in work:
            yield run_seed(seed, known, keep_trace=given.trace)
        return
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        yield from pool.imap_unordered(run_pair, work, chunksize=8)


def _knobs(seed: int, without: list[str]) -> Knobs:
    known = knobs_of(seed)
    for fault in without:
        known = known.without(fault)
    return known


if __name__ == "__main__":
    sys.exit(main())
