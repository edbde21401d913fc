"""Read views from their changelog: the rows at an epoch, and the changes between epochs.

Readers need only the store and a manifest. They run in any process, on slices of the hash range, and net the changes
that different buckets wrote for the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import numpy as np
import pyarrow as pa

from rejoinder.errors import InvalidSql, NotCommitted, UnknownName, near_misses
from rejoinder.kernels.arrow.columns import DIFF, EPOCH, HASH, diffs, numbers, replaced, take, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.sorting import LAST_HASH
from rejoinder.kernels.zones.zone_offsets import UTC
from rejoinder.state.timeline import Timeline
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.net_rows import changes_in, net_rows
from rejoinder.store.runs.run import RunRef
from rejoinder.store.runs.spine import Spine

WHOLE = (0, LAST_HASH)


def changelog_refs(manifest: Manifest, view: str) -> list[RunRef]:
    """Return the runs of a view's changelog. Raises `UnknownName`."""
    changelogs = manifest.spines["changelogs"]
    if view not in changelogs:
        known = list(changelogs)
        raise UnknownName(
            f"there is no view `{view}` to read",
            detail=f"views: {', '.join(known) or 'none'}",
            hint=near_misses(view, known) or "CREATE VIEW it first",
        )
    return [ref for part in changelogs[view] for ref in Spine.from_json(part).refs]


def check_epoch(manifest: Manifest, view: str, epoch: int) -> None:
    """Raise `NotCommitted` if an epoch is not committed yet, or no longer in the history of a view."""
    since, created = manifest.extra["since"], manifest.extra["created"].get(view, -1)
    if epoch > manifest.epoch:
        raise NotCommitted(
            f"epoch {epoch} is not committed yet",
            detail=f"the last one is {manifest.epoch}",
            hint=f"epochs {max(0, since, created)} to {manifest.epoch} can be read",
        )
    if epoch < max(since, created):
        raise NotCommitted(
            f"`{view}` cannot be read as of epoch {epoch}",
            detail=f"its history starts at epoch {max(since, created)}",
            hint="keep more epochs with history=… when the flow is opened",
        )


def history_start(manifest: Manifest, view: str) -> int | None:
    """Return the epoch at which the history of a view starts; None if all its changes are kept."""
    since: int = manifest.extra["since"]
    return since if since > max(0, manifest.extra["created"].get(view, -1)) else None


def history_note(names: Sequence[str], start: int) -> str:
    """Return the note for a rendering that begins with the content of views at an epoch."""
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"the history of {listed} starts at epoch {start}: the first rows are the content at that epoch; keep more "
        "epochs with history=… when the flow is opened"
    )


def from_start(changes: pa.Table, start: int | None) -> pa.Table:
    """Combine the changes up to `start` into the content at that epoch: some of them may be compacted already."""
    if start is None:
        return changes
    return consolidate(replaced(changes, EPOCH, np.maximum(numbers(changes, EPOCH), start)))


def read_table(
    store: ObjectStore,
    manifest: Manifest,
    view: str,
    schema: pa.Schema,
    *,
    as_of: int | None = None,
    hashes: tuple[int, int] = WHOLE,
) -> pa.Table:
    """Return the rows of a view at an epoch, within a range of row hashes. `__diff` is the number of copies."""
    epoch = manifest.epoch if as_of is None else as_of
    if as_of is not None:
        check_epoch(manifest, view, as_of)
    refs = [ref for ref in changelog_refs(manifest, view) if ref.epochs[0] <= epoch]
    return net_rows(store, refs, schema, after=-2, until=epoch, hashes=hashes)


def read_changes(
    store: ObjectStore,
    manifest: Manifest,
    view: str,
    schema: pa.Schema,
    *,
    after: int,
    until: int,
    hashes: tuple[int, int] = WHOLE,
) -> pa.Table:
    """Return the net changes of a view in the epochs after `after` up to `until`, with `__epoch` and `__diff`."""
    refs = [ref for ref in changelog_refs(manifest, view) if ref.epochs[0] <= until and ref.epochs[1] > after]
    return consolidate(changes_in(store, refs, schema, after, until, hashes))


def expanded(table: pa.Table) -> pa.Table:
    """Repeat each row by its number of copies, and remove reserved columns."""
    counts = diffs(table)
    rows = without(table, [DIFF, HASH, EPOCH])
    if bool(np.all(counts == 1)):
        return rows
    return take(rows, np.repeat(np.arange(len(counts)), np.maximum(counts, 0)))


def epoch_of(store: ObjectStore, manifest: Manifest, as_of: int | datetime | None) -> int:
    """Return the epoch of `as_of`: an epoch, the last epoch committed at a time, or the last epoch for None."""
    if as_of is None:
        return manifest.epoch
    if isinstance(as_of, datetime):
        return timeline_of(manifest).epoch_at(store, milliseconds(as_of))
    if isinstance(as_of, int):
        return as_of
    raise InvalidSql(f"`as_of` is {as_of!r}", hint="give the number of an epoch, or a datetime")


def milliseconds(time: datetime) -> int:
    """Convert a time to milliseconds since 1970. A time without a zone is in UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    return round(aware.timestamp() * 1000)


def time_zone(manifest: Manifest) -> str:
    """Return the zone of the flow, in which its TIMESTAMPs are shown."""
    return str(manifest.catalog.get("time_zone", UTC))


def timeline_of(manifest: Manifest) -> Timeline:
    """Return the commit times of a manifest's history."""
    return Timeline.from_json(manifest.extra["timeline"])
