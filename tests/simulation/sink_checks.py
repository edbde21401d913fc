"""What must hold of sinks after every tick, and once faults have ceased."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.flows import Bag, SinkSpec
from tests.simulation.ledger import Commit, Violation

if TYPE_CHECKING:
    from tests.simulation.world import World


class SinkChecks:
    """Checks of the sinks of a world. `reached`: how far the folder of each was at the last check."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reached: dict[str, int] = {}
        self._views = {view.name: view for view in world.flow.views}

    def check(self, newest: Commit) -> None:
        """Check all sinks."""
        for sink in self.world.flow.sinks:
            if sink.format == "function":
                self._check_receiver(sink, newest)
            else:
                self._check_folder(sink, newest)

    def check_settled(self, newest: Commit) -> None:
        """All sinks have all epochs, and nothing is left over in them."""
        world = self.world
        for sink in world.flow.sinks:
            reached = self._check_folder(sink, newest) if sink.format != "function" else 0
            seen: Bag = Counter()
            if sink.format == "function":
                self._check_receiver(sink, newest)
                for changes in dict(world.receivers[sink.name].calls).values():
                    seen.update(changes)
            else:
                for epoch, changes in world.folder.epochs(sink.name).items():
                    if epoch <= reached:
                        seen.update(changes)
            wanted = self._view_at(sink, newest, newest.manifest.epoch)
            compare(_net(seen), wanted, f"sink {sink.name} in the end")
            if reached <= world.settled_from:
                continue  # what a killed driver staged goes with the next delivery
            staged = [path for path in world.folder.files if "staged-" in path and path.startswith(f"{sink.name}/")]
            if staged:
                raise Violation("leaked file", f"{sink.name} still holds {staged[0]}")

    def _check_folder(self, sink: SinkSpec, newest: Commit) -> int:
        """What readers of the folder see up to its own progress is the view at that epoch. Progress never goes back."""
        stored = self.world.folder.reached(sink.name)
        reached = -2 if stored is None else stored
        if reached < self.reached.get(sink.name, reached):
            detail = f"{sink.name} had epoch {self.reached[sink.name]}, and now says that it has epoch {reached}"
            raise Violation("progress went back", detail)
        self.reached[sink.name] = reached
        seen: Bag = Counter()
        for epoch, changes in self.world.folder.epochs(sink.name).items():
            if epoch > newest.manifest.epoch:
                raise Violation("uncommitted delivery", f"{sink.name} shows epoch {epoch}, which is not committed")
            if epoch <= reached:
                seen.update(changes)
        if reached >= 0:
            compare(_net(seen), self._view_at(sink, newest, reached), f"sink {sink.name} at epoch {reached}")
        return reached

    def _check_receiver(self, sink: SinkSpec, newest: Commit) -> int:
        """Each call has the changes of its epoch, and none is left out."""
        known: dict[int, Bag] = {}
        for epoch, changes in self.world.receivers[sink.name].calls:
            if epoch > newest.manifest.epoch:
                raise Violation("uncommitted delivery", f"{sink.name} got epoch {epoch}, which is not committed")
            if known.setdefault(epoch, changes) != changes:
                raise Violation("changed delivery", f"{sink.name} got epoch {epoch} twice, with other rows")
        reached, seen = -1, Counter[tuple[object, ...]]()
        for epoch in sorted(known):
            seen.update(known[epoch])
            compare(_net(seen), self._view_at(sink, newest, epoch), f"sink {sink.name} at epoch {epoch}")
            reached = epoch
        return reached

    def _view_at(self, sink: SinkSpec, newest: Commit, epoch: int) -> Bag:
        path = self.world.ledger.path(newest.manifest.checksum)
        commit = next(each for each in reversed(path) if each.manifest.epoch <= epoch)
        return self.world.ledger.answer(commit, self._views[sink.view])


def compare(found: Bag, wanted: Bag, what: str) -> None:
    """Raise `Violation` unless both hold the same rows."""
    if found != wanted:
        missing, surplus = wanted - found, found - wanted
        raise Violation("wrong rows", f"{what}: missing {dict(missing)}, surplus {dict(surplus)}")


def _net(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})
