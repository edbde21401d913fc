"""Run seeds: `python -m tests.simulation --seeds 200`, or one with its trace: `--seed 17 --trace`.

`--seed 17 --shrink` looks for fewer faults and ticks that still fail. `--processes 2` shares the seeds out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.simulation.knobs import Knobs, knobs_of
from tests.simulation.ledger import Violation
from tests.simulation.shrink import shrunk
from tests.simulation.world import World


@dataclass
class Tally:
    """What some seeds came to."""

    seeds: int = 0
    epochs: int = 0
    ticks: int = 0
    cpu: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str, str]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take in what others came to."""
        self.seeds += other.seeds
        self.epochs += other.epochs
        self.ticks += other.ticks
        self.cpu += other.cpu
        self.faults += other.faults
        self.failed += other.failed
        self.digests += other.digests


def run_seed(seed: int, known: Knobs | None = None, *, keep_trace: bool = False) -> Tally:
    """Run one seed."""
    started = time.process_time()
    world = World(seed, known, keep_trace=keep_trace)
    tally = Tally(1)
    try:
        world.run()
    except Violation as violation:
        tally.failed.append((seed, violation.kind, str(violation)))
    except Exception:  # noqa: BLE001 - a fault of the simulation itself
        tally.failed.append((seed, "simulation", traceback.format_exc()))
    tally.epochs, tally.ticks = world.invariants.epoch + 1, world.invariants.checked
    tally.faults, tally.digests = world.counts, [f"{seed}:{world.digest}"]
    tally.cpu = time.process_time() - started
    if keep_trace:
        print("\n".join([str(world.knobs), str(world.flow), *world.lines]))
    return tally


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
        yield from pool.imap_unordered(_run_pair, work, chunksize=8)


def _run_pair(pair: tuple[int, Knobs]) -> Tally:
    return run_seed(*pair)


def _knobs(seed: int, without: list[str]) -> Knobs:
    known = knobs_of(seed)
    for fault in without:
        known = known.without(fault)
    return known


if __name__ == "__main__":
    sys.exit(main())
