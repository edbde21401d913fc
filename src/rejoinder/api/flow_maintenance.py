"""Maintenance of a flow's state from Python: `Flow.vacuum`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rejoinder.engine.maintenance.vacuum import OLDER_THAN_SECONDS, Vacuumed, vacuum

if TYPE_CHECKING:
    from rejoinder.api.sources.inbox import Inbox
    from rejoinder.engine.engine import Engine
    from rejoinder.exchange.streaming.query_runner import Runner

OLDER_THAN = timedelta(seconds=OLDER_THAN_SECONDS)


class Maintenance:
    """The part of a flow that maintains its state."""

    engine: Engine
    _inbox: Inbox
    _runner: Runner

    def vacuum(self, *, dry_run: bool = False, older_than: timedelta = OLDER_THAN) -> Vacuumed:
        """Delete unreferenced files and return what was deleted; with `dry_run`, only list them.

        The flow may be running, in this or another process: files that may belong to a running attempt are kept until
        they are older than `older_than`. Raises `StorageFailed` or `Corrupt`.
        """
        folder = self._runner.checkpoint.folder
        return vacuum(
            self.engine.store,
            dry_run=dry_run,
            older_than_seconds=older_than.total_seconds(),
            checkpoint=None if "://" in folder else folder,
            pending=self._inbox.base.removesuffix("/inbox"),
        )
