"""Remove the state of a first run that fails before its first epoch is committed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rejoinder.cli.terminal.screen import note
from rejoinder.engine.engine import Engine
from rejoinder.errors import Fenced, RejoinderError
from rejoinder.store.commits.newest_manifest import latest


@contextmanager
def removed_on_failure(before: Engine) -> Iterator[None]:
    """Remove the local state that the body creates, if it raises before an epoch is committed.

    `before` is the engine before the run. If there was a state already, or it is not on a local disk, nothing is
    removed; definitions without rows can be changed anyway. Files that were in the folder before stay.
    """
    if before.version.manifest is not None or not before.store.is_local:
        yield
        return
    folder = Path(before.store.path)
    existing = set(os.listdir(folder)) if folder.is_dir() else set()
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        yield
    except BaseException as error:
        # A KeyboardInterrupt is not a failure. A fenced driver must keep the files of the driver that took over.
        if isinstance(error, Exception) and not isinstance(error, Fenced) and _may_remove(before):
            _remove(folder, existing, missing)
        raise


def _may_remove(before: Engine) -> bool:
    """Return whether only definitions were committed."""
    try:
        newest = latest(before.store)
    except RejoinderError:
        return False
    return newest is None or newest.epoch < 0


def _remove(folder: Path, existing: set[str], missing: list[Path]) -> None:
    if not folder.is_dir():
        return
    for name in set(os.listdir(folder)) - existing:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    for parent in missing:
        with contextlib.suppress(OSError):  # another process has put files there
            parent.rmdir()
    if not folder.exists():
        note(f"no epoch was committed: {folder} was removed")
