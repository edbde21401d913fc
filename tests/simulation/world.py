"""The world of one seed: several drivers on one state, a store, clocks, sinks, and whatever happens to them.

One tick: time passes, late calls take effect, a fault may strike, one driver runs until it pauses or is done, and all
invariants are checked. In the end faults cease, and everything has to come right by itself (`settle`).
"""

from __future__ import annotations

import hashlib
import random
import warnings
from collections import Counter
from collections.abc import Callable

from rejoinder.errors import (
    Corrupt,
    DefinitionConflict,
    Fenced,
    MissingInput,
    NotCommitted,
    SinkFailed,
    StateDeleted,
    StorageFailed,
)
from rejoinder.store.objects import memory_objects
from rejoinder.store.objects.local_objects import Disk
from rejoinder.store.objects.object_store import open_store
from rejoinder.store.runs.run import drop_open_runs
from tests.simulation import flows
from tests.simulation.backups import BackupProcess, Vault, discard_foreign_notes
from tests.simulation.clock import Clock
from tests.simulation.disk import Device
from tests.simulation.drivers import SimulatedDriver
from tests.simulation.flows import Flow
from tests.simulation.inputs import Inputs
from tests.simulation.invariants import Invariants
from tests.simulation.knobs import Knobs, knobs_of
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.seams import in_place
from tests.simulation.sinks import Folder, Receiver
from tests.simulation.store import Shelf
from tests.simulation.striking import MOST_DRIVERS, strike

SETTLING = 3
EXPECTED = (StorageFailed, SinkFailed, MissingInput)
TRUTH = "simulation/truth"


