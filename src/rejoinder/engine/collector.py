"""Deletes files of old versions after a commit. A failure becomes a notice; the next commit tries again."""

from __future__ import annotations

from rejoinder.engine.maintenance.state_deletion import Committed, refuse_deleted
from rejoinder.engine.version import named_files
from rejoinder.errors import StateError
from rejoinder.store.commits import garbage

KEEP_VERSIONS = 8


class Collector:
    """The garbage collector of one driver. `notice` says why the last call failed; None if it succeeded."""

    def __init__(self) -> None:
        self.notice: str | None = None
        self._named: garbage.Seen = {}

    def collect(self, owner: Committed) -> None:
        """Delete files that only old versions reference. Raises `StateDeleted` if no commit is left."""
        try:
            garbage.collect(owner.store, KEEP_VERSIONS, named_files, known=owner.version.manifest, seen=self._named)
        except StateError as failure:
            refuse_deleted(owner, failure)
            reason = failure.fact if failure.detail is None else f"{failure.fact} ({failure.detail})"
            self.notice = f"files of old versions could not be deleted; the next commit tries again: {reason}"
        else:
            self.notice = None
