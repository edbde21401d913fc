"""The defects that mutants put back: each fix of issue 11, points 5 and 6, taken out, and a few others.

A fix is taken out by editing the source of the function that holds it (`edited`), so a mutant is the code without the
fix and nothing else. Where the fix was a change of design, the older design is written down here.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rejoinder.engine import content, deletion, sink_progress, timeline
from rejoinder.engine.backup import Backup
from rejoinder.engine.engine import Engine
from rejoinder.engine.processing_time import ProcessingTime, Reading
from rejoinder.engine.publishing import Publisher
from rejoinder.engine.sinks import files, outbox
from rejoinder.errors import NotCommitted
from rejoinder.store import commit, disk, file_log, lost_commits, newest, run
from rejoinder.store.checked import CheckedRef
from rejoinder.store.manifest import Manifest
from rejoinder.store.objects import ObjectStore
from rejoinder.testing import driver as driver_module
from rejoinder.testing.files import new_files
from tests.simulation import backups, invariants
from tests.simulation.knobs import Knobs

Patch = tuple[Any, str, Any]
SLEEPERS = Knobs(
    {"rival": 0.2, "sleep": 0.1, "kill": 0.05}, switch=0.2, ticks=100, commits=18, keep_versions=2, part_rows=1
)
PROMPT = Knobs({"rival": 0.2, "sleep": 0.3}, switch=0.2, ticks=60, commits=12, keep_versions=8, is_prompt=True)
STALE = Knobs({"rival": 0.3, "stale": 0.05}, switch=0.3, ticks=60, commits=12, keep_versions=8, is_prompt=True)
LIGHTS_OUT = Knobs({"power": 0.2, "rival": 0.1}, switch=0.1, ticks=60, commits=10, on_disk=True, keep_versions=3)
NOTES = Knobs({"rot": 0.2}, ticks=20, commits=10, keep_versions=2)
ROTTEN = Knobs({"rot": 0.3, "kill": 0.1}, ticks=30, commits=12, keep_versions=3, timeline_block=2, recent_files=2)
LAGGING = Knobs({"rot": 0.4, "kill": 0.3, "refuse": 0.05}, switch=0.1, ticks=40, commits=14, keep_versions=3)
CRASHES = Knobs({"kill": 0.2}, switch=0.05, ticks=40, commits=14)
BACKUPS = Knobs({"backup": 0.3, "restore": 0.1}, switch=0.2, ticks=60, commits=18, keep_versions=2)
RESTORES = Knobs({"backup": 0.2, "restore": 0.15, "kill": 0.2}, switch=0.1, ticks=80, commits=18, keep_versions=3)
OLD_FILES = Knobs({"rival": 0.3, "sleep": 0.3}, switch=0.2, ticks=60, commits=12, keep_versions=2, recent_files=2)


@dataclass(frozen=True)
class Defect:
    """A defect: what it is, and what is put in the place of what."""

    name: str
    what: str
    patches: tuple[Patch, ...]
    focus: Knobs | None = None  # a world in which it matters; else that of each seed


def edited(function: Any, old: str, new: str) -> Callable[..., Any]:
    """A function with a part of its source replaced."""
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(old) == 1, f"{function.__name__} has changed: look for its fix again"
    made: dict[str, Any] = {}
    source = "from __future__ import annotations\n" + text.replace(old, new)
    exec(compile(source, f"<{function.__name__} without a fix>", "exec"), function.__globals__, made)  # noqa: S102
    return made[function.__name__]  # type: ignore[no-any-return]


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, and find nothing."""


@contextmanager
def _unnamed(_: Any) -> Any:
    yield


# -- designs of before ------------------------------------------------------------------------------------------------


def _forgetful_publish(self: Publisher, made: Manifest, accept: Any) -> None:
    """Commit, and forget the manifest whatever comes of it."""
    commit.commit(self.store, made)
    accept()


