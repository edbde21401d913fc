"""Check that a state folder is writable before Spark starts."""

from __future__ import annotations

import os
from pathlib import Path

from rejoinder.errors import StorageFailed
from rejoinder.store.objects.object_store import ObjectStore


def check_writable(store: ObjectStore) -> None:
    """Raise `StorageFailed` if the folder of a local state, or its nearest existing parent, is not writable."""
    if not store.is_local:
        return
    folder = Path(store.path)
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not nearest.is_dir():
        raise StorageFailed(
            f"the state cannot be kept in `{folder}`: `{nearest}` is not a folder",
            hint="name a folder with --state, or remove the file",
        )
    if not _may_write(nearest):
        raise StorageFailed(
            f"the state cannot be kept in `{folder}`: `{nearest}` is not writable",
            hint="check the owner and the permissions of the folder, or name another one with --state",
        )


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)
