"""Take fixes out, one at a time, and show that the simulation finds each: `python -m tests.simulation.mutants`.

Without a mutant the same seeds pass, so whatever they find with it is its doing. `--only name` runs one mutant,
`--seeds` limits the search, `--check` runs the same worlds without mutants.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from contextlib import ExitStack
from unittest import mock

from rejoinder.errors import RejoinderError
from tests.simulation.defects import DEFECTS, Defect
from tests.simulation.flows import SinkSpec, draw
from tests.simulation.knobs import Knobs
from tests.simulation.ledger import Violation
from tests.simulation.world import World

SEEDS = 400


def found_by(mutant: Defect, seeds: int) -> tuple[int, str] | None:
    """The first seed that finds a mutant, and how; None if none does."""
    with ExitStack() as stack:
        for place, name, value in mutant.patches:
            stack.enter_context(mock.patch.object(place, name, value))
        return _first(mutant.focus, mutant.sink, seeds)


def _first(focus: Knobs | None, sink: str, seeds: int) -> tuple[int, str] | None:
    for seed in range(seeds):
        flow = draw(random.Random(f"flow {seed}"))
        if sink:
            flow.sinks = (SinkSpec("sink0", flow.views[0].name, sink),)
        try:
            World(seed, focus, flow).run()
        except Violation as violation:
            return seed, str(violation).splitlines()[0]
        except RejoinderError as error:
            return seed, f"the simulation ends with {error.fact}"
    return None


def main() -> int:
    """Search for all mutants; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--only", help="the name of a mutant, or several by commas")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to try")
    parser.add_argument("--check", action="store_true", help="take nothing out: nothing may be found")
    given = parser.parse_args()
    wanted = None if given.only is None else given.only.split(",")
    chosen = [each for each in DEFECTS if wanted is None or each.name in wanted]
    if given.check:
        worlds = {(each.focus, each.sink): each.name for each in chosen}
        found = {name: _first(focus, sink, given.seeds) for (focus, sink), name in worlds.items()}
        print("\n".join(f"the world of {name}: {each or 'nothing'}" for name, each in found.items()))
        return 1 if any(found.values()) else 0
    missed = 0
    for mutant in chosen:
        started = time.process_time()
        seed = found_by(mutant, given.seeds)
        missed += seed is None
        text = "NOT FOUND" if seed is None else f"seed {seed[0]}, {seed[1]}"
        print(f"{mutant.name}: {text} ({time.process_time() - started:.0f} s CPU)", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
