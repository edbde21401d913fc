"""Checks of a backup target: it must be separate from the state, and have no newer backup or other files."""

from __future__ import annotations

import re
from pathlib import Path

from rejoinder.errors import DefinitionConflict
from rejoinder.store.commits.manifest import Manifest, find, versions
from rejoinder.store.objects.object_store import ObjectStore

INBOX = "inbox"
CHECKPOINT = "spark"


def check_place(source: ObjectStore, target: ObjectStore) -> None:
    """Raise `DefinitionConflict` if the target is, contains, or is inside the state. Writes nothing."""
    is_inside, is_around = _is_within(target, source), _is_within(source, target)
    if is_inside or is_around:
        where = (
            "the state itself" if is_inside and is_around else "inside the state" if is_inside else "around the state"
        )
        raise DefinitionConflict(
            f"{target.url} is {where}",
            detail=f"the state is {source.url}",
            hint="give another folder or URL, such as backups/shop",
        )


def _is_within(inner: ObjectStore, outer: ObjectStore) -> bool:
    """Return whether a store equals another one or is inside its folder, however their paths are written."""
    if inner.is_local != outer.is_local:
        return False
    if not inner.is_local:
        url, around = (re.sub("/+", "/", store.url.rstrip("/")) for store in (inner, outer))
        return url == around or (url.startswith(f"{around}/") and not url.startswith("memory:"))
    folder, place = Path(outer.path).resolve(), Path(inner.path).resolve()
    folders = (place, *place.parents)
    # With a mount, or a file system that ignores case, a folder has several names.
    return folder in folders or (folder.exists() and any(path.exists() and path.samefile(folder) for path in folders))


def check_content(target: ObjectStore, manifest: Manifest) -> None:
    """Raise `DefinitionConflict` unless the target is empty, or an earlier or interrupted backup of the flow."""
    stored = versions(target)
    known = find(target, stored[-1]) if stored else None
    is_other = known is not None and known.flow_id != manifest.flow_id
    if is_other or (known is None and any(name != "flow.json" for name in target.list()) and not _is_begun(target)):
        raise DefinitionConflict(
            f"{target.url} is neither empty nor a backup of this flow",
            detail="it holds another flow" if is_other else f"it holds `{target.list()[0]}`",
            hint="give an empty folder, or one that an earlier backup of this flow made",
        )
    if known is None or known.version < manifest.version or known.checksum == manifest.checksum:
        return
    is_newer = known.version > manifest.version
    raise DefinitionConflict(
        f"{target.url} holds a {'newer backup' if is_newer else 'backup of another history'} of this flow",
        detail=f"it has version {known.version} (epoch {known.epoch}), "
        f"and the state is at version {manifest.version} (epoch {manifest.epoch})",
        hint="give an empty folder; the state may be an older copy, which was restored or moved",
    )


def _is_begun(target: ObjectStore) -> bool:
    """Return whether all objects may be from an interrupted backup."""
    ours = ("runs/", "epochs/", "positions/", "sinks/", f"{INBOX}/", f"{CHECKPOINT}/")
    return all(name.startswith(ours) for name in target.list())
