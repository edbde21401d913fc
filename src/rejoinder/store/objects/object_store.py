"""Named immutable objects on local disk, in memory, or on S3, GCS and Azure.

Invariant: a name either holds the whole of what one writer gave, or nothing. `put_if_absent` lets exactly one
writer have a name, on every backend; it is what a commit rests on. The only exception is `write`: on local disk a
killed `write` leaves a short file under its name. Its name is new and is named by nobody until it has returned,
so nobody reads it, and `map` checks the size.

An `ObjectStore` travels to other processes as its URL and options, and opens its backend where it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, TypeAlias, runtime_checkable
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from rejoinder import errors
from rejoinder.store.objects.storage_failure import storage_failed

Bytes: TypeAlias = "bytes | bytearray | memoryview | pa.Buffer"
Option: TypeAlias = "str | int | bool"
Names: TypeAlias = "list[str]"
Entries: TypeAlias = "list[Entry]"

CLOCK = "clock"
"""An empty object that a store is made to date, to know its time."""
_SEGMENT = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199}")
_LONGEST = 900
_REMOTE = ("cache_dir", "cache_bytes", "retry_seconds", "endpoint", "allow_http")
_OPTIONS = {
    "file": ("sync",),
    "memory": (),
    "s3": (*_REMOTE, "region", "key", "secret", "token"),
    "gs": (*_REMOTE, "service_account"),
    "az": (*_REMOTE, "account", "key"),
}


@dataclass(frozen=True)
class Entry:
    """One stored object: its name, its size, and when it was written (seconds since 1970, by the store's clock)."""

    name: str
    size: int
    modified: float


class Backend(Protocol):
    """What a kind of storage must do. It may raise `OSError`, `FileNotFoundError` for a missing name among them."""

    def put(self, name: str, data: memoryview) -> None: ...
    def put_if_absent(self, name: str, data: memoryview) -> bool: ...
    def write(self, name: str, data: Sequence[memoryview]) -> None: ...
    def get(self, name: str) -> bytes: ...
    def map(self, name: str, size: int) -> pa.Buffer: ...
    def size(self, name: str) -> int: ...
    def entries(self, prefix: str) -> Iterable[Entry]: ...
    def delete(self, names: Sequence[str]) -> None: ...
    def forget(self, name: str) -> None: ...
    def sweep(self, older_than_seconds: float) -> None: ...


@runtime_checkable
class Dated(Protocol):
    """A backend that dates objects by a clock of its own, which is not that of this machine."""

    def time(self) -> float: ...


@runtime_checkable
class Linked(Protocol):
    """A backend in which there may be links to what is not part of the store. `entries` refuses them."""

    def real_entries(self, prefix: str) -> Iterable[Entry]: ...


class _Options(dict[str, Option]):
    """Options of a store, credentials among them: printed by name only."""

    def __repr__(self) -> str:
        return f"<options {', '.join(sorted(self))}>"

    __str__ = __repr__


class ObjectStore:
    """A place for objects. Made by `open_store`; making one touches nothing, the first use opens the backend.

    Names are relative, `/`-separated, of `[A-Za-z0-9._=-]`, and no segment starts with a dot. Whatever the backend
    refuses becomes `errors.StorageFailed`. May be used by many threads, pickled, and used after a fork (for remote
    stores: unless the parent had used one before forking, which is refused, since it would hang).
    """

    def __init__(self, url: str, options: Mapping[str, Option]) -> None:
        self._scheme, self._place = _split(url)
        self._options = _Options(options)
        self._opened: tuple[int, Backend] | None = None
        _check_options(self._scheme, self._options)

    @property
    def url(self) -> str:
        """Where the objects are. Carries no credentials: those are options."""
        return f"{self._scheme}://{quote(self._place) if self._scheme == 'file' else self._place}"

    @property
    def is_local(self) -> bool:
        """Tell whether the objects are files of this machine (or of a file system that it mounts)."""
        return self._scheme == "file"

    @property
    def path(self) -> str:
        """The folder of a local store, as the file system knows it."""
        assert self.is_local, "only a local store has a path"
        return self._place

    def put(self, name: str, data: Bytes) -> None:
        """Store `data` under `name`, replacing what was there in one step."""
        with self._failures("write", name):
            self._backend().put(_checked(name), _view(data))

    def put_if_absent(self, name: str, data: Bytes) -> bool:
        """Store `data` under `name` if the name is free; return False, and change nothing, if it is taken.

        A remote store may answer False when a first try of ours was stored and its answer lost: who must know
        compares what is stored with what it gave.
        """
        with self._failures("write", name):
            return self._backend().put_if_absent(_checked(name), _view(data))

    def write(self, name: str, data: Bytes | Sequence[Bytes]) -> None:
        """Store a big object under a name that was never used before; `data` may be several buffers in a row.

        On failure nothing stays under the name, if that can still be removed.
        """
        parts = [data] if isinstance(data, (bytes, bytearray, memoryview, pa.Buffer)) else data
        with self._failures("write", name):
            self._backend().write(_checked(name), [_view(part) for part in parts])

    def find(self, name: str) -> bytes | None:
        """Return the object's content, or None if there is none."""
        with self._failures("read", name):
            try:
                return self._backend().get(_checked(name))
            except FileNotFoundError:
                return None

    def get(self, name: str) -> bytes:
        """Return the content of an object that must be there; `errors.Corrupt` if it is not."""
        found = self.find(name)
        if found is None:
            _missing(name, self.url)
        return found

    def map(self, name: str, size: int) -> pa.Buffer:
        """Return the object, which must have `size` bytes, without copying it where that can be done.

        Local disk: memory-mapped. Memory: the stored buffer. Remote: downloaded once per host, then memory-mapped.
        Missing, or of another size: `errors.Corrupt`. The buffer stays valid when the object is deleted.
        """
        with self._failures("read", name):
            try:
                buffer = self._backend().map(_checked(name), size)
            except FileNotFoundError:
                _missing(name, self.url)
        if buffer.size != size:
            raise errors.Corrupt(
                "an object of the state has the wrong size",
                detail=f"`{name}` in {self.url} has {buffer.size} bytes, and {size} were committed",
                hint="restore this object, or the whole state, from a backup",
            )
        return buffer

    def exists(self, name: str) -> bool:
        """Tell whether there is an object of that name."""
        return self._size(name) is not None

    def size(self, name: str) -> int:
        """Return the size of an object that must be there; `errors.Corrupt` if it is not."""
        size = self._size(name)
        if size is None:
            _missing(name, self.url)
        return size

    def list(self, prefix: str = "") -> Names:
        """Return the names below the folder `prefix` (all, if empty), sorted."""
        return [entry.name for entry in self.entries(prefix)]

    def entries(self, prefix: str = "") -> Entries:
        """Return what is stored below the folder `prefix` (all, if empty), sorted by name."""
        folder = _checked(prefix.rstrip("/")) if prefix else ""
        with self._failures("list", prefix or "(all)"):
            return sorted(self._backend().entries(folder), key=lambda entry: entry.name)

    def real_entries(self, prefix: str = "") -> Entries:
        """Return what `entries` does, and pass over links and what is behind them. For whoever deletes."""
        backend = self._backend()
        if not isinstance(backend, Linked):
            return self.entries(prefix)
        folder = _checked(prefix.rstrip("/")) if prefix else ""
        with self._failures("list", prefix or "(all)"):
            return sorted(backend.real_entries(folder), key=lambda entry: entry.name)

    def delete(self, names: Iterable[str]) -> None:
        """Delete the named objects, in any order; those that are not there are passed over."""
        doomed = [_checked(name) for name in names]
        if doomed:
            with self._failures("delete", doomed[0] if len(doomed) == 1 else f"{doomed[0]} and {len(doomed) - 1} more"):
                self._backend().delete(doomed)

    def forget(self, name: str) -> None:
        """Drop this host's cached copy, if any, so that the next `map` fetches it anew (after a failed checksum)."""
        with self._failures("uncache", name):
            self._backend().forget(_checked(name))

    def time_ms(self) -> int | None:
        """Ask the store for its time, in milliseconds since 1970; None if it has no clock of its own. Writes to it."""
        backend = self._backend()
        with self._failures("write", CLOCK):
            return int(backend.time() * 1000) if isinstance(backend, Dated) else None

    def sweep(self, older_than_seconds: float) -> None:
        """Remove temporary files that killed writers left. They have no name, so this can only free space."""
        with self._failures("sweep", "temporary files"):
            self._backend().sweep(older_than_seconds)

    def _size(self, name: str) -> int | None:
        with self._failures("read", name):
            try:
                return self._backend().size(_checked(name))
            except FileNotFoundError:
                return None

    def _backend(self) -> Backend:
        pid = os.getpid()
        if self._opened is None or self._opened[0] != pid:
            self._opened = (pid, _open_backend(self._scheme, self._place, self._options))
        return self._opened[1]

    @contextmanager
    def _failures(self, action: str, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_failed(f"could not {action} `{name}` in {self.url}", error) from error

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and self.url == other.url and self._options == other._options

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[object, ...]:
        return (ObjectStore, (self.url, dict(self._options)))


def open_store(url: str, **options: Option) -> ObjectStore:
    """Name a store: a path or `file://`, `memory://name`, `s3://`, `gs://` or `az://` with bucket and prefix.

    Options. Local: `sync` (fsync before a write returns; off). Remote: `cache_dir`, `cache_bytes` (of this host's
    copies), `retry_seconds`, `endpoint`, `allow_http`; S3: `region`, `key`, `secret`, `token`; GCS:
    `service_account` (a path); Azure: `account`, `key`. What is not given comes from the provider's environment.

    >>> store = open_store("memory://example")
    >>> store.put_if_absent("greetings/first", b"hello"), store.put_if_absent("greetings/first", b"bye")
    (True, False)
    >>> store.get("greetings/first")
    b'hello'
    """
    return ObjectStore(url, options)


def _split(url: str) -> tuple[str, str]:
    """Take a URL apart into its scheme and the place that the backend knows."""
    if not url:
        raise errors.Unsupported(
            "the place of a store is empty", hint="give a folder, or a URL such as s3://bucket/shop"
        )
    if "://" not in url:
        return "file", str(Path(os.path.expanduser(url)).absolute())
    parts = urlsplit(url)
    if parts.scheme not in _OPTIONS:
        raise errors.Unsupported(
            f"no storage for `{parts.scheme}://`",
            hint="use a path, or " + ", ".join(f"`{scheme}://`" for scheme in _OPTIONS),
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise errors.Unsupported(
            f"the `{parts.scheme}://` URL of a store carries more than a place",
            hint="give credentials and settings as options: URLs are shown in logs",
        )
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise errors.Unsupported(f"`{url}` names no local file", hint="write three slashes: `file:///some/path`")
        return "file", str(Path(unquote(parts.path)).absolute())
    if not parts.netloc:
        noun, example = ("store", "a-name") if parts.scheme == "memory" else ("bucket", "bucket/prefix")
        raise errors.Unsupported(f"`{url}` names no {noun}", hint=f"as in `{parts.scheme}://{example}`")
    return parts.scheme, (parts.netloc + parts.path).rstrip("/")


def _check_options(scheme: str, options: Mapping[str, Option]) -> None:
    for option in options:
        if option not in _OPTIONS[scheme]:
            raise errors.UnknownName(
                f"no option `{option}` for a `{scheme}://` store",
                hint=errors.near_misses(option, _OPTIONS[scheme]) or f"known: {', '.join(_OPTIONS[scheme]) or 'none'}",
            )


def _checked(name: str) -> str:
    """Return `name` if it is one; else raise, since it could reach outside of the store."""
    if len(name) > _LONGEST or not all(map(_SEGMENT.fullmatch, name.split("/"))):
        raise errors.StateError(
            "not the name of an object",
            detail=f"{name[:200]!r}: relative, `/`-separated, of A-Z a-z 0-9 . _ = -, and no segment starts with a dot",
            hint="a state that names such an object was not written by Rejoinder, or was changed since",
        )
    return name


def _view(data: Bytes) -> memoryview:
    return memoryview(data).cast("B")


def _missing(name: str, url: str) -> NoReturn:
    raise errors.Corrupt(
        "an object of the state is missing",
        detail=f"`{name}` is not in {url}",
        hint="restore it from a backup; if this is an old epoch, it may have been dropped: read a newer one",
    )


def _open_backend(scheme: str, place: str, options: Mapping[str, Option]) -> Backend:
    # Imported where needed: a worker on local disk never loads obstore.
    if scheme == "file":
        from rejoinder.store.objects.local_objects import Disk

        return Disk(Path(place), sync=bool(options.get("sync", False)))
    if scheme == "memory":
        from rejoinder.store.objects.memory_objects import Memory

        return Memory.named(place)
    from rejoinder.store.objects.remote_objects import Remote

    return Remote(scheme, place, options)
