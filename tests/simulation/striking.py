"""Faults that strike between two steps of the drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from rejoinder.store.runs.run import drop_open_runs
from tests.simulation.backups import begin_backup, discard_foreign_notes, restore
from tests.simulation.rot import damage, unmount

if TYPE_CHECKING:
    from tests.simulation.world import World

MOST_DRIVERS = 3
JUMPS = (-60_000, 5_000, 600_000, 315_360_000_000, 0)


def strike(world: World) -> None:
    """Let faults of the world strike, or none."""
    if world.drivers and world.happens("kill"):
        world.kill(world.dice.choice(world.drivers))
    if world.drivers and world.happens("jump"):
        world.clock.jump(world.dice.choice(world.drivers).name, world.dice.choice(JUMPS))
    if world.happens("hint"):
        world.blind = world.tick + 2
        with mock.patch.object(world, "is_quiet", True):
            world.shelf.delete(["manifests/latest"])
        discard_foreign_notes(world)  # without a hint, they are taken for signs of a commit that is lost
    if world.device is not None and world.happens("power"):
        _cut_power(world)
    if world.happens("rot"):
        damage(world)
    if world.happens("unmount"):
        unmount(world)
    if world.flow.files and world.happens("clean"):
        world.inputs.clean(world, world.invariants.files_read())
    if world.happens("backup"):
        begin_backup(world)
    if world.happens("restore"):
        restore(world)
    if len(world.drivers) < MOST_DRIVERS and world.happens("rival"):
        world.open()


def _cut_power(world: World) -> None:
    assert world.device is not None
    for driver in list(world.drivers):
        world.kill(driver)
    world.trace(f"lost or torn: {world.device.power_cut(world.dice)}")
    drop_open_runs(world.truth)
    world.invariants.forget_lost()
