"""What mutants are made of: functions without a fix (`edited`), and older designs where the fix was a new one."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.engine.maintenance.backup import Backup
from rejoinder.engine.publisher import Publisher
from rejoinder.engine.time.processing_time import ProcessingTime, Reading
from rejoinder.errors import NotCommitted
from rejoinder.state import sink_progress
from rejoinder.state.positions import Positions
from rejoinder.store.commits import commit, lost_commits, newest_manifest
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.checked_objects import CheckedRef
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs import run
from rejoinder.testing.file_sources import new_files


def edited(function: Any, *changes: tuple[str, str]) -> Callable[..., Any]:
    """A function with parts of its source replaced: pairs of what is there and what takes its place."""
    text = textwrap.dedent(inspect.getsource(function))
    for old, new in changes:
        assert text.count(old) == 1, f"{function.__name__} has changed: look for its fix again"
        text = text.replace(old, new)
    made: dict[str, Any] = {}
    source = "from __future__ import annotations\n" + text
    exec(compile(source, f"<{function.__name__} without a fix>", "exec"), function.__globals__, made)  # noqa: S102
    return made[function.__name__]  # type: ignore[no-any-return]


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing, and find nothing."""


@contextmanager
def unnamed(_: Any) -> Any:
    yield


# -- designs of before ------------------------------------------------------------------------------------------------


def forgetful_publish(self: Publisher, made: Manifest, accept: Any) -> None:
    """Commit, and drop the manifest whatever the result."""
    commit.commit(self.store, made)
    accept()


def loose_files(engine: Engine) -> Any:
    """Find new files by a log beside the manifest that is written before the commit, as Spark's was."""
    data = engine.store.find("sinks/offsets")
    known = Positions() if data is None else Positions.from_json(json.loads(data))
    version = replace(engine.version, positions=known)
    there = SimpleNamespace(version=version, dataflow=version.dataflow, store=engine.store, epoch=version.epoch)
    positions, splits = new_files(there)  # type: ignore[arg-type]
    engine.store.put("sinks/offsets", json.dumps(positions.to_json()).encode())
    return engine.version.positions, splits


def loose_position_files(_: Any) -> set[str]:
    return {"sinks/offsets"}


def plain_note(store: ObjectStore, made: Manifest, progress: sink_progress.Progress) -> None:
    """Write progress to one object that belongs to no manifest, without a checksum."""
    store.put("sinks/progress", json.dumps(sink_progress.to_json(progress)).encode())


def plain_recorded(store: ObjectStore, made: Manifest) -> dict[str, sink_progress.Delivered]:
    data = store.find("sinks/progress")
    return {} if data is None else sink_progress.from_json(json.loads(data))


def plain_backup(source: ObjectStore, target: ObjectStore) -> Backup:
    """Copy the folder as it is, file by file."""
    made = newest_manifest.latest(source)
    if made is None:
        raise NotCommitted("there is no state")
    for name in source.list():
        data = source.find(name)
        if data is not None:
            target.put(name, data)
    return Backup(made.epoch, 0, 0, 0)


def unchecked(store: ObjectStore, ref: CheckedRef, what: str) -> bytes:
    return store.get(ref.name)


def unverified(store: ObjectStore, ref: run.RunRef) -> Any:
    """Open a run without a look at its checksum."""
    import pyarrow as pa

    return pa.ipc.open_file(store.map(ref.name, ref.size)).read_all()


def any_hint(store: ObjectStore) -> int | None:
    text = (store.find(lost_commits.HINT) or b"").partition(b" ")[0]
    return int(text) if text.isdigit() and len(text) <= 18 else None


def believed(self: ProcessingTime, latest: int, at: int | None = None) -> Reading:
    wall = self.clock() if at is None else at
    return Reading(max(wall, latest), wall)


def unclaimed(self: Engine) -> bool:
    self.check_fence()
    return False
