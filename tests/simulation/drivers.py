"""A driver of the world: the real `testing.Driver` with its code on a coroutine, reached by the faults of the world."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rejoinder.engine.engine import Engine
from rejoinder.errors import Incomplete, UnknownName
from rejoinder.store.commits.manifest import FOLDER
from rejoinder.store.objects import memory_objects
from rejoinder.testing import Driver
from tests.simulation.coroutines import Coroutine, Killed
from tests.simulation.ledger import Arrived, Violation
from tests.simulation.store import Link

if TYPE_CHECKING:
    from tests.simulation.world import World

# Where a lost or late answer hurts most. A fault that strikes there one time in a hundred would hardly ever be seen.
HOT = ("manifests/", "sinks/", "flow.json")
HOTTER = 6
LONG_CHAIN = 8  # versions: a listing that is not older than these is made up for by a probe


class SimulatedDriver:
    """One process. It does one action at a time; `wakes` is the tick before which it is not resumed."""

    def __init__(self, world: World, name: str, parallelism: int) -> None:
        self.world = world
        self.name = name
        self.parallelism = parallelism
        self.driver: Driver | None = None
        self.coroutine: Coroutine | None = None
        self.action = ""
        self.wakes = 0
        self.is_dead = False
        self.is_crashed = False
        self.is_defined = False
        self.is_blinded = False
        self.is_refused = False
        self.has_looked = False
        self.attempt: Arrived = []

    # -- what it does ---------------------------------------------------------------------------------------------

    def start(self, action: str) -> None:
        """Begin an action: `open`, `step`, `rest` (a step without rows), `read`, `define` or `restart`.

        `finish` goes on with the definitions of an `open` or `restart` that failed half way.
        """
        self.action = action
        self.is_blinded = self.is_refused = self.has_looked = False
        actions: dict[str, Callable[[], None]] = {
            "open": self._open,
            "finish": self._finish,
            "step": self._step,
            "read": self._read,
            "restart": self._restart,
            "rest": self._rest,
            "define": self._toggle,
        }
        self.coroutine = Coroutine(actions[action])

    def _open(self) -> None:
        world = self.world
        place = f"simulation/{self.name}"
        memory_objects._stores[place] = Link(world.shelf, self)
        self.driver = Driver(
            store=f"memory://{place}",
            parallelism=self.parallelism,
            history=world.knobs.history,
        )
        self._define()

    def _finish(self) -> None:
        assert self.driver is not None
        self.driver._engine.publisher.settle()  # as any operation does first
        self._define()

    def _define(self) -> None:
        assert self.driver is not None
        self.is_defined = False
        flow, catalog = self.world.flow, self.driver.catalog
        for source in flow.sources:
            if source not in {known.name for known in catalog.sources}:
                self.driver.sql(flow.source_ddl(source))
        for view in flow.views:
            if view.name not in {known.name for known in catalog.views}:
                self.driver.sql(view.ddl)
        for given_up in [known.name for known in catalog.sinks if known.name not in {sink.name for sink in flow.sinks}]:
            self.driver.drop(given_up)
        for sink in flow.sinks:
            if sink.format == "function":
                self.driver.foreach_epoch(sink.view, self.world.receivers[sink.name], name=sink.name)
            else:
                self.driver.sink(sink.view, sink.format, name=sink.name, path=f"sim://{sink.name}")
        self.is_defined = True

    def _toggle(self) -> None:
        """Create the view that comes and goes, or drop it. What cannot be filled must be refused for a reason."""
        assert self.driver is not None
        view = self.world.flow.passing
        if view is None:
            return
        if view.name in {known.name for known in self.driver.catalog.views}:
            with suppress(UnknownName):  # the answer of an earlier drop was lost
                self.driver.drop(view.name)
            return
        try:
            self.driver.sql(view.ddl)
        except Incomplete as refused:
            self.world.count("raised Incomplete", view.name)
            self.world.invariants.check_refusal(self, view, refused)

    def _step(self) -> None:
        assert self.driver is not None
        for source, row, sign in self.world.flow.rows(self.world.dice, in_files=False, many=self.world.is_quiet):
            (self.driver.insert if sign > 0 else self.driver.delete)(source, dict(row))
        self.attempt = self.pending()
        self.driver.step()

    def _rest(self) -> None:
        assert self.driver is not None
        self.driver.step()

    def _read(self) -> None:
        assert self.driver is not None
        known = {view.name for view in self.driver.catalog.views}
        for view in self.world.flow.all_views:
            if view.name in known:
                self.world.invariants.compare_reading(self.driver, view)

    def _restart(self) -> None:
        assert self.driver is not None
        self.parallelism = self.world.dice.choice([1, 2, 3])
        self.driver.restart(parallelism=self.parallelism)
        self._define()

    # -- what is known of it --------------------------------------------------------------------------------------

    @property
    def engine(self) -> Engine | None:
        """The real engine, if the driver was opened."""
        return None if self.driver is None else self.driver._engine

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        return self.coroutine is None

    def pending(self) -> Arrived:
        """The rows that the next step takes."""
        return [] if self.driver is None else [(source.name, row, sign) for source, row, sign in self.driver._pending]

    def has_delivered(self, sink: str) -> bool:
        """Whether the driver knows of a delivery to a sink, its own or one that the state records."""
        version = None if self.engine is None else self.engine.version
        delivered = None if version is None else version.delivered.get(version.sinks[sink].identity)
        return delivered is not None and delivered.changed is not None

    def kill(self) -> None:
        """End the process where it stands."""
        self.is_dead = True
        if self.coroutine is not None:
            self.world.run_as(self, self.coroutine.kill)
            self.coroutine = None

    # -- what the store, the sinks and the executor ask -----------------------------------------------------------

    def gate(self, what: str, name: str) -> None:
        """Let others run, or die."""
        if self.is_dead:
            raise Killed
        world = self.world
        world.trace(f"{self.name} {what} {name}")
        self._note_look(what, name)
        if what == "after create" and name.startswith(f"{FOLDER}/") and not world.is_quiet and world.happens("crash"):
            assert self.coroutine is not None
            self.is_crashed = True  # the world ends it here
            self.coroutine.pause()
        if not world.is_quiet and not self._is_awake and world.dice.random() < world.knobs.switch:
            assert self.coroutine is not None
            if world.dice.random() < world.knobs.chance("sleep"):
                self.wakes = world.tick + world.dice.choice([3, 8, 20, 40])
                world.count("sleep", f"{self.name} until tick {self.wakes}")
            self.coroutine.pause()

    def _note_look(self, what: str, name: str) -> None:
        """Note that the driver asks whether somebody has committed after it, until it delivers or commits itself."""
        if what in ("create", "put", "after call"):
            self.has_looked = False
        elif what == "list" and name == FOLDER:
            self.has_looked = True

    @property
    def _is_awake(self) -> bool:
        """Whether it may not sleep now: in prompt worlds, between its look at the fence and its delivery."""
        return self.world.knobs.is_prompt and self.has_looked

    def delivers(self, epoch: int) -> None:
        """Note a delivery to a target without fence. In prompt worlds, a driver that was replaced makes none."""
        world, manifest = self.world, None if self.engine is None else self.engine.version.manifest
        is_excused = self.is_blinded and world.knobs.keep_versions < LONG_CHAIN
        if manifest is None or not world.knobs.is_prompt or is_excused:
            return
        newest = max((c.manifest.version for c in world.ledger.commits.values() if c.author != self.name), default=-1)
        if newest > manifest.version:
            detail = f"{self.name} delivers epoch {epoch}; its last commit is version {manifest.version} of {newest}"
            world.found = Violation("unfenced delivery", detail)

    def took(self, paths: list[str]) -> None:
        """Note that an epoch reads files: their rows are part of it."""
        self.attempt = [
            *self.attempt,
            *(row for path in paths for row in self.world.inputs.rows[path.removeprefix("file:")]),
        ]

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""
        world = self.world
        chance = 0.0 if world.is_quiet else world.knobs.chance(fault)
        if (name.startswith(HOT) and what != "get") or what == "list":
            chance *= HOTTER
        if not chance or world.dice.random() >= chance:
            return False
        self.is_blinded |= fault == "stale"
        self.is_refused |= fault == "refuse"
        world.count(fault, f"{self.name} {what} {name}")
        return True

    def later(self, what: str, name: str, effect: Callable[[], object]) -> None:
        """Let a call take effect later."""
        self.world.later(f"{self.name} {what} {name}", effect)

    def stored(self, name: str, data: bytes) -> Callable[[], None]:
        """Note what is stored when it is."""
        ledger = self.world.ledger
        checksum = ledger.requested(name, data, self.name, list(self.attempt))
        return lambda: ledger.stored(checksum)

    def pick(self, count: int) -> int:
        """A number below `count`."""
        return self.world.dice.randrange(count)

    def is_blind(self) -> bool:
        """Whether listings are empty for now."""
        self.is_blinded |= self.world.is_blind()
        return self.world.is_blind()
