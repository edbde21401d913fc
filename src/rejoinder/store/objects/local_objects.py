"""Objects as files below one folder of a local (or mounted) file system.

Invariants:
- `put` and `put_if_absent` fill a temporary file first and then rename or hard-link it, so a reader sees all or
  nothing, and SIGKILL at any point leaves nothing under the name;
- temporary files are in `.temporary`, which is not a valid name of an object;
- only the owner may read files and folders, and every access refuses a symbolic link below the root;
- nothing is flushed to the device unless `sync` is set: a killed process loses nothing, a power cut may.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa

from rejoinder.host.entropy import token
from rejoinder.host.private_files import LinkError, create_file, make_folder, refuse_links
from rejoinder.store.objects.object_store import Entry

_TEMPORARY = ".temporary"
_T = TypeVar("_T")


class Disk:
    """Files below `root`, which is created by the first write."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        self._root = root
        self._sync = sync

    def put(self, name: str, data: memoryview) -> None:
        path = self._path(name)
        with self._temporary(data) as temporary:
            self._in_folder(path, lambda: temporary.replace(path))
            self._flush_folder(path.parent)

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        path = self._path(name)
        with self._temporary(data) as temporary:
            try:
                self._in_folder(path, lambda: os.link(temporary, path))
            except FileExistsError:
                # NFS may link, lose the answer, and refuse its own retry. Then our file has a second link.
                return temporary.stat().st_nlink > 1
            except PermissionError as error:
                if error.errno == errno.EPERM:  # the answer of link(2) on a file system without hard links
                    raise OSError(errno.EOPNOTSUPP, error.strerror) from error
                raise
            self._flush_folder(path.parent)
            return True

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        path = self._path(name)
        file = self._in_folder(path, lambda: create_file(path))
        try:
            with file:
                for part in data:
                    file.write(part)
                self._flush(file)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        self._flush_folder(path.parent)

    def get(self, name: str) -> bytes:
        with _folders_are_missing_objects():
            return self._path(name).read_bytes()

    def map(self, name: str, size: int) -> pa.Buffer:
        self.size(name)  # raises for a folder, which Arrow would try to map
        return map_file(self._root / name)

    def size(self, name: str) -> int:
        with _folders_are_missing_objects():
            status = self._path(name).stat()
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(name)
            return status.st_size

    def entries(self, prefix: str) -> Iterator[Entry]:
        refuse_links(self._root, prefix)
        return self._walk(prefix, is_strict=True)

    def real_entries(self, prefix: str) -> Iterator[Entry]:
        try:
            refuse_links(self._root, prefix)
        except LinkError:
            return iter(())
        return self._walk(prefix, is_strict=False)

    def _walk(self, prefix: str, *, is_strict: bool) -> Iterator[Entry]:
        top = self._root / prefix if prefix else self._root
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != _TEMPORARY]
            links = {name for name in (*folders, *files) if os.path.islink(f"{folder}/{name}")}
            if links and is_strict:
                raise LinkError(f"{folder}/{min(links)}")
            for file in (name for name in files if name not in links):
                path = f"{folder}/{file}"
                with suppress(FileNotFoundError):  # deleted since the listing
                    status = os.stat(path)
                    yield Entry(path[len(str(self._root)) + 1 :], status.st_size, status.st_mtime)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._path(name).unlink(missing_ok=True)
        for folder in {(self._root / name).parent for name in names}:
            with suppress(OSError):  # the folder is not empty
                folder.rmdir()

    def drop_cached(self, name: str) -> None:
        pass

    def sweep(self, older_than_seconds: float) -> None:
        before = time.time() - older_than_seconds
        for path in (self._root / _TEMPORARY).glob("*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()

    @contextmanager
    def _temporary(self, data: memoryview) -> Iterator[Path]:
        path = self._root / _TEMPORARY / f"{os.getpid()}-{token(8)}"
        refuse_links(self._root, _TEMPORARY)
        file = self._in_folder(path, lambda: create_file(path))
        try:
            with file:
                file.write(data)
                self._flush(file)
            yield path
        finally:
            with suppress(OSError):
                path.unlink()

    def _path(self, name: str) -> Path:
        """Return the path of an object. Raises `LinkError` if it, or a folder between it and the root, is a link."""
        refuse_links(self._root, name)
        return self._root / name

    def _in_folder(self, path: Path, action: Callable[[], _T]) -> _T:
        """Run `action`; if the folder of `path` is missing, create it and run `action` again.

        An existing folder costs no check of its own.
        """
        try:
            return action()
        except FileNotFoundError:
            make_folder(path.parent, self._root)
            for folder in path.relative_to(self._root).parents:
                self._flush_folder(self._root / folder)
            return action()

    def _flush(self, file: BinaryIO) -> None:
        if self._sync:
            file.flush()
            os.fsync(file.fileno())

    def _flush_folder(self, folder: Path) -> None:
        if self._sync:
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def _folders_are_missing_objects() -> Iterator[None]:
    try:
        yield
    except (IsADirectoryError, NotADirectoryError) as error:
        raise FileNotFoundError(errno.ENOENT, "no such object") from error


def map_file(path: Path) -> pa.Buffer:
    """Memory-map an immutable file. The buffer outlives both the open file and its name."""
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()
