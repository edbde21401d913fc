"""Publishes the manifests of one driver in order. Each is settled before the next one is sent.

Invariant: if the response to a commit was lost, the same bytes are sent again before any other manifest. So a driver
never takes its own commit for that of another driver, and never runs an epoch again that is committed already.
"""

from __future__ import annotations

from collections.abc import Callable

from rejoinder.errors import Corrupt, Fenced, RejoinderError, Unconfirmed
from rejoinder.host.entropy import token
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.lost_commits import mark_flow
from rejoinder.store.commits.manifest import Manifest, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore


class Publisher:
    """One driver's commits. `writer` is its identity, new for every driver."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.writer = token(8)
        self._is_marked = False
        self._open: tuple[Manifest, Callable[[], None]] | None = None

    def publish(self, manifest: Manifest, accept: Callable[[], None]) -> None:
        """Commit `manifest`, then call `accept`. After `Unconfirmed`, `settle` does both."""
        self.settle()
        if not self._is_marked and manifest.version:
            mark_flow(self.store, manifest, manifest.version - 1)
        self._is_marked = True
        self._open = (manifest, accept)
        try:
            commit(self.store, manifest)
        except Unconfirmed:
            raise
        except RejoinderError:
            self._open = None
            raise
        accept()
        self._open = None  # not before: after a Ctrl-C within `accept`, `settle` calls it again

    def settle(self) -> None:
        """Finish a commit whose response was lost. Raises `Unconfirmed` or `StorageFailed` if it is lost again."""
        if self._open is None:
            return
        manifest, accept = self._open
        try:
            commit(self.store, manifest)
        except (Fenced, Corrupt):
            self._open = None
            raise
        accept()
        self._open = None  # not before: after a Ctrl-C within `accept`, `settle` calls it again

    def is_open(self, epoch: int) -> bool:
        """Return whether the commit of an epoch was sent and is not settled."""
        return self._open is not None and self._open[0].epoch == epoch

    def check_fence(self, manifest: Manifest) -> None:
        """Raise `Fenced` if another driver has committed after `manifest`, our last one."""
        newest = max(versions(self.store), default=-1)
        if newest <= manifest.version and self.store.exists(name_of(manifest.version + 1)):
            newest = manifest.version + 1  # a listing of an object store may be stale
        if newest > manifest.version:
            raise Fenced(
                "another driver has taken over this state",
                detail=f"version {newest} is committed, and our last commit was version {manifest.version} "
                f"(epoch {manifest.epoch})",
                hint="run one driver per state; stop this one, or start it again once the other has ended",
            )
