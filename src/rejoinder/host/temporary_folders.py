"""Temporary folders that belong to one process and are removed with it, even if it is killed.

Invariants:
- a folder contains a lock file that its process keeps locked. The kernel releases the lock when the process ends, for
  whatever reason; so a process that gets the lock knows that the owner is dead, and removes the folder;
- the lock is taken before the file gets its name, so the lock file of a living owner is never free. A folder without a
  lock file is being created, unless it is old;
- only folders of this user with names of ours are considered, and links are not followed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from rejoinder.host.private_files import lock_file

_LOCK = ".owner"
_NAME = re.compile(r"rejoinder-(spool|waiting|query|warm-up)-\w+")
_UNFINISHED_SECONDS = 3600


def own_folder(owner: object, kind: str) -> str:
    """Create a folder that is removed with `owner`, or with this process; remove folders of killed processes.

    `kind` is `spool`, `waiting`, `query` or `warm-up`.
    """
    folder, lock = _create(kind)
    weakref.finalize(owner, _remove_own, folder, lock, os.getpid())
    return folder


@contextmanager
def short_lived_folder(kind: str) -> Iterator[str]:
    """Create a folder and remove it at the end; if this process is killed, the next one on this host removes it."""
    folder, lock = _create(kind)
    try:
        yield folder
    finally:
        _remove_own(folder, lock, os.getpid())


def _create(kind: str) -> tuple[str, TextIO]:
    """Create a folder with a locked lock file; remove folders of killed processes."""
    for abandoned in abandoned_folders():
        remove_abandoned(abandoned)
    folder = tempfile.mkdtemp(prefix=f"rejoinder-{kind}-")
    lock = lock_file(f"{folder}/{_LOCK}.new")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(f"{folder}/{_LOCK}.new", f"{folder}/{_LOCK}")
    return folder, lock


def abandoned_folders() -> list[str]:
    """Return the folders of processes that ended without removing them."""
    base = tempfile.gettempdir()
    paths = [f"{base}/{name}" for name in sorted(os.listdir(base)) if _NAME.fullmatch(name)]
    return [path for path in paths if _is_abandoned(path)]


def remove_abandoned(folder: str) -> None:
    """Remove a folder that `abandoned_folders` returned, unless another process is removing it."""
    with _locked(folder) as is_locked:
        if is_locked:
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: str) -> bool:
    with suppress(OSError):
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            return False
        with _locked(folder) as is_locked:
            return is_locked
    return False


@contextmanager
def _locked(folder: str) -> Iterator[bool]:
    """Hold the lock of a folder; yields False if its owner holds it. Without a lock file, its age decides."""
    try:
        file = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield os.path.isdir(folder) and os.lstat(folder).st_mtime < time.time() - _UNFINISHED_SECONDS
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_locked = True
    except BlockingIOError:
        is_locked = False
    try:
        yield is_locked
    finally:
        os.close(file)


def _remove_own(folder: str, lock: TextIO, process: int) -> None:
    if os.getpid() == process:  # a forked child must not remove the folder of its parent
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
