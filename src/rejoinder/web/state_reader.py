"""Reads a state for display: follows its commits, plans once per definition, and never writes.

It opens the store itself and shares nothing with a flow that runs, so it works for a stopped flow too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from rejoinder.engine.engine import HISTORY, Engine
from rejoinder.engine.version import Version
from rejoinder.errors import Corrupt, NotCommitted, StateDeleted
from rejoinder.ir.catalog import Catalog
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.planning import Plan
from rejoinder.planner import plan
from rejoinder.state.executor import LocalExecutor
from rejoinder.store.commits.manifest import Manifest, find
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore

T = TypeVar("T")
TURNS = 5


class StateReader:
    """A state that is only read. Methods may be called from several threads; they wait for each other."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._lock = threading.RLock()
        self._engine: Engine | None = None

    def refresh(self) -> int:
        """Adopt the newest commit, and return its version. Raises a `StateError`: no state, damaged, newer format."""
        with self._lock:
            known = None if self._engine is None else self._engine.version.manifest
            manifest = latest(self.store, known)
            if manifest is None:
                raise self._missing()
            if self._engine is None:
                history = max(1, manifest.epoch - manifest.extra.get("since", -HISTORY))
                buckets = manifest.spines["buckets"]
                self._engine = Engine(self.store, LocalExecutor(), buckets=buckets, history=history)
            elif known is None or manifest.version != known.version:
                self._adopt(self._engine, manifest)
            return manifest.version

    def read(self, answer: Callable[[Engine], T]) -> T:
        """Answer from the newest commit, or from a later one if a running flow has deleted its files meanwhile."""
        with self._lock:
            version = self.refresh()
            for _ in range(TURNS):
                assert self._engine is not None, "refresh opens it"
                try:
                    return answer(self._engine)
                except Corrupt:
                    newer = self.refresh()
                    if newer == version:
                        raise
                    version = newer
            raise NotCommitted(
                "the state changes faster than it can be read",
                detail=f"{TURNS} commits were collected before they were read",
                hint="try again, or run the flow with a longer --interval",
            )

    def oldest_retained(self) -> Manifest | None:
        """Return the oldest retained manifest, to compare with; None if only the newest one is retained."""
        with self._lock:
            newest = None if self._engine is None else self._engine.version.manifest
            if newest is None or len(newest.epochs) < 2:
                return None
            return next((old for *_, version in newest.epochs[:-1] if (old := find(self.store, version))), None)

    def _missing(self) -> NotCommitted | StateDeleted:
        if self._engine is not None:
            return StateDeleted(
                "the state was deleted while it was shown",
                detail=f"there is no manifest in {self.store.url}",
                hint="restore it from a backup, or stop the page",
            )
        return NotCommitted(f"there is no state in `{self.store.url}`", hint="`rejoinder run flow.sql` creates one")

    def _adopt(self, engine: Engine, manifest: Manifest) -> None:
        before = engine.version

        def planned(catalog: Catalog, statistics: Mapping[str, Statistics]) -> Plan:
            is_same = catalog == before.catalog and statistics == before.plan.program.statistics
            return before.plan if is_same else plan(catalog, statistics)

        version = Version.read(self.store, manifest, engine.buckets, planned)
        engine.time.wall = manifest.extra.get("clock")
        engine.version = replace(version, watermarks=version.watermarks.with_persisted(version.plan.persisted))
