"""What must hold after every tick, whatever happened; and what must hold once faults have ceased."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from rejoinder.engine.version import named_files
from rejoinder.errors import Fenced, NotCommitted, RejoinderError, SinkFailed
from rejoinder.kernels.arrow.columns import DIFF
from rejoinder.state.reading.changelog_reader import read_table
from rejoinder.store.commits.lost_commits import FLOW
from rejoinder.store.commits.manifest import FOLDER, Manifest, name_of
from rejoinder.store.commits.newest_manifest import newest as newest_stored
from rejoinder.store.commits.unnamed_files import find_garbage
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.testing import Driver
from tests.simulation.flows import Bag, ViewSpec
from tests.simulation.ledger import Arrived, Commit, Violation
from tests.simulation.sink_checks import SinkChecks, compare

if TYPE_CHECKING:
    from tests.simulation.drivers import SimulatedDriver
    from tests.simulation.world import World

COLUMNS = pa.int64()
NOTES = "sinks/"  # what sinks have taken since a commit; there is none before the first delivery


class Invariants:
    """Checks of a world. `epoch` is the last committed one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.epoch = -1
        self.checked = 0
        self._views = {view.name: view for view in world.flow.all_views}
        self._verified: set[str] = set()
        self._named: dict[str, set[str]] = {}
        self.sinks = SinkChecks(world)

    # -- after every tick ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check all that must always hold."""
        self.checked += 1
        ledger = self.world.ledger
        for driver in self.world.drivers:
            self.acknowledge(driver)
        try:
            newest = ledger.newest(newest_stored(self.world.truth))
        except RejoinderError as error:
            raise Violation("unreadable state", f"opening the state raises: {error}") from error
        if newest is None:
            return
        self.epoch = newest.manifest.epoch
        self._check_files(newest)
        if newest.manifest.checksum not in self._verified:
            self._verified.add(newest.manifest.checksum)
            self.check_views(newest, self.world.truth)
        self.sinks.check(newest)

    def acknowledge(self, driver: SimulatedDriver) -> None:
        """Note what a driver goes on from."""
        if driver.engine is not None:
            self.world.ledger.acknowledge(driver.engine.version.manifest, driver.name)

    def wanted(self) -> set[str]:
        """The files that retained manifests name."""
        path = self.world.ledger.path(self.world.ledger.head)[-max(2, self.world.knobs.keep_versions) :]
        stored = [commit.manifest for commit in path if commit.manifest.version >= self.world.ledger.root]
        return {file for manifest in stored for file in self._named_by(manifest)}

    def files_read(self) -> set[str]:
        """The input files whose rows are committed."""
        ledger = self.world.ledger
        committed = {row["id"] for each in ledger.path(ledger.head) for _, row, _ in each.arrived}
        return {path for path, rows in self.world.inputs.rows.items() if rows[0][1]["id"] in committed}

    def forget_progress(self) -> None:
        """Drop the progress of sinks: other copies have replaced their folders."""
        self.sinks.reached = {}

    def check_views(self, commit: Commit, store: ObjectStore) -> None:
        """Committed views equal the batch answers."""
        for view in self._views.values():
            if view.name in commit.manifest.spines["changelogs"]:
                wanted = self.world.ledger.answer(commit, view)
                found = _read(store, commit.manifest, view)
                compare(found, wanted, f"view {view.name} at epoch {commit.manifest.epoch}")

    def _check_files(self, newest: Commit) -> None:
        """No file that a retained manifest names is missing."""
        present = set(self.names())
        floor = max(newest.manifest.version - max(2, self.world.knobs.keep_versions), self.world.ledger.root - 1)
        for commit in self.world.ledger.path(newest.manifest.checksum):
            manifest = commit.manifest
            if manifest.version > floor:
                missing = {file for file in self._named_by(manifest) - present if not file.startswith(NOTES)}
                if missing:
                    detail = f"version {manifest.version} of {newest.manifest.version} names {min(missing)}"
                    raise Violation("missing file", detail)

    def _named_by(self, manifest: Manifest) -> set[str]:
        if manifest.checksum not in self._named:
            self._named[manifest.checksum] = named_files(manifest)
        return self._named[manifest.checksum]

    # -- after an action ----------------------------------------------------------------------------------------------

    def check_outcome(self, driver: SimulatedDriver, attempt: Arrived, error: BaseException | None) -> None:
        """An error is true: rows are committed or still pending, and only a driver that was replaced is fenced."""
        ledger, engine = self.world.ledger, driver.engine
        self.acknowledge(driver)
        if isinstance(error, Fenced):
            known = -1 if engine is None or engine.version.manifest is None else engine.version.manifest.version
            # By identity, not by name: a process that was restarted may be overtaken by a request of its predecessor.
            writer = "" if engine is None else engine.publisher.writer
            others = [each for each in ledger.commits.values() if each.manifest.writer != writer]
            if not any(each.manifest.version > known for each in others):
                raise Violation("fenced by itself", f"{driver.name} raises: {error}")
        if error is None and driver.action == "step":
            assert engine is not None and engine.version.manifest is not None
            known_rows = {
                row["id"] for each in ledger.path(engine.version.manifest.checksum) for _, row, _ in each.arrived
            }
            gone = [row["id"] for _, row, _ in attempt if row["id"] not in known_rows]
            if gone:
                raise Violation("row lost", f"{driver.name} committed epoch {engine.epoch} without row {gone[0]}")
        if isinstance(error, SinkFailed) and not driver.is_refused and not driver.is_blinded:
            raise Violation("sink failed", f"no target has refused anything, and {driver.name} raises: {error}")
        is_open = engine is not None and engine.publisher.is_open(engine.epoch + 1)
        if error is not None and not is_open and not self.world.has_late_calls:
            waiting = {row["id"] for _, row, _ in driver.pending()}
            for source, row, _ in attempt:
                if source in self.world.flow.files:  # they stay where they are
                    continue
                if row["id"] not in waiting and not ledger.is_committed(row["id"]):
                    raise Violation("row lost", f"{driver.name} failed, and row {row['id']} is neither here nor there")

    def check_refusal(self, driver: SimulatedDriver, view: ViewSpec, refused: RejoinderError) -> None:
        """A view is refused only if a file is gone whose rows it needs."""
        removed = self.world.inputs.removed
        if not any(path.split("/")[-2] in view.sources for path in removed):
            self.world.found = Violation("refused view", f"{driver.name}, no file is gone, and {view.name}: {refused}")

    def compare_reading(self, driver: Driver, view: ViewSpec) -> None:
        """Read a view as of an earlier epoch, and when each epoch was committed."""
        ledger, manifest = self.world.ledger, driver._engine.version.manifest
        if manifest is None or manifest.epoch < 0:
            return
        path = ledger.path(manifest.checksum)
        created = manifest.extra["created"].get(view.name, -1)
        chosen = self.world.dice.choice([commit for commit in path if commit.manifest.epoch >= max(0, created)])
        try:
            rows = driver.table(view.name, as_of=chosen.manifest.epoch)
        except NotCommitted:
            rows = None
        if rows is not None:
            found: Bag = Counter(tuple(row.values()) for row in rows)
            answer = view.batch(ledger.content(chosen).for_view(created))
            compare(found, answer, f"view {view.name} as of epoch {chosen.manifest.epoch}")
        times = {commit.manifest.epoch: commit.manifest.time_ms for commit in path[::-1]}
        for row in driver.stream(view.name):
            epoch, emitted = row["_epoch"], row["_emit_time"]
            wanted = datetime.fromtimestamp(times.get(epoch, 0) / 1000, timezone.utc).replace(tzinfo=None)
            if epoch > manifest.extra["since"] and emitted is not None and emitted != wanted:
                raise Violation("wrong time", f"{view.name}: epoch {epoch} was committed at {wanted}, not {emitted}")

    # -- in the end ---------------------------------------------------------------------------------------------------

    def check_settled(self, last: SimulatedDriver) -> None:
        """All sinks have all epochs, and nothing is stored that nobody names."""
        ledger, world = self.world.ledger, self.world
        newest = ledger.newest(newest_stored(world.truth))
        assert newest is not None
        self.sinks.check_settled(newest)
        self._check_inputs(newest)
        self._check_clock(newest)
        self._check_leaks(newest)

    def _check_inputs(self, newest: Commit) -> None:
        """Each row of each file is committed, once (`Ledger` checks that it is not twice)."""
        committed = {
            row["id"] for each in self.world.ledger.path(newest.manifest.checksum) for _, row, _ in each.arrived
        }
        for file in self.world.inputs.visible():
            unread = [row["id"] for _, row, _ in self.world.inputs.rows[file] if row["id"] not in committed]
            if unread:
                raise Violation("unread file", f"row {unread[0]} of {file} is in no epoch")

    def _check_clock(self, newest: Commit) -> None:
        """Processing time goes on, so that views with EMIT EVERY do, whatever a clock has said before."""
        epochs = {
            each.manifest.epoch: each.manifest.time_ms for each in self.world.ledger.path(newest.manifest.checksum)
        }
        passed = newest.manifest.time_ms - epochs[newest.manifest.epoch - 2]
        if passed < 60_000:  # two minutes by every clock
            raise Violation("frozen clock", f"two minutes have passed, and {passed / 1000:.0f} s of processing time")

    def _check_leaks(self, newest: Commit) -> None:
        path = self.world.ledger.path(newest.manifest.checksum)
        present = set(self.names())
        stored: list[Manifest] = []
        for commit in reversed(path):
            if name_of(commit.manifest.version) not in present:
                break  # an older one that is stored was deleted and came back: a late request
            stored.append(commit.manifest)
        named = {file for manifest in stored for file in self._named_by(manifest)}
        named |= {name_of(manifest.version) for manifest in stored} | {f"{FOLDER}/latest", FLOW}
        listed = {each.name for each in find_garbage(self.world.truth, named_files, -1)}
        surplus = present - named - listed
        if surplus:
            raise Violation("leaked file", f"nobody names {min(surplus)}, and vacuum does not find it")
        if listed & named:
            raise Violation("named garbage", f"{min(listed & named)} is named, and vacuum would delete it")
        kept = max(2, self.world.knobs.keep_versions)
        if len(stored) > kept:
            raise Violation("leaked manifest", f"{len(stored)} versions are stored, and {kept} are to be kept")

    def names(self) -> list[str]:
        """The names of all objects."""
        return [entry.name for entry in self.world.shelf.entries("")]

    def forget_lost(self) -> None:
        """Drop manifests that a power cut removed before any driver read them."""
        stored = [name for name in self.names() if name.startswith(f"{FOLDER}/") and name.endswith(".json")]
        present = set()
        for name in stored:
            try:
                present.add(Manifest.from_bytes(self.world.shelf.get(name), name).checksum)
            except RejoinderError as error:
                raise Violation("torn manifest", f"{name} after a power cut: {error}") from error
        self.world.ledger.forget_all_but(present)


def _outputs(query: str) -> list[str]:
    selected = query.removeprefix("SELECT ").removeprefix("DISTINCT ").split(" FROM ")[0]
    return selected.split(", ")


def _read(store: ObjectStore, manifest: Manifest, view: ViewSpec) -> Bag:
    names = [part.split(" AS ")[-1].split(".")[-1] for part in _outputs(view.query)]
    schema = pa.schema([(name, COLUMNS) for name in names])
    try:
        table = read_table(store, manifest, view.name, schema)
    except RejoinderError as error:
        raise Violation("unreadable view", f"{view.name} at epoch {manifest.epoch}: {error}") from error
    columns = [table.column(name).to_pylist() for name in names]
    counts = table.column(DIFF).to_pylist() if DIFF in table.column_names else [1] * table.num_rows
    bag: Bag = Counter()
    for row, count in zip(zip(*columns, strict=True), counts, strict=True):
        bag[row] += count
    return bag
