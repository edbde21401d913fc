"""Follow the changes of a view from any process: read what later manifests committed since the last poll.

A subscription needs only the store. It writes nothing, so any number of them can follow a running flow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rejoinder.errors import Corrupt, InvalidSql, NotCommitted, StateDeleted, UnknownName, Unsupported
from rejoinder.formats.text.plain_rows import Row
from rejoinder.ir.catalog import Catalog, Source, View
from rejoinder.ir.expressions.expression import Expression, conjunction, renamed
from rejoinder.ir.logical import Filter, Scan
from rejoinder.kernels.arrow.columns import HASH, without
from rejoinder.kernels.duckdb.evaluate import select_rows
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.bind_query import bind
from rejoinder.state.reading.changelog_reader import check_epoch, from_start, read_changes, time_zone, timeline_of
from rejoinder.state.reading.renderings import Changes, epochs_of
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore

POLL_SECONDS = 0.5
EPOCHS_PER_POLL = 100
_TRIES = 5


@dataclass(frozen=True)
class ViewChanges:
    """The net changes of a view in one epoch, retractions first, each with the number of copies."""

    epoch: int
    time: datetime | None
    """When the epoch was committed, in UTC."""
    rows: list[tuple[Row, int]]


class Subscription:
    """Follows a view. `poll` returns what is committed; iteration waits for more and never ends by itself.

    `start` is the first epoch to show, `as_of` the epoch whose content is shown first; without either, only changes
    after the last committed epoch follow. `where` is a condition on the columns of the view. Raises `UnknownName`,
    `NotCommitted` for an epoch outside the history, or a `PlanningError` for the condition.
    """

    def __init__(
        self,
        store: ObjectStore,
        view: str,
        *,
        where: str | None = None,
        start: int | None = None,
        as_of: int | None = None,
    ) -> None:
        if start is not None and as_of is not None:
            raise InvalidSql("a subscription has one start", detail=f"FROM {start} AS OF {as_of}", hint="remove one")
        self._store = store
        self._manifest = manifest = self._newest(None)
        self._view = _view_of(manifest, view)
        self._created = manifest.extra["created"].get(self._view.name)
        self._where = None if where is None else condition_on(self._view, where, time_zone(manifest))
        self._after = manifest.epoch
        self._content = as_of
        if as_of is not None:
            check_epoch(manifest, self._view.name, as_of)
            self._after = as_of
        elif start is not None:
            if start <= manifest.epoch:
                check_epoch(manifest, self._view.name, start)
            self._after = start - 1

    def __repr__(self) -> str:
        return f"<Subscription to {self._view.name}, after epoch {self._after}>"

    @property
    def view(self) -> str:
        """The name of the view."""
        return self._view.name

    @property
    def columns(self) -> list[str]:
        """The columns of the view."""
        return list(self._view.schema.names)

    @property
    def epoch(self) -> int:
        """The last epoch that was read."""
        return self._after

    def poll(self) -> list[ViewChanges]:
        """Return the next epochs in which rows of interest changed; none if there are none yet. Never waits.

        Raises `UnknownName` if the view was dropped, `NotCommitted` if its history has passed the last poll, and
        `StateDeleted` if the state was deleted.
        """
        result: list[ViewChanges] = []
        while not result and self._has_more():
            result = self._next()
        return result

    def __iter__(self) -> Iterator[ViewChanges]:
        while True:
            changes = self.poll()
            yield from changes
            if not changes:
                time.sleep(POLL_SECONDS)

    def _has_more(self) -> bool:
        self._manifest = self._newest(self._manifest)
        self._refuse_dropped(self._manifest)
        return self._content is not None or self._manifest.epoch > self._after

    def _next(self) -> list[ViewChanges]:
        """Read at most 100 epochs; from a newer manifest if the flow deletes compacted files during the read."""
        for _ in range(_TRIES - 1):
            manifest = self._manifest
            try:
                return self._read(manifest)
            except Corrupt:
                self._manifest = self._newest(manifest)
                if self._manifest.version == manifest.version:
                    raise
        return self._read(self._manifest)

    def _read(self, manifest: Manifest) -> list[ViewChanges]:
        name, schema = self._view.name, self._view.schema
        until = min(manifest.epoch, self._after + EPOCHS_PER_POLL)
        if self._content is not None:
            check_epoch(manifest, name, self._content)
        elif self._after < manifest.extra["since"]:
            raise NotCommitted(
                f"the changes of `{name}` after epoch {self._after} are no longer kept",
                detail=f"history starts at epoch {manifest.extra['since']}",
                hint="subscribe again, and run the flow with a longer history",
            )
        after = self._after if self._content is None else -2
        changes = read_changes(self._store, manifest, name, schema, after=after, until=until)
        changes = from_start(changes, self._content)
        rows = changes if self._where is None else select_rows(changes, self._where)
        times = timeline_of(manifest).times(self._store)
        found = Changes(without(rows, [HASH]), schema, times, time_zone=time_zone(manifest))
        result = [ViewChanges(*entry) for entry in epochs_of(found)]
        self._after, self._content = until, None
        return result

    def _newest(self, known: Manifest | None) -> Manifest:
        manifest = latest(self._store, known)
        if manifest is not None:
            return manifest
        if known is not None:
            raise StateDeleted(
                "the state was deleted while it was followed",
                detail=f"epoch {known.epoch} was committed, and no commit is left in {self._store.url}",
                hint="start the flow again, or restore the state from a backup",
            )
        raise NotCommitted("nothing is committed yet", detail=self._store.url, hint="run the flow first")

    def _refuse_dropped(self, manifest: Manifest) -> None:
        created = manifest.extra["created"].get(self._view.name)
        if self._view.name not in manifest.spines["changelogs"]:
            raise UnknownName(
                f"view `{self._view.name}` was dropped while it was followed",
                detail=f"at epoch {manifest.epoch}; followed up to epoch {self._after}",
                hint="follow another view",
            )
        if created != self._created:
            raise UnknownName(
                f"view `{self._view.name}` was replaced while it was followed",
                detail=f"at epoch {created}; followed up to epoch {self._after}",
                hint="subscribe again to follow the new definition",
            )


def condition_on(relation: Source | View, where: str, time_zone: str) -> Expression:
    """Return a condition on the columns of a relation, in the zone of its flow.

    Raises a `PlanningError`; a subquery is `Unsupported`.
    """
    source = Source(relation.name, "changelog", relation.schema)
    query = bind(f"SELECT * FROM `{relation.name}` WHERE {where}", Catalog((source,), time_zone=time_zone))
    root = query.root
    if not (isinstance(root, Filter) and isinstance(root.input, Scan)):
        raise Unsupported(
            "this condition is not supported here",
            detail=where,
            hint=f"compare columns of `{relation.name}` with values; for more, CREATE VIEW with the condition",
        )
    condition = conjunction([predicate.expression for predicate in root.predicates])
    assert condition is not None, "a filter has predicates"
    return renamed(condition, dict(root.input.columns))


def _view_of(manifest: Manifest, name: str) -> View | Source:
    catalog = Catalog.from_json(manifest.catalog)
    relation = readable(catalog, name)
    if relation.name in manifest.spines["changelogs"]:
        return relation
    views = [view.name for view in catalog.views]
    raise UnknownName(
        f"`{relation.name}` is a source: only a view can be followed",
        detail=f"views: {', '.join(views) or 'none'}",
        hint=f"CREATE VIEW … AS SELECT * FROM {relation.name}, and follow that",
    )
