"""Twelve worlds, the same every time; `make test-deep` runs ten thousand new ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.deep import IS_DEEP
from tests.simulation.knobs import CALL_FAULTS, WORLD_FAULTS, knobs_of
from tests.simulation.ledger import Violation
from tests.simulation.world import World

CHUNK = 4
WORLDS = range(12)
REPEATED = 8 if IS_DEEP else 1


@pytest.mark.slow
@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_nothing_that_happens_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            World(seed).run()
        except Violation as violation:
            pytest.fail(f"{violation}\nrun it again: python -m tests.simulation --seed {seed} --trace")


def test_the_same_seed_gives_the_same_trace_whatever_the_order_of_sets() -> None:
    def digests(hash_seed: str) -> list[str]:
        command = [sys.executable, "-m", "tests.simulation", "--first", "20", "--seeds", str(REPEATED), "--digests"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
        return [line for line in done.stdout.splitlines() if line[:2].isdigit() and ":" in line]

    first = digests("1")
    assert len(first) == REPEATED
    assert digests("2") == first


def test_every_kind_of_fault_is_possible_in_some_of_these_worlds() -> None:
    possible = {fault for seed in WORLDS for fault in knobs_of(seed).faults}
    assert possible == {*CALL_FAULTS, *WORLD_FAULTS}
