"""Damage at rest: one object of the state gets a flipped bit, is cut short, lost, or replaced by an older copy.

All processes are dead meanwhile. The next one must be told so by name, or must not be affected. Then the object is
restored, as a user would from a backup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.errors import RejoinderError
from rejoinder.store.manifest import FOLDER
from rejoinder.store.run import forget_runs
from tests.simulation.ledger import Violation
from tests.simulation.store import Shelf

if TYPE_CHECKING:
    from tests.simulation.world import World

HINT = f"{FOLDER}/latest"
MUTABLE = (HINT, "sinks/")


def damage(world: World) -> None:
    """Damage an object, and let a new driver use the state."""
    for driver in list(world.drivers):
        world.kill(driver)
    names = sorted(entry.name for entry in world.shelf.entries(""))
    folders = sorted({name.split("/")[0] for name in names})
    if not folders:
        return
    is_note = "sinks" in folders and world.dice.random() < 0.4  # small, and all that says how far a function is
    folder = "sinks" if is_note else world.dice.choice(folders)
    name = world.dice.choice([name for name in names if name.split("/")[0] == folder])
    good = world.shelf.get(name)
    bad = _damaged(world, name, good)
    if bad == good:
        return
    _replace(world, name, bad)
    world.trace(f"damaged: {name}, {len(good)} bytes, now {None if bad is None else len(bad)}")
    driver = world.open_driver()
    is_told = False
    for action in ("open", "read", "step", "step"):
        error = world.run_alone(action, driver)
        if isinstance(error, Violation):
            raise error
        if error is not None and not isinstance(error, RejoinderError):
            detail = f"{action} after damage to {name}: {type(error).__name__}: {error}"
            raise Violation("raw error", detail) from error
        if error is not None:
            world.count(f"damage told: {type(error).__name__}", f"{name}: {error}")
            is_told = True
            break
        world.invariants.acknowledge(driver)
    world.kill(driver)
    if is_told or not name.startswith(MUTABLE):  # nobody restores what nobody was told of
        _restore(world, name, good, bad)
    forget_runs(world.truth)


def _damaged(world: World, name: str, good: bytes) -> bytes | None:
    dice = world.dice
    past = world.shelf.past.get(name, []) if isinstance(world.shelf, Shelf) else []
    kinds = ["flip", "flip", "cut", "digit"]
    if not name.startswith(f"{FOLDER}/") or name == HINT:  # without its last manifest, a state is an older state
        kinds += ["lose", *(["older"] if past else [])]
    kind = dice.choice([*kinds, "digit", "digit", "digit"] if name.startswith("sinks/") else kinds)
    at = dice.randrange(max(1, len(good)))
    match kind:
        case "flip" if good:
            return good[:at] + bytes([good[at] ^ (1 << dice.randrange(8))]) + good[at + 1 :]
        case "digit":
            text = good[:4000] if not name.startswith("sinks/") else good.partition(b"\n")[0]
            digits = [at for at, byte in enumerate(text) if 0x30 <= byte <= 0x39]
            digits = digits[-3:] if name.startswith("sinks/") else digits  # an epoch, not an identity
            if digits:
                at = dice.choice(digits)
                return good[:at] + b"%d" % ((good[at] - 0x30 + 4) % 10) + good[at + 1 :]
        case "lose":
            return None
        case "older":
            return dice.choice(past)
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
