"""An LRU cache of remote objects on this host: memory-mapped copies, of a bounded number of bytes.

Invariants:
- objects are immutable and their names are unique, so a copy of the right size is the object. A reader whose checksum
  fails calls `drop` and fetches the object again;
- a copy is written under a temporary name and renamed, so all processes of the host can share a folder;
- a lock per name lets one process download while the others wait for its copy; the kernel releases the locks of a
  process that ends;
- dropping a copy unlinks it: a process that has it mapped keeps it.

A process measures the folder whenever it has added 1/16 of the limit. So the folder can exceed the limit by that much
per process, and by the copies that are mapped.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from rejoinder.host.entropy import token
from rejoinder.host.private_files import create_file, lock_file, make_folder
from rejoinder.store.objects.local_objects import map_file
from rejoinder.store.objects.storage_failure import NoObjectError, RefusedError

_LOCKS = 64
_TEMPORARY = ".temporary"
_STALE_SECONDS = 3600


def default_folder() -> str:
    """Return this user's cache folder on this host. Raises `RefusedError` if it is not this user's own."""
    folder = Path(tempfile.gettempdir()) / f"rejoinder-cache-{os.getuid()}"
    with suppress(FileNotFoundError):
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            reason = f"the cache folder {folder} is a link, or belongs to another user"
            raise RefusedError(errno.EACCES, reason, "remove it, or set `cache_dir`")
    return str(folder)


class Cache:
    """Copies of the objects of one store, below a folder that many stores and processes may share."""

    def __init__(self, root: str, store: str, limit: int) -> None:
        self._root = Path(root)
        self._folder = self._root / store
        self._limit = limit
        self._unmeasured = limit  # so that the first copy of this process triggers a measurement

    def map(self, name: str, size: int, fetch: Callable[[BinaryIO], None]) -> pa.Buffer:
        """Return the object; `fetch` downloads it if there is no copy of that size.

        The buffer has another size if the remote object has: such a copy is not kept.
        """
        path = self._folder / name
        with self._explained():
            buffer = self._mapped(path, size)
            if buffer is None:
                with self._locked(f"{zlib.crc32(str(path).encode()) % _LOCKS}"):
                    buffer = self._mapped(path, size)  # another process may have fetched it while we waited
                    if buffer is None:
                        buffer = self._download(path, size, fetch)
                self._measure(size)
            return buffer

    def add(self, name: str, data: Sequence[memoryview]) -> None:
        """Keep a copy of an object that was just written. A failure is ignored: the object can be fetched."""
        path = self._folder / name
        with suppress(OSError):
            with self._temporary() as temporary:
                with create_file(temporary) as file:
                    for part in data:
                        file.write(part)
                self._keep(temporary, path)
            self._measure(sum(map(len, data)))

    def drop(self, name: str) -> None:
        """Drop the copy, if there is one."""
        with suppress(OSError):
            (self._folder / name).unlink()

    def evict(self) -> None:
        """Drop least recently used copies until 90 % of the limit are left, and files that killed writers left."""
        if not self._root.is_dir():
            return
        with self._locked("evict"):
            copies, total, now = [], 0, time.time()
            for folder, folders, files in os.walk(self._root):
                if ".locks" in folders:
                    folders.remove(".locks")
                for file in files:
                    path = Path(folder) / file
                    with suppress(OSError):
                        status = path.stat()
                        if path.parent.name != _TEMPORARY:
                            copies.append((status.st_mtime_ns, status.st_size, path))
                            total += status.st_size
                        elif now - status.st_mtime > _STALE_SECONDS:
                            path.unlink()
            if total <= self._limit:
                return
            for _, size, path in sorted(copies):
                with suppress(OSError):
                    path.unlink()
                total -= size
                if total <= self._limit * 0.9:
                    return

    def _mapped(self, path: Path, size: int) -> pa.Buffer | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            buffer = map_file(path)
            if buffer.size == size:
                os.utime(path)  # recently used
                return buffer
        return None

    def _download(self, path: Path, size: int, fetch: Callable[[BinaryIO], None]) -> pa.Buffer:
        with self._temporary() as temporary:
            with create_file(temporary) as file:
                fetch(file)
            buffer = map_file(temporary)
            if buffer.size == size:
                self._keep(temporary, path)
            return buffer

    def _keep(self, temporary: Path, path: Path) -> None:
        make_folder(path.parent, self._root)
        temporary.replace(path)

    def _measure(self, added: int) -> None:
        self._unmeasured += added
        if self._unmeasured >= self._limit // 16:
            self._unmeasured = 0
            self.evict()

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        self._make(self._root / _TEMPORARY)
        path = self._root / _TEMPORARY / f"{os.getpid()}-{token(8)}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, lock: str) -> Iterator[None]:
        self._make(self._root / ".locks")
        with lock_file(self._root / ".locks" / lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        make_folder(folder, self._root)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Name the cache folder in an `OSError`: the disk of the cache fails, not the store."""
        try:
            yield
        except (NoObjectError, RefusedError):
            raise
        except OSError as error:
            reason = f"{error.strerror or error} in the cache folder {self._root}"
            hint = "free space there, or set another `cache_dir` or a smaller `cache_bytes`"
            raise RefusedError(error.errno or errno.EIO, reason, hint) from error
