"""What a seed decides before anything runs: which faults are possible and how likely, how much is kept, how large.

Swarm testing: each kind of fault is off in some worlds and frequent in others. A world with all faults at once fails
early and for the same reasons every time; rare combinations need worlds in which everything else is quiet.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# Faults of a store call, of a task, of a sink's file system; probability per call.
CALL_FAULTS = {
    "fail": "the call fails and has no effect",
    "lost": "the call takes effect and its answer is lost",
    "late": "the call fails, and takes effect later",
    "retried": "a first try takes effect, its answer is lost, and the client's own retry is answered",
    "duplicate": "the call is repeated by the network some time later",
    "stale": "a listing, or an object that is overwritten, is seen as it was",
}
# Faults that the world decides on between two steps.
WORLD_FAULTS = {
    "kill": "a driver is killed",
    "crash": "a driver dies right after its commit, before it has delivered anything",
    "sleep": "a driver sleeps through several steps of the others",
    "rival": "a second or third driver is opened on the state",
    "jump": "the clock of a driver jumps",
    "power": "the machine loses power: what was not synced is lost or torn",
    "rot": "bytes of the state are damaged, lost, or replaced by older ones",
    "hint": "the hint of the newest manifest is lost and listings are empty for a while",
    "twice": "a task runs twice, and the result of either attempt counts",
    "refuse": "a sink fails half way",
    "unmount": "the folder of a sink is not there while a driver runs an epoch",
    "define": "a view is dropped, or created again",
    "clean": "an input file that was read is removed",
    "backup": "a backup is made while the flow runs",
    "restore": "a backup is put in the place of the state, with or without the sinks",
}


@dataclass(frozen=True)
class Knobs:
    """The parameters of one world. `faults` gives the probability of each kind; `switch` that of a pause per call."""

    faults: Mapping[str, float] = field(default_factory=dict, hash=False)
    switch: float = 0.0
    ticks: int = 60
    commits: int = 14
    on_disk: bool = False
    keep_versions: int = 4
    history: int = 10_000
    part_rows: int = 100_000
    timeline_block: int = 256
    small_spines: bool = False
    recent_files: int = 64
    is_prompt: bool = False
    """Whether a driver that has looked at the fence delivers before it sleeps."""

    def chance(self, fault: str) -> float:
        """How likely a fault is."""
        return self.faults.get(fault, 0.0)

    def without(self, fault: str) -> Knobs:
        """The same world without a kind of fault."""
        return replace(self, faults={name: rate for name, rate in self.faults.items() if name != fault})


def draw(dice: random.Random) -> Knobs:
    """Draw the parameters of a world."""
    on_disk = dice.random() < 0.25
    faults: dict[str, float] = {}
    for name in CALL_FAULTS:
        if dice.random() < 0.45 and not (on_disk and name not in ("fail", "lost")):
            faults[name] = dice.choice([0.003, 0.01, 0.03])
    for name in WORLD_FAULTS:
        if dice.random() < 0.5 and (name != "power" or on_disk):
            faults[name] = dice.choice([0.03, 0.08, 0.2])
    return Knobs(
        faults,
        switch=dice.choice([0.0, 0.02, 0.1, 0.3]),
        ticks=dice.choice([30, 60, 100]),
        commits=dice.choice([8, 12, 18]),
        on_disk=on_disk,
        keep_versions=dice.choice([2, 3, 4, 8]),
        history=dice.choice([10_000, 10_000, 3, 1]),
        part_rows=dice.choice([100_000, 4, 1]),
        timeline_block=dice.choice([256, 4, 2]),
        small_spines=dice.random() < 0.3,
        recent_files=dice.choice([64, 2]),
        is_prompt=dice.random() < 0.5,
    )


def knobs_of(seed: int) -> Knobs:
    """The parameters of the world of a seed."""
    return draw(random.Random(f"knobs {seed}"))