def _loose_files(engine: Engine) -> Any:
    """Find new files by a log beside the manifest that is written before the commit, as Spark's was."""
    data = engine.store.find("sinks/offsets")
    known = {} if data is None else json.loads(data)
    there = SimpleNamespace(
        positions=known, dataflow=engine.dataflow, attached=engine.attached, store=engine.store, epoch=engine.epoch
    )
    positions, splits = new_files(there)  # type: ignore[arg-type]
    engine.store.put("sinks/offsets", json.dumps(positions).encode())
    return engine.positions, splits


def _loose_position_files(_: Any) -> set[str]:
    return {"sinks/offsets"}


def _plain_note(store: ObjectStore, made: Manifest, progress: sink_progress.Progress) -> None:
    """Write progress to one object that belongs to no manifest, without a checksum."""
    store.put("sinks/progress", json.dumps(sink_progress.to_json(progress)).encode())


def _plain_recorded(store: ObjectStore, made: Manifest) -> dict[str, sink_progress.Delivered]:
    data = store.find("sinks/progress")
    return {} if data is None else sink_progress.from_json(json.loads(data))


def _plain_backup(source: ObjectStore, target: ObjectStore) -> Backup:
    """Copy the folder as it is, file by file."""
    made = newest.latest(source)
    if made is None:
        raise NotCommitted("there is no state")
    for name in source.list():
        data = source.find(name)
        if data is not None:
            target.put(name, data)
    return Backup(made.epoch, 0, 0, 0)


def _unchecked(store: ObjectStore, ref: CheckedRef, what: str) -> bytes:
    return store.get(ref.name)


def _unverified(store: ObjectStore, ref: run.RunRef) -> Any:
    """Open a run without a look at its checksum."""
    import pyarrow as pa

    return pa.ipc.open_file(store.map(ref.name, ref.size)).read_all()


def _any_hint(store: ObjectStore) -> int | None:
    text = (store.find(lost_commits.HINT) or b"").partition(b" ")[0]
    return int(text) if text.isdigit() and len(text) <= 18 else None


def _believed(self: ProcessingTime, latest: int, at: int | None = None) -> Reading:
    wall = self.clock() if at is None else at
    return Reading(max(wall, latest), wall)


def _unclaimed(self: Engine) -> bool:
    self.check_fence()
    return False


def _without(function: Any, old: str, new: str = "False") -> Callable[..., Any]:
    """A function with one condition out of force."""
    return edited(function, old, new)


OPEN = outbox.Outbox._open