class World:
    """All of it. `counts`: faults that struck, by kind; `digest` of the trace: equal for equal seeds."""

    def __init__(self, seed: int, known: Knobs | None = None, flow: Flow | None = None, *, keep_trace: bool = False):
        self.seed = seed
        self.dice = random.Random(f"world {seed}")
        self.knobs = known or knobs_of(seed)
        self.flow = flow or flows.draw(random.Random(f"flow {seed}"))
        self.names = random.Random(f"names {seed}")
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
        self.found: Violation | None = None
        self.vault: Vault | None = None
        self.foreign_notes: dict[str, bytes] = {}
        self.device = self._device = Device() if self.knobs.on_disk else None
        self.shelf: Shelf | Disk = self.device.disk if self.device else Shelf(lambda: self.clock.now / 1000)
        self._open_truth()
        self.ledger = Ledger(self.flow)
        self.inputs = Inputs(sorted(self.flow.files), lambda: self.current)
        self.folder = Folder(lambda: self.current)
        self.receivers = {sink.name: Receiver(lambda: self.current) for sink in self.flow.sinks}
        self.invariants = Invariants(self)

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Live through all ticks, then settle. Raises `Violation`."""
        with in_place(self), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # notices describe the faults; answers are checked
            try:
                while self.tick < self.knobs.ticks and self.invariants.epoch < self.knobs.commits:
                    self.tick += 1
                    self._live()
                    self.invariants.check()
                self._settle()
            finally:
                for driver in self.drivers:
                    driver.kill()
                if self._device is not None:
                    self._device.close()

    def _live(self) -> None:
        self.clock.pass_time(self.dice.choice([0, 200, 1_000, 4_000, 11_000]))
        for shelf in (self.shelf, None if self.vault is None else self.vault.shelf):
            if isinstance(shelf, Shelf):
                shelf.store_listing()
        self._apply_late(self.tick)
        self.inputs.finish(self, self.tick)
        if self.dice.random() < 0.4:
            self.inputs.add(self, self.flow.rows(self.dice, in_files=True))
        strike(self)
        able = [driver for driver in self.drivers if driver.is_idle or driver.wakes <= self.tick]
        if not able and len(self.drivers) < MOST_DRIVERS:
            able = [self.open()]
        if able:
            self._advance(self.dice.choice(able))

    def _advance(self, driver: SimulatedDriver) -> None:
        if driver.is_idle:
            is_defining = self.flow.passing is not None and self.happens("define")
            action = "define" if is_defining else self.dice.choices(["step", "read", "restart"], [20, 2, 1])[0]
            driver.start(action if driver.is_defined or isinstance(driver, BackupProcess) else "finish")
        coroutine = driver.coroutine
        assert coroutine is not None
        self.trace(f"tick {self.tick}: {driver.name} {driver.action}")
        self.run_as(driver, coroutine.resume)
        if driver.is_crashed:
            self.kill(driver)
        elif coroutine.is_done:
            driver.coroutine = None
            self.check_error(driver, coroutine.error)

    def happens(self, fault: str) -> bool:
        """Whether a fault strikes now."""
        if self.dice.random() >= self.knobs.chance(fault):
            return False
        self.count(fault, "")
        return True

    def open_driver(self) -> SimulatedDriver:
        """A new process that has done nothing yet."""
        driver = SimulatedDriver(self, self.new_name("d"), self.dice.choice([1, 1, 2, 3]))
        self.drivers.append(driver)
        return driver

    def new_name(self, kind: str) -> str:
        """The name of a new process."""
        self._opened += 1
        return f"{kind}{self._opened}"

    def open(self) -> SimulatedDriver:
        """A new process that opens the state."""
        driver = self.open_driver()
        driver.start("open")
        return driver

    def kill(self, driver: SimulatedDriver) -> None:
        """End a process where it stands."""
        self.trace(f"{driver.name} is killed")
        driver.kill()
        if driver in self.drivers:
            self.drivers.remove(driver)
        memory_objects._stores.pop(f"simulation/{driver.name}", None)
        memory_objects._stores.pop(f"simulation/{driver.name}-target", None)

    def check_error(self, driver: SimulatedDriver, error: BaseException | None) -> None:
        """Decide whether an action may end like this, and what its user does next."""
        self.trace(f"{driver.name} {driver.action}: {'done' if error is None else repr(error)}")
        attempt, driver.attempt = driver.attempt, []
        if isinstance(error, Violation):
            raise error
        if self.found is not None:
            raise self.found
        self.invariants.check_outcome(driver, attempt, error)
        if error is None:
            if isinstance(driver, BackupProcess):
                self.kill(driver)
            return
        # What was listed is all that it knows.
        is_blinded = driver.is_blinded and isinstance(error, Corrupt | StateDeleted | DefinitionConflict)
        if isinstance(error, Corrupt) and discard_foreign_notes(self):
            is_blinded = True
        if not is_blinded and not isinstance(error, (*EXPECTED, Fenced, NotCommitted)):
            raise Violation("raw error", f"{driver.name} {driver.action}: {type(error).__name__}: {error}") from error
        self.count(f"raised {type(error).__name__}", driver.name)
        if (
            driver.action in ("restart", "backup")
            or (not driver.is_defined and (driver.driver is None or not isinstance(error, EXPECTED)))
            or isinstance(error, Fenced | Corrupt | StateDeleted)
            or self.dice.random() < 0.3
        ):
            self.kill(driver)

    # -- the end ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Without faults the flow recovers: a live driver goes on or raises why it cannot, and no file is left over."""
        self.is_quiet, self.blind = True, 0
        self.settled_from = self.invariants.epoch + 1
        self.trace("settling")
        self._apply_late(None)
        self.inputs.finish(self, None)
        discard_foreign_notes(self)
        for driver in list(self.drivers):
            self.clock.jump(driver.name, 0)
            if not driver.is_idle:
                self._advance(driver)
            if not driver.is_defined and driver in self.drivers:
                self.kill(driver)
            self.invariants.check()
        for driver in list(self.drivers):
            self.inputs.add(self, self.flow.rows(self.dice, in_files=True, many=True))
            driver.start("step")
            self._advance(driver)
            self.invariants.check()
            if driver in self.drivers:
                self.kill(driver)
        last = self.open()
        self._advance(last)
        number, is_reading = 0, True
        while number < max(2, self.knobs.keep_versions) + SETTLING or is_reading:
            if last not in self.drivers:
                raise Violation("stuck", "a driver that is alone and meets no fault cannot go on")
            self.clock.pass_time(60_000)
            before = len(self.invariants.files_read())
            action = "define" if number == 1 else "step" if number < SETTLING else "rest"
            last.start(action)
            self._advance(last)
            self.invariants.check()
            number, is_reading = number + 1, before < len(self.invariants.files_read())
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

    def use(self, shelf: Shelf) -> None:
        """Put another store in the place of the present one: nothing that was sent to that arrives any more."""
        shelf.store_listing()
        self.shelf, self.device, self.blind, self._later = shelf, None, 0, []
        self._open_truth()

    def _open_truth(self) -> None:
        memory_objects._stores[TRUTH] = self.shelf  # type: ignore[assignment]
        self.truth = open_store(f"memory://{TRUTH}")
        drop_open_runs(self.truth)

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
