"""Damage at rest: one object of the state, or a file of a sink's progress, is flipped, cut, lost or replaced.

All processes are dead meanwhile. The next one must raise an error that names it, or must not be affected. Then what was
damaged is restored, as a user would from a backup. A folder that is unmounted is lost under a driver that is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.errors import RejoinderError, SinkFailed
from rejoinder.store.commits.lost_commits import HINT, hint_to
from rejoinder.store.commits.manifest import FOLDER
from rejoinder.store.runs.run import drop_open_runs
from tests.simulation.backups import discard_foreign_notes
from tests.simulation.ledger import Violation
from tests.simulation.store import Shelf

if TYPE_CHECKING:
    from tests.simulation.world import World

MUTABLE = (HINT, "sinks/")
PROGRESS_FOLDER = "/_rejoinder/"


def damage(world: World) -> None:
    """Damage something, and let a new driver use the state."""
    for driver in list(world.drivers):
        world.kill(driver)
    discard_foreign_notes(world)
    sinks = sorted({path.split("/")[0] for path in world.folder.files if PROGRESS_FOLDER in path})
    if sinks and world.dice.random() < 0.35:
        _damage_sink(world, world.dice.choice(sinks))
    else:
        _damage_state(world)


# -- the state --------------------------------------------------------------------------------------------------------


def _damage_state(world: World) -> None:
    names = sorted(entry.name for entry in world.shelf.entries(""))
    folders = sorted({name.split("/")[0] for name in names})
    if not folders:
        return
    is_note = "sinks" in folders and world.dice.random() < 0.4  # small, and all that says how far a function is
    folder = "sinks" if is_note else world.dice.choice(folders)
    name = world.dice.choice([name for name in names if name.split("/")[0] == folder])
    name = HINT if HINT in names and world.dice.random() < 0.1 else name
    good = world.shelf.get(name)
    bad = _damaged(world, name, good)
    if bad == good:
        return
    _replace(world, name, bad)
    world.trace(f"damaged: {name}, {len(good)} bytes, now {None if bad is None else len(bad)}")
    raised = _use(world, name)
    if raised and name == HINT:
        raise Violation("hint", f"it is damaged, which should cost time and nothing else: {raised}")
    if raised or not name.startswith(MUTABLE):  # without an error nobody would restore it
        _restore(world, name, good, bad)
    drop_open_runs(world.truth)


def _damaged(world: World, name: str, good: bytes) -> bytes | None:
    dice = world.dice
    past = world.shelf.past.get(name, []) if isinstance(world.shelf, Shelf) else []
    kinds = ["flip", "flip", "cut", "digit"]
    if not name.startswith(f"{FOLDER}/") or name == HINT or _is_hinted(world, name):
        kinds += ["lose", *(["older"] if past else [])]  # without hint and last manifest, a state is an older state
    kind = dice.choice([*kinds, "digit", "digit", "digit"] if name.startswith("sinks/") else kinds)
    if kind == "lose":
        return None
    if kind == "older":
        return dice.choice(past)
    text = good[:4000] if not name.startswith("sinks/") else good.partition(b"\n")[0]
    return _changed(world, kind, good, text, last=3 if name.startswith("sinks/") else None)


def _is_hinted(world: World, name: str) -> bool:
    """Whether the hint names a manifest, so that its loss is noticed."""
    found = [entry.name for entry in world.shelf.entries(FOLDER) if entry.name == HINT]
    version = name.removeprefix(f"{FOLDER}/").removesuffix(".json")
    return bool(found) and version.isdigit() and world.shelf.get(HINT) == hint_to(int(version))


def _changed(world: World, kind: str, good: bytes, text: bytes, last: int | None) -> bytes:
    """Some bytes with one bit or digit changed, or cut. Of the digits in a text only the `last` ones are touched."""
    dice = world.dice
    at = dice.randrange(max(1, len(good)))
    digits = [at for at, byte in enumerate(text) if 0x30 <= byte <= 0x39]
    digits = digits if last is None else digits[-last:]  # an epoch, not an identity
    if kind == "flip" and good:
        return good[:at] + bytes([good[at] ^ (1 << dice.randrange(8))]) + good[at + 1 :]
    if kind == "digit" and digits:
        at = dice.choice(digits)
        return good[:at] + b"%d" % ((good[at] - 0x30 + dice.choice([1, 4])) % 10) + good[at + 1 :]
    return good[:at]


def _replace(world: World, name: str, data: bytes | None) -> None:
    world.shelf.delete([name])
    if data is not None:
        world.shelf.put(name, memoryview(data))


def _restore(world: World, name: str, good: bytes, bad: bytes | None) -> None:
    """Put the good bytes back, unless the object was written anew or is needed no more."""
    try:
        found: bytes | None = world.shelf.get(name)
    except FileNotFoundError:
        found = None
    is_wanted = name in world.invariants.wanted() or name.startswith(f"{FOLDER}/")
    if found == bad and (found is not None or is_wanted):
        _replace(world, name, good)


# -- sinks ------------------------------------------------------------------------------------------------------------


def _damage_sink(world: World, sink: str) -> None:
    """Damage what the folder of a sink stores, empty the folder, or replace it by an older copy."""
    dice, folder = world.dice, world.folder
    good = folder.of(sink)
    copies = [] if world.vault is None else world.vault.sinks
    path = dice.choice([path for path in sorted(good) if PROGRESS_FOLDER in path])
    reached = folder.reached(sink)
    if reached is not None and reached < world.invariants.epoch and dice.random() < 0.5:
        path = f"{sink}{PROGRESS_FOLDER}progress.json"  # an epoch is to be delivered
    past = folder.past.get(path, [])
    choices = ["flip", "digit", "digit", "cut", "lose", "empty", *(["older"] * 2 if past else [])]
    kind = dice.choice([*choices, "copy"] if copies else choices)
    match kind:
        case "empty":
            folder.restore(sink, {})
        case "copy":
            chosen = dice.choice(copies)
            folder.restore(sink, {path: data for path, data in chosen.items() if path.startswith(f"{sink}/")})
        case "lose":
            del folder.files[path]
        case "older":
            folder.files[path] = dice.choice(past)
        case _:
            text = good[path].partition(b'"identity"')[0]  # the epoch
            folder.files[path] = _changed(world, kind, good[path], text, last=1)
    if folder.of(sink) == good:
        return
    world.trace(f"damaged: {kind} {path}")
    world.invariants.forget_progress()
    if _use(world, f"sink {sink} ({kind} {path})"):
        folder.restore(sink, good)
        world.invariants.forget_progress()


def unmount(world: World) -> None:
    """Take the folder of a sink away, let a driver that is alive run an epoch, and give the folder back as it was.

    A driver that knows of no delivery may create the folder: its predecessor died before it recorded the first one.
    """
    dice, folder = world.dice, world.folder
    sinks = [sink.name for sink in world.flow.sinks if folder.reached(sink.name) is not None]
    drivers = [driver for driver in world.drivers if driver.is_idle and driver.is_defined]
    if not sinks or not drivers:
        return
    sink, driver = dice.choice(sinks), dice.choice(drivers)
    if not driver.has_delivered(sink):
        return
    files, folders = folder.take_away(sink)
    world.trace(f"unmounted: {sink}")
    error = world.run_alone("step", driver)
    written, _ = folder.take_away(sink)
    folder.files |= files
    folder.folders |= folders
    if written:
        raise Violation("unmounted sink", f"{sink} was not there, and {driver.name} wrote {min(written)}")
    driver.is_refused = isinstance(error, SinkFailed) and f"`{sink}`" in error.fact
    world.check_error(driver, error)


def _use(world: World, what: str) -> str:
    """Let a new driver use the state; return the error that it raises."""
    driver, raised = world.open_driver(), ""
    for action in ("open", "read", "step", "step"):
        error = world.run_alone(action, driver)
        if isinstance(error, Violation):
            raise error
        if error is not None and not isinstance(error, RejoinderError):
            detail = f"{action} after damage to {what}: {type(error).__name__}: {error}"
            raise Violation("raw error", detail) from error
        if error is not None:
            world.count(f"damage raised: {type(error).__name__}", f"{what}: {error}")
            raised = str(error)
            break
        world.invariants.acknowledge(driver)
    world.kill(driver)
    return raised
