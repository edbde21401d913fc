"""Take fixes out, one at a time, and show that the simulation finds each: `python -m tests.simulation.mutants`.

A mutant puts the defect back that a fix removed. Without a mutant the same seeds pass, so whatever they find with it is
its doing. `--only name` runs one mutant, `--seeds` limits the search.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from rejoinder.engine import content, deletion, sink_progress, timeline
from rejoinder.engine.engine import Engine
from rejoinder.engine.processing_time import ProcessingTime, Reading
from rejoinder.engine.publishing import Publisher
from rejoinder.engine.sinks import outbox
from rejoinder.errors import RejoinderError
from rejoinder.plan.catalog import Sink
from rejoinder.plan.notes import readable
from rejoinder.store import commit, disk, newest, run
from rejoinder.store.checked import CheckedRef
from rejoinder.store.manifest import Manifest
from rejoinder.store.objects import ObjectStore
from tests.simulation import invariants
from tests.simulation.knobs import Knobs
from tests.simulation.ledger import Violation
from tests.simulation.world import World

SEEDS = 400
Patch = tuple[Any, str, Any]
SLEEPERS = Knobs(
    {"rival": 0.2, "sleep": 0.1, "kill": 0.05}, switch=0.2, ticks=100, commits=18, keep_versions=2, part_rows=1
)
LIGHTS_OUT = Knobs({"power": 0.2, "rival": 0.1}, switch=0.1, ticks=60, commits=10, on_disk=True, keep_versions=3)
NOTES = Knobs({"rot": 0.2}, ticks=20, commits=10, keep_versions=2)
ROTTEN = Knobs({"rot": 0.3, "kill": 0.1}, ticks=30, commits=12, keep_versions=3, timeline_block=2)


@dataclass(frozen=True)
class Mutant:
    """A defect: what it is, and what is put in the place of what."""

    name: str
    defect: str
    patches: tuple[Patch, ...]
    focus: Knobs | None = None  # a world in which it matters; else that of each seed

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the defect back."""
        with ExitStack() as stack:
            for place, name, value in self.patches:
                stack.enter_context(mock.patch.object(place, name, value))
            yield


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, and find nothing."""


def _forgetful_publish(self: Publisher, made: Manifest, accept: Any) -> None:
    """Commit, and forget the manifest whatever comes of it."""
    commit.commit(self.store, made)
    accept()


def _always_kept(self: Publisher, epoch: int) -> bool:
    return False


def _plain_note(store: ObjectStore, made: Manifest, progress: sink_progress.Progress) -> None:
    """Write progress to one object that belongs to no manifest, without a checksum."""
    store.put("sinks/progress", json.dumps(sink_progress.to_json(progress)).encode())


def _plain_recorded(store: ObjectStore, made: Manifest) -> dict[str, sink_progress.Delivered]:
    data = store.find("sinks/progress")
    return {} if data is None else sink_progress.from_json(json.loads(data))


def _trusting_open(self: outbox.Outbox, sink: Sink, identity: str) -> None:
    """Believe whichever is further, the note or the target."""
    target = self._make(sink, identity, readable(self.engine.catalog, sink.view).schema)
    target.check()
    recorded = self.engine.delivered.get(identity, sink_progress.Delivered(self.engine.sinks[sink.name][1] - 1))
    known = target.delivered()
    if known is not None and known > recorded.epoch:
        recorded = sink_progress.Delivered(known, known)
    self.engine.delivered[identity] = recorded
    self._targets[identity] = target


def _unchecked(store: ObjectStore, ref: CheckedRef, what: str) -> bytes:
    return store.get(ref.name)


def _unverified(store: ObjectStore, ref: run.RunRef) -> Any:
    """Open a run without a look at its checksum."""
    import pyarrow as pa

    return pa.ipc.open_file(store.map(ref.name, ref.size)).read_all()


def _believed(self: ProcessingTime, latest: int, at: int | None = None) -> Reading:
    wall = self.clock() if at is None else at
    return Reading(max(wall, latest), wall)


def _unfenced_claim(self: Engine) -> bool:
    return False


MUTANTS = (
    # Lost answers of a PUT (point 6)
    Mutant("unconfirmed", "a name that was free because it was deleted counts", ((commit, "_confirm", _nothing),)),
    Mutant(
        "forgetful",
        "a commit whose answer was lost is forgotten: the driver meets it as that of another one",
        ((Publisher, "publish", _forgetful_publish), (Publisher, "settle", _nothing)),
    ),
    Mutant(
        "kept rows", "rows of a commit that is not settled are kept as well", ((Publisher, "is_open", _always_kept),)
    ),
    Mutant("new flow", "an empty listing without a hint is a new flow", ((newest, "sign_of_use", _nothing),)),
    Mutant(
        "damage alarm",
        "an overtaken driver calls the state damaged",
        ((deletion, "_refuse_overtaken", _nothing),),
        SLEEPERS,
    ),
    # One commit (point 5)
    Mutant(
        "loose progress",
        "progress of sinks is one object without a checksum beside the manifest",
        (
            (outbox, "write_note", _plain_note),
            (outbox.Outbox, "_open", _trusting_open),
            (content, "recorded", _plain_recorded),
            (content, "note_name", lambda _: "sinks/progress"),
        ),
        NOTES,
    ),
    Mutant("loose timeline", "timeline blocks are read unchecked", ((timeline, "read_checked", _unchecked),), ROTTEN),
    Mutant("loose runs", "runs are read unchecked", ((run, "_verified", _unverified),), ROTTEN),
    # Clock, disk, garbage (points 8 and 9, and what held before)
    Mutant("frozen clock", "an epoch believes any clock", ((ProcessingTime, "read", _believed),)),
    Mutant("unsynced files", "content is not flushed", ((disk.Disk, "_flush", _nothing),), LIGHTS_OUT),
    Mutant("unsynced names", "folders are not flushed", ((disk.Disk, "_flush_folder", _nothing),), LIGHTS_OUT),
    Mutant("blind vacuum", "vacuum finds nothing", ((invariants, "find_garbage", lambda *_: []),)),
)

# Not found in 150 seeds: whatever a replaced driver delivers late is what its successor delivers. Only by `--only`.
NOT_FOUND = (
    Mutant(
        "unfenced delivery",
        "a driver delivers without a look whether it was replaced",
        ((Engine, "claim", _unfenced_claim), (Engine, "check_fence", _nothing)),
        SLEEPERS,
    ),
)


def found_by(mutant: Mutant, seeds: int) -> tuple[int, str] | None:
    """The first seed that finds a mutant, and how; None if none does."""
    with mutant.applied():
        for seed in range(seeds):
            try:
                World(seed, mutant.focus).run()
            except Violation as violation:
                return seed, str(violation).splitlines()[0]
            except RejoinderError as error:
                return seed, f"the simulation ends with {error.fact}"
    return None


def main() -> int:
    """Search for all mutants; 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--only", help="the name of a mutant")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to try")
    given = parser.parse_args()
    missed = []
    for mutant in (*MUTANTS, *NOT_FOUND):
        if given.only == mutant.name or (given.only is None and mutant in MUTANTS):
            found = found_by(mutant, given.seeds)
            if found is None:
                missed.append(mutant.name)
            print(f"{mutant.name}: " + ("NOT FOUND" if found is None else f"seed {found[0]}, {found[1]}"), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