DEFECTS = (
    # Lost answers of a PUT, fences (point 6)
    Defect("unconfirmed", "a name that was free because it was deleted counts", ((commit, "_confirm", _nothing),)),
    Defect(
        "forgetful",
        "a commit whose answer was lost is forgotten: the driver meets it as that of another one",
        ((Publisher, "publish", _forgetful_publish), (Publisher, "settle", _nothing)),
    ),
    Defect(
        "kept rows",
        "rows of a commit that is not settled are kept as well",
        ((Publisher, "is_open", lambda *_: False),),
    ),
    Defect("new flow", "an empty listing without a hint is a new flow", ((newest, "sign_of_use", _nothing),)),
    Defect(
        "marker first",
        "a flow is marked before its first commit: a crash in between looks like a lost flow",
        (
            (
                Publisher,
                "publish",
                _without(Publisher.publish, "self._is_marked and manifest.version:", "self._is_marked:"),
            ),
        ),
        CRASHES,
    ),
    Defect(
        "damage alarm",
        "a driver that was replaced calls the state damaged",
        ((deletion, "_refuse_overtaken", _nothing),),
        SLEEPERS,
    ),
    Defect(
        "damage alarm of files",
        "a driver that was replaced calls its log of files damaged",
        ((driver_module, "deletion_named", _unnamed),),
        OLD_FILES,
    ),
    Defect(
        "unfenced delivery",
        "a driver delivers without a look whether it was replaced",
        ((Engine, "check_fence", _nothing),),
        PROMPT,
    ),
    Defect(
        "listing alone",
        "the look at the fence trusts a listing that may be stale",
        (
            (
                Publisher,
                "check_fence",
                _without(Publisher.check_fence, "self.store.exists(name_of(manifest.version + 1))"),
            ),
        ),
        STALE,
    ),
    Defect(
        "unclaimed delivery",
        "a driver delivers before it has taken over: two deliver with the same token",
        ((Engine, "claim", _unclaimed),),
        SLEEPERS,
    ),
    Defect(
        "no lease",
        "a driver does not remove what those before it have staged: they go on",
        ((files, "_clear_staged", _nothing),),
        SLEEPERS,
    ),
    Defect(
        "foreign folders",
        "a driver that was replaced removes what the live one has staged",
        (
            (
                files,
                "_clear_staged",
                _without(files._clear_staged, " and not (number.isdigit() and int(number) > writer)", ""),
            ),
        ),
        SLEEPERS,
    ),
    Defect(
        "wrong advice",
        "a driver that was replaced calls the state older than the sink",
        ((outbox.Outbox, "_open", _without(OPEN, "engine.check_fence()", "pass")),),
        SLEEPERS,
    ),
    # One commit (point 5)
    Defect(
        "loose positions",
        "what a source has read is one object beside the manifest",
        ((driver_module, "new_files", _loose_files), (content, "position_files", _loose_position_files)),
        ROTTEN,
    ),
    Defect("loose file log", "the log of files is read unchecked", ((file_log, "read_checked", _unchecked),), ROTTEN),
    Defect(
        "loose progress",
        "progress of sinks is one object without a checksum beside the manifest",
        (
            (outbox, "write_note", _plain_note),
            (content, "recorded", _plain_recorded),
            (content, "note_name", lambda _: "sinks/progress"),
        ),
        NOTES,
    ),
    Defect(
        "foreign notes",
        "a note is believed that belongs to another commit of the same version",
        ((content, "recorded", _without(sink_progress.recorded, 'note["manifest"] != manifest.checksum')),),
        RESTORES,
    ),
    Defect(
        "older sink",
        "a sink that was restored from an older copy does not get what it lacks",
        ((outbox.Outbox, "_open", _without(OPEN, "known < recorded.changed")),),
        ROTTEN,
    ),
    Defect(
        "older state",
        "a sink may be ahead of the state",
        ((outbox.Outbox, "_open", _without(OPEN, "known is not None and known > engine.epoch")),),
        RESTORES,
    ),
    Defect(
        "empty sink",
        "a sink that has lost its progress goes on",
        (
            (
                outbox.Outbox,
                "_open",
                _without(OPEN, "recorded.changed is not None:", "recorded.changed is not None and known is not None:"),
            ),
        ),
        ROTTEN,
    ),
    Defect(
        "loose sink",
        "what the folder of a sink remembers is not checked",
        ((files.FilesTarget, "_read", _without(files.FilesTarget._read, "_sealed(dict(fields)) != data")),),
        LAGGING,
    ),
    Defect("loose timeline", "timeline blocks are read unchecked", ((timeline, "read_checked", _unchecked),), ROTTEN),
    Defect("loose runs", "runs are read unchecked", ((run, "_verified", _unverified),), ROTTEN),
    Defect(
        "lost manifest",
        "a state goes back if its newest manifest is lost",
        ((newest, "refuse_lost", _nothing),),
        ROTTEN,
    ),
    Defect(
        "loose hint",
        "the hint has no checksum",
        ((lost_commits, "hinted_version", _any_hint), (newest, "hinted_version", _any_hint)),
        ROTTEN,
    ),
    Defect("plain backup", "a backup copies the folder as it is", ((backups, "backup", _plain_backup),), BACKUPS),
    # Clock, disk, garbage (points 8 and 9, and what held before)
    Defect("frozen clock", "an epoch believes any clock", ((ProcessingTime, "read", _believed),)),
    Defect("unsynced files", "content is not flushed", ((disk.Disk, "_flush", _nothing),), LIGHTS_OUT),
    Defect("unsynced names", "folders are not flushed", ((disk.Disk, "_flush_folder", _nothing),), LIGHTS_OUT),
    Defect("blind vacuum", "vacuum finds nothing", ((invariants, "find_garbage", lambda *_: []),)),
)
