"""A driver of the world: the real `testing.Driver` with its code on a coroutine, reached by the faults of the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rejoinder.engine.engine import Engine
from rejoinder.store import memory
from rejoinder.testing import Driver
from tests.simulation.coroutines import Coroutine, Killed
from tests.simulation.flows import SOURCES
from tests.simulation.ledger import Arrived
from tests.simulation.store import Link

if TYPE_CHECKING:
    from tests.simulation.world import World

# Where a lost or late answer hurts most. A fault that strikes there one time in a hundred would hardly ever be seen.
HOT = ("manifests/", "sinks/", "flow.json")
HOTTER = 6


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
        self.is_blinded = False
        self.attempt: Arrived = []

    # -- what it does ---------------------------------------------------------------------------------------------

    def start(self, action: str) -> None:
        """Begin an action: `open`, `step`, `rest` (a step without rows), `read` or `restart`."""
        self.action = action
        self.is_blinded = False
        actions: dict[str, Callable[[], None]] = {
            "open": self._open,
            "step": self._step,
            "read": self._read,
            "restart": self._restart,
            "rest": self._rest,
        }
        self.coroutine = Coroutine(actions[action])

    def _open(self) -> None:
        world = self.world
        place = f"simulation/{self.name}"
        memory._stores[place] = Link(world.shelf, self)
        self.driver = Driver(
            store=f"memory://{place}",
            parallelism=self.parallelism,
            history=world.knobs.history,
        )
        self._define()

    def _define(self) -> None:
        assert self.driver is not None
        flow, catalog = self.world.flow, self.driver.catalog
        for source in flow.sources:
            if source not in {known.name for known in catalog.sources}:
                self.driver.sql(SOURCES[source])
        for view in flow.views:
            if view.name not in {known.name for known in catalog.views}:
                self.driver.sql(view.ddl)
        for sink in flow.sinks:
            if sink.format == "function":
                self.driver.foreach_epoch(sink.view, self.world.receivers[sink.name], name=sink.name)
            else:
                self.driver.sink(sink.view, sink.format, name=sink.name, path=f"sim://{sink.name}")

    def _step(self) -> None:
        assert self.driver is not None
        for source, row, sign in self.world.flow.rows(self.world.dice, many=self.world.is_quiet):
            (self.driver.insert if sign > 0 else self.driver.delete)(source, dict(row))
        self.attempt = self.pending()
        self.driver.step()

    def _rest(self) -> None:
        assert self.driver is not None
        self.driver.step()

    def _read(self) -> None:
        assert self.driver is not None
        for view in self.world.flow.views:
            self.world.compare_reading(self.driver, view)

    def _restart(self) -> None:
        assert self.driver is not None
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
        if not world.is_quiet and world.dice.random() < world.knobs.switch:
            assert self.coroutine is not None
            if world.dice.random() < world.knobs.chance("sleep"):
                self.wakes = world.tick + world.dice.choice([3, 8, 20, 40])
                world.count("sleep", f"{self.name} until tick {self.wakes}")
            self.coroutine.pause()

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""
        world = self.world
        chance = 0.0 if world.is_quiet else world.knobs.chance(fault)
        if (name.startswith(HOT) and what != "get") or what == "list":
            chance *= HOTTER
        if not chance or world.dice.random() >= chance:
            return False
        self.is_blinded |= fault == "stale"
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
