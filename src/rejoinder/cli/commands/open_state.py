"""Open a state directory without Spark, for queries and definitions in this process."""

from __future__ import annotations

from pathlib import Path

from rejoinder.engine.engine import HISTORY, Engine
from rejoinder.errors import NotCommitted
from rejoinder.state.executor import LocalExecutor
from rejoinder.store.commits.manifest import FOLDER
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore, open_store


def open_state(place: str, *, may_create: bool = False) -> Engine:
    """Return the engine of a state, with its parallelism and history. Raises `NotCommitted` if there is no state.

    `may_create`: return an empty engine instead; its first definition creates the state.
    """
    store = open_store(place)
    manifest = latest(store)
    if manifest is None and not may_create:
        raise NotCommitted(f"there is no state in `{place}`", hint=_hint(place))
    if manifest is None:
        return Engine(store, LocalExecutor(), buckets=1)
    history = max(1, manifest.epoch - manifest.extra.get("since", -HISTORY))
    return Engine(store, LocalExecutor(), buckets=manifest.spines["buckets"], history=history)


def refuse_missing(place: str, store: ObjectStore) -> None:
    """Raise `NotCommitted` if there is no state."""
    if latest(store) is None:
        raise NotCommitted(f"there is no state in `{place}`", hint=_hint(place))


def _hint(place: str) -> str:
    path = Path(place)
    near = [*path.glob(f"*/{FOLDER}"), *path.parent.glob(f"*/{FOLDER}"), *Path("state").glob(f"*/{FOLDER}")]
    states = list(dict.fromkeys(str(folder.parent) for folder in near))[:5]
    if states:
        return f"states nearby: {', '.join(states)}"
    return "`rejoinder run flow.sql` creates one in state/flow; so does a CREATE"
