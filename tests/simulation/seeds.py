"""Run one seed and say what it came to. Apart from the command line, so that other processes can import it."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.knobs import Knobs
from tests.simulation.ledger import Violation
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
        print("\n".join([str(world.knobs), str(world.flow), *world.lines]))  # noqa: T201
    return tally


def run_pair(pair: tuple[int, Knobs]) -> Tally:
    return run_seed(*pair)
