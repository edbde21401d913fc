"""The world of one seed: several drivers on one state, a store, clocks, sinks, and whatever happens to them.

One tick: time passes, late calls take effect, a fault may strike, one driver runs until it pauses or is done, and all
invariants are checked. In the end faults cease, and everything has to come right by itself (`settle`).
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pyarrow.fs as pafs

from rejoinder.engine import engine as engine_module
from rejoinder.engine import planner, redefinition, timeline
from rejoinder.engine.sinks import delivery, files
from rejoinder.errors import Corrupt, Fenced, NotCommitted, SinkFailed, StateDeleted, StorageFailed
from rejoinder.kernels.entropy import drawn_from
from rejoinder.operators import arrange, stateless
from rejoinder.store import memory, spine
from rejoinder.store.objects import open_store
from rejoinder.store.run import forget_runs
from rejoinder.testing import Driver
from rejoinder.testing import driver as driver_module
from tests.simulation import caching, flows
from tests.simulation.clock import Clock
from tests.simulation.disk import Device
from tests.simulation.drivers import SimulatedDriver
from tests.simulation.executor import SimulatedExecutor, SimulatedHost
from tests.simulation.flows import Flow, ViewSpec
from tests.simulation.invariants import Invariants
from tests.simulation.knobs import Knobs, knobs_of
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.rot import damage
from tests.simulation.sinks import Folder, Receiver
from tests.simulation.store import Shelf

MOST_DRIVERS = 3
SETTLING = 3
EXPECTED = (StorageFailed, SinkFailed)
TRUTH = "simulation/truth"


class World:
    """All of it. `counts`: faults that struck, by kind; `digest` of the trace: equal for equal seeds."""

    def __init__(self, seed: int, known: Knobs | None = None, flow: Flow | None = None, *, keep_trace: bool = False):
        self.seed = seed
        self.dice = random.Random(f"world {seed}")
        self.knobs = known or knobs_of(seed)
        self.flow = flow or flows.draw(random.Random(f"flow {seed}"))
        self._names = random.Random(f"names {seed}")
        self.clock = Clock()
        self.tick = 0
        self.is_quiet = False
        self.settled_from = 0
        self.blind = 0
        self.lines: list[str] = []
        self._keep_trace = keep_trace
        self._digest = hashlib.blake2b(digest_size=8)
        self.counts: Counter[str] = Counter()
        self.current: SimulatedDriver | None = None
        self.drivers: list[SimulatedDriver] = []
        self._opened = 0
        self._later: list[tuple[int, str, Callable[[], object]]] = []
        self.device = Device() if self.knobs.on_disk else None
        self.shelf = self.device.disk if self.device else Shelf(lambda: self.clock.now / 1000)
        memory._stores[TRUTH] = self.shelf  # type: ignore[assignment]
        self.truth = open_store(f"memory://{TRUTH}")
        forget_runs(self.truth)
        self.ledger = Ledger(self.flow)
        self.folder = Folder(lambda: self.current)
        self.receivers = {sink.name: Receiver(lambda: self.current) for sink in self.flow.sinks}
        self.invariants = Invariants(self)

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Live through all ticks, then settle. Raises `Violation`."""
        with self._patched():
            try:
                while self.tick < self.knobs.ticks and self.invariants.epoch < self.knobs.commits:
                    self.tick += 1
                    self._live()
                    self.invariants.check()
                self._settle()
            finally:
                for driver in self.drivers:
                    driver.kill()
                if self.device is not None:
                    self.device.close()

    def _live(self) -> None:
        self.clock.pass_time(self.dice.choice([0, 200, 1_000, 4_000, 11_000]))
        if isinstance(self.shelf, Shelf):
            self.shelf.remember_listing()
        self._apply_late(self.tick)
        self._strike()
        able = [driver for driver in self.drivers if driver.is_idle or driver.wakes <= self.tick]
        if not able and len(self.drivers) < MOST_DRIVERS:
            able = [self._open()]
        if able:
            self._advance(self.dice.choice(able))

    def _advance(self, driver: SimulatedDriver) -> None:
        if driver.is_idle:
            driver.start(self.dice.choices(["step", "read", "restart"], [20, 2, 1])[0])
        coroutine = driver.coroutine
        assert coroutine is not None
        self.trace(f"tick {self.tick}: {driver.name} {driver.action}")
        self.run_as(driver, coroutine.resume)
        if coroutine.is_done:
            driver.coroutine = None
            self._judge(driver, coroutine.error)

    def _strike(self) -> None:
        """Let a fault of the world strike, or none."""
        if self.drivers and self._happens("kill"):
            self.kill(self.dice.choice(self.drivers))
        if self.drivers and self._happens("jump"):
            driver = self.dice.choice(self.drivers)
            self.clock.jump(driver.name, self.dice.choice([-60_000, 5_000, 600_000, 315_360_000_000, 0]))
        if self._happens("hint"):
            self.blind = self.tick + 2
            with mock.patch.object(self, "is_quiet", True):
                self.shelf.delete(["manifests/latest"])
        if self.device is not None and self._happens("power"):
            for driver in list(self.drivers):
                self.kill(driver)
            self.trace(f"lost or torn: {self.device.power_cut(self.dice)}")
            forget_runs(self.truth)
            self.invariants.forget_lost()
        if self._happens("rot"):
            damage(self)
        if len(self.drivers) < MOST_DRIVERS and self._happens("rival"):
            self._open()

    def _happens(self, fault: str) -> bool:
        if self.dice.random() >= self.knobs.chance(fault):
            return False
        self.count(fault, "")
        return True

    def open_driver(self) -> SimulatedDriver:
        """A new process that has done nothing yet."""
        self._opened += 1
        driver = SimulatedDriver(self, f"d{self._opened}", self.dice.choice([1, 1, 2, 3]))
        self.drivers.append(driver)
        return driver

    def _open(self) -> SimulatedDriver:
        driver = self.open_driver()
        driver.start("open")
        return driver

    def kill(self, driver: SimulatedDriver) -> None:
        """End a process where it stands."""
        self.trace(f"{driver.name} is killed")
        driver.kill()
        if driver in self.drivers:
            self.drivers.remove(driver)
        memory._stores.pop(f"simulation/{driver.name}", None)

    def _judge(self, driver: SimulatedDriver, error: BaseException | None) -> None:
        """Decide whether an action may end like this, and what its user does next."""
        self.trace(f"{driver.name} {driver.action}: {'done' if error is None else repr(error)}")
        attempt, driver.attempt = driver.attempt, []
        if isinstance(error, Violation):
            raise error
        self.invariants.check_outcome(driver, attempt, error)
        if error is None:
            return
        is_blinded = driver.is_blinded and isinstance(error, Corrupt | StateDeleted)  # what was listed is all it knows
        if not is_blinded and not isinstance(error, (*EXPECTED, Fenced, NotCommitted)):
            raise Violation("raw error", f"{driver.name} {driver.action}: {type(error).__name__}: {error}") from error
        self.count(f"told {type(error).__name__}", driver.name)
        if (
            driver.action in ("open", "restart")
            or isinstance(error, Fenced | Corrupt | StateDeleted)
            or self.dice.random() < 0.3
        ):
            self.kill(driver)

    # -- the end ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Without faults, everything comes right: who is alive goes on or is told why not, and nothing is left over."""
        self.is_quiet, self.blind = True, 0
        self.settled_from = self.invariants.epoch + 1
        self.trace("settling")
        self._apply_late(None)
        for driver in list(self.drivers):
            self.clock.jump(driver.name, 0)
            if not driver.is_idle:
                self._advance(driver)
            self.invariants.check()
        for driver in list(self.drivers):
            driver.start("step")
            self._advance(driver)
            self.invariants.check()
            if driver in self.drivers:
                self.kill(driver)
        last = self._open()
        self._advance(last)
        for number in range(max(2, self.knobs.keep_versions) + SETTLING):
            if last not in self.drivers:
                raise Violation("stuck", "a driver that is alone and meets no fault cannot go on")
            self.clock.pass_time(60_000)
            last.start("step" if number < SETTLING else "rest")
            self._advance(last)
            self.invariants.check()
        self.invariants.check_settled(last)

    # -- what drivers, sinks and checks use ---------------------------------------------------------------------------

    def run_as(self, driver: SimulatedDriver, action: Callable[[], None]) -> None:
        """Let a driver run."""
        before, self.current = self.current, driver
        try:
            action()
        finally:
            self.current = before

    def run_alone(self, action: str, driver: SimulatedDriver) -> BaseException | None:
        """Let a driver do something without faults and pauses; return what it raises."""
        before, self.is_quiet = self.is_quiet, True
        try:
            driver.start(action)
            assert driver.coroutine is not None
            coroutine = driver.coroutine
            self.run_as(driver, coroutine.resume)
            driver.coroutine = None
            return coroutine.error
        finally:
            self.is_quiet = before

    def later(self, what: str, effect: Callable[[], object]) -> None:
        """Let a call take effect some ticks from now."""
        self._later.append((self.tick + self.dice.choice([1, 2, 5, 15, 40]), what, effect))

    def _apply_late(self, until: int | None) -> None:
        due = [each for each in self._later if until is None or each[0] <= until]
        self._later = [each for each in self._later if each not in due]
        for _, what, effect in due:
            self.trace(f"late: {what}")
            effect()

    @property
    def has_late_calls(self) -> bool:
        """Whether some call has yet to take effect."""
        return bool(self._later)

    def is_blind(self) -> bool:
        """Whether listings are empty for now."""
        return not self.is_quiet and self.tick < self.blind

    def compare_reading(self, driver: Driver, view: ViewSpec) -> None:
        """Read a view in every way, and compare."""
        self.invariants.compare_reading(driver, view)

    def count(self, fault: str, detail: str) -> None:
        """Note that a fault struck."""
        self.counts[fault] += 1
        self.trace(f"fault {fault}: {detail}")

    def trace(self, line: str) -> None:
        """Note an event."""
        self._digest.update(f"{line}\n".encode())
        if self._keep_trace:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """A short name of everything that happened."""
        return self._digest.hexdigest()

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """Put the world in the place of what the code gets from the machine."""

        def now() -> float:
            return (self.clock.now if self.current is None else self.clock.read(self.current.name)) / 1000

        def open_path(path: str) -> tuple[Any, str]:
            return pafs.PyFileSystem(self.folder), path.removeprefix("sim://")

        wanted = self.knobs
        with ExitStack() as stack:

            def put(module: Any, name: str, value: Any) -> None:
                stack.enter_context(mock.patch.object(module, name, value))

            stack.enter_context(drawn_from(self._names.randbytes))
            put(time, "time", now)
            put(time, "time_ns", lambda: int(now() * 1000) * 1_000_000)
            put(time, "clock_gettime_ns", lambda _: self.clock.now * 1_000_000)
            put(files, "open_path", open_path)
            put(driver_module, "LocalExecutor", lambda: SimulatedExecutor(lambda: self.current))
            put(driver_module, "LocalHost", lambda: SimulatedHost(lambda: self.current))
            put(engine_module, "KEEP_VERSIONS", wanted.keep_versions)
            put(engine_module, "plan", caching.plan)
            put(redefinition, "plan", caching.plan)
            put(planner, "bind_view", caching.bind_view)
            put(timeline, "BLOCK", wanted.timeline_block)
            put(delivery, "PART_ROWS", wanted.part_rows)
            if wanted.small_spines:
                put(spine, "SMALLEST_LEVEL_ROWS", 2)
                put(arrange, "FAN", 2)
                put(stateless, "CHANGELOG_FAN", 2)
            if self.device is not None:
                stack.enter_context(self.device.recording())
            yield
