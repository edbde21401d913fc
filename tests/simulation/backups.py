"""Backups that are made while the flow runs, and states that are replaced by one.

A backup is a process like a driver: its calls fail, it sleeps, it is killed. What it leaves is a state, or none. The
sinks are copied before it begins, so such a copy is never ahead of the backup. After a restore the sinks are either
put back as well, or they are what they are: then those that are ahead must be refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.engine.maintenance.backup import backup
from rejoinder.errors import NotCommitted, RejoinderError, SinkFailed
from rejoinder.store.commits.lost_commits import HINT
from rejoinder.store.commits.manifest import FOLDER
from rejoinder.store.commits.newest_manifest import newest as newest_stored
from rejoinder.store.objects import memory_objects
from rejoinder.store.objects.object_store import open_store
from rejoinder.store.runs.run import drop_open_runs
from tests.simulation.coroutines import Coroutine
from tests.simulation.drivers import SimulatedDriver
from tests.simulation.ledger import Violation
from tests.simulation.store import Link, Shelf

if TYPE_CHECKING:
    from tests.simulation.world import World

VAULT = "simulation/vault"


@dataclass
class Vault:
    """Where backups go, with copies of the sinks' files from before each."""

    shelf: Shelf
    sinks: list[dict[str, bytes]] = field(default_factory=list)


class BackupProcess(SimulatedDriver):
    """A process that makes one backup and ends."""

    def __init__(self, world: World, name: str, vault: Vault) -> None:
        super().__init__(world, name, 1)
        self.vault = vault
        self.action = "backup"
        self.coroutine = Coroutine(self._backup)

    def _backup(self) -> None:
        here, there = f"simulation/{self.name}", f"simulation/{self.name}-target"
        memory_objects._stores[here] = Link(self.world.shelf, self)
        memory_objects._stores[there] = Link(self.vault.shelf, self)
        made = backup(open_store(f"memory://{here}"), open_store(f"memory://{there}"))
        self.world.trace(f"{self.name} has copied epoch {made.epoch}")
        check_backup(self.world, self.vault, made.epoch)


def begin_backup(world: World) -> None:
    """Start a backup, into an empty place or over an earlier one."""
    if any(isinstance(driver, BackupProcess) for driver in world.drivers):
        return
    if world.vault is None:
        world.vault = Vault(Shelf(lambda: world.clock.now / 1000))
    world.vault.sinks.append(dict(world.folder.files))
    world.drivers.append(BackupProcess(world, world.new_name("b"), world.vault))


def check_backup(world: World, vault: Vault, epoch: int) -> None:
    """A backup that is reported holds a commit with all that it names."""
    memory_objects._stores[VAULT] = vault.shelf  # type: ignore[assignment]
    store = open_store(f"memory://{VAULT}")
    drop_open_runs(store)
    try:
        manifest = newest_stored(store)
    except RejoinderError as error:
        raise Violation("bad backup", f"it cannot be opened: {error}") from error
    if manifest is None or manifest.epoch != epoch or manifest.checksum not in world.ledger.commits:
        raise Violation("bad backup", f"epoch {epoch} was reported, and is not there")
    world.invariants.check_views(world.ledger.commits[manifest.checksum], store)


def restore(world: World) -> None:
    """Replace the state by the last backup, whether the last attempt at one came to its end or not."""
    vault, world.vault = world.vault, None
    if vault is None:
        return
    for driver in list(world.drivers):
        world.kill(driver)
    if not any(entry.name.startswith(f"{FOLDER}/") for entry in vault.shelf.entries("")):
        return  # the first backup was interrupted: there is none
    memory_objects._stores[VAULT] = vault.shelf  # type: ignore[assignment]
    try:
        manifest = newest_stored(open_store(f"memory://{VAULT}"))
    except RejoinderError as error:
        raise Violation("bad backup", f"it cannot be opened: {error}") from error
    assert manifest is not None
    world.trace(f"restored: version {manifest.version}, epoch {manifest.epoch}")
    world.ledger.restore(manifest.checksum)
    notes = {name: world.shelf.get(name) for name in world.invariants.names() if name.startswith("sinks/")}
    world.use(vault.shelf)
    has_hint = HINT in world.invariants.names()  # without it, newer notes are signs of a commit that is lost
    if has_hint and world.dice.random() < 0.4:  # a folder that was copied by hand: newer notes lie in it
        for name, data in notes.items():
            if int(name[6:-5]) > manifest.version:
                vault.shelf.put(name, memoryview(data))
                world.foreign_notes[name] = data
    for receiver in world.receivers.values():  # what takes epochs at least once goes back with the state
        receiver.calls = [call for call in receiver.calls if call[0] <= manifest.epoch]
    has_sinks = world.dice.random() < 0.5
    for sink in world.flow.sinks if has_sinks else ():
        _restore_sink(world, vault, sink.name, manifest.epoch)
    world.invariants.forget_progress()
    if has_sinks or not world.foreign_notes or _ahead(world, manifest.epoch):
        _go_on(world, vault)  # else the drivers to come do, which may die between a commit and its note


def _go_on(world: World, vault: Vault) -> None:
    """Let a driver use the restored state. Sinks that are ahead of it are refused, and are restored then."""
    for _ in range(len(world.flow.sinks) + 1):
        newest = newest_stored(world.truth)
        assert newest is not None
        ahead = _ahead(world, newest.epoch)
        driver = world.open_driver()
        error = next(filter(None, (world.run_alone(action, driver) for action in ("open", "step"))), None)
        world.kill(driver)
        if isinstance(error, Violation):
            raise error
        if error is None:
            if ahead:
                raise Violation("older state", f"sink {ahead[0]} is ahead of the restored state, and is not refused")
            return
        world.count(f"restore raised: {type(error).__name__}", str(error))
        named = [sink for sink in world.flow.sinks if f"sink `{sink.name}`" in str(error)]
        is_empty = bool(named) and world.folder.reached(named[0].name) is None
        if isinstance(error, NotCommitted) or (isinstance(error, SinkFailed) and is_empty):
            # The copy of the sink is older than the history, or from before its first epoch: the user drops it.
            world.flow.sinks = tuple(sink for sink in world.flow.sinks if sink not in named)
        elif isinstance(error, SinkFailed) and ahead:
            for name in ahead:
                _restore_sink(world, vault, name, newest.epoch)
            world.invariants.forget_progress()
        else:
            raise Violation("raw error", f"after a restore: {type(error).__name__}: {error}") from error


def discard_foreign_notes(world: World) -> bool:
    """Delete notes of commits that were undone, as the error says; whether there were any."""
    found, world.foreign_notes = world.foreign_notes, {}
    present = {name for name in world.invariants.names() if name in found and world.shelf.get(name) == found[name]}
    for name in sorted(present):
        world.trace(f"deleted: {name}")
        world.shelf.delete([name])
    return bool(present)


def _ahead(world: World, epoch: int) -> list[str]:
    """The sinks that have stored more epochs than the state has."""
    stored = {sink.name: world.folder.reached(sink.name) for sink in world.flow.sinks if sink.format != "function"}
    return [name for name, reached in stored.items() if reached is not None and reached > epoch]


def _restore_sink(world: World, vault: Vault, name: str, epoch: int) -> None:
    """Put the newest copy of a sink back that is not ahead of an epoch."""
    for copy in reversed(vault.sinks):
        files = {path: data for path, data in copy.items() if path.startswith(f"{name}/")}
        now, world.folder.files = world.folder.files, copy
        reached = world.folder.reached(name)
        world.folder.files = now
        if reached is None or reached <= epoch:
            world.folder.restore(name, files)
            return
