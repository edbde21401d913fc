"""Deletes files of old versions after a commit. A failure is a notice: the commit stands, the next one tries again."""

from __future__ import annotations

from rejoinder.engine.content import named_files
from rejoinder.engine.maintenance.state_deletion import Committed, refuse_deleted
from rejoinder.errors import StateError
from rejoinder.store.commits import garbage

KEEP_VERSIONS = 8


class Collector:
    """Collects for one driver. `notice` says why the last call failed; None if it did not."""

    def __init__(self) -> None:
        self.notice: str | None = None
        self._named: garbage.Seen = {}

    def collect(self, owner: Committed) -> None:
        """Delete what only old versions name. Raises `StateDeleted` if no commit is left, and nothing else of ours."""
        try:
            garbage.collect(owner.store, KEEP_VERSIONS, named_files, known=owner.manifest, seen=self._named)
        except StateError as failure:
            refuse_deleted(owner, failure)
            reason = failure.fact if failure.detail is None else f"{failure.fact} ({failure.detail})"
            self.notice = f"files of old versions could not be deleted; the next commit tries again: {reason}"
        else:
            self.notice = None
