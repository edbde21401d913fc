"""Named immutable objects on local disk, in memory, or on S3, GCS and Azure.

Invariant: a name holds the complete object of one writer, or nothing. `put_if_absent` gives a name to exactly one
writer, on every backend; commits rely on it. The only exception is `write`: on local disk a killed `write` leaves a
short file under its name. That name is new and nothing refers to it before `write` returns, so it is never read; and
`map` checks the size.

An `ObjectStore` is pickled as its URL and options, and opens its backend in the process that uses it.
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
"""An empty object. It is written to read the time of the store from its modification time."""
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
    """The operations of a kind of storage. They raise `OSError`; `FileNotFoundError` for a missing name."""

    def put(self, name: str, data: memoryview) -> None: ...
    def put_if_absent(self, name: str, data: memoryview) -> bool: ...
    def write(self, name: str, data: Sequence[memoryview]) -> None: ...
    def get(self, name: str) -> bytes: ...
    def map(self, name: str, size: int) -> pa.Buffer: ...
    def size(self, name: str) -> int: ...
    def entries(self, prefix: str) -> Iterable[Entry]: ...
    def delete(self, names: Sequence[str]) -> None: ...
    def drop_cached(self, name: str) -> None: ...
    def sweep(self, older_than_seconds: float) -> None: ...


@runtime_checkable
class Dated(Protocol):
    """A backend with a clock of its own, which sets the modification times of objects."""

    def time(self) -> float: ...


@runtime_checkable
class Linked(Protocol):
    """A backend that may contain links to files outside the store. `entries` refuses them."""

    def real_entries(self, prefix: str) -> Iterable[Entry]: ...


class _Options(dict[str, Option]):
    """Options of a store, including credentials: only their names are printed."""

    def __repr__(self) -> str:
        return f"<options {', '.join(sorted(self))}>"

    __str__ = __repr__


class ObjectStore:
    """A collection of named objects. Use `open_store`; the backend is opened by the first operation.

    Names are relative, `/`-separated, of `[A-Za-z0-9._=-]`, and no segment starts with a dot. Each operation raises
    `errors.StorageFailed` if the backend fails. A store may be shared by threads, pickled, and used after a fork. A
    remote store is refused after a fork if the parent had used one, since it would hang.
    """

    def __init__(self, url: str, options: Mapping[str, Option]) -> None:
        self._scheme, self._place = _split(url)
        self._options = _Options(options)
        self._opened: tuple[int, Backend] | None = None
        _check_options(self._scheme, self._options)

    @property
    def url(self) -> str:
        """The location of the store, without credentials: those are options."""
        return f"{self._scheme}://{quote(self._place) if self._scheme == 'file' else self._place}"

    @property
    def is_local(self) -> bool:
        """Whether the objects are files of this machine, or of a file system that it mounts."""
        return self._scheme == "file"

    @property
    def path(self) -> str:
        """The path of a local store's folder."""
        assert self.is_local, "only a local store has a path"
        return self._place

    def put(self, name: str, data: Bytes) -> None:
        """Store `data` under `name`; atomically replaces an existing object."""
        with self._failures("write", name):
            self._backend().put(_checked(name), _view(data))

    def put_if_absent(self, name: str, data: Bytes) -> bool:
        """Store `data` under `name` if the name is free; return False, and change nothing, if it is taken.

        A remote store may also return False if an earlier attempt of this call was stored and its answer lost. A
        caller that must know compares the stored object with its own.
        """
        with self._failures("write", name):
            return self._backend().put_if_absent(_checked(name), _view(data))

    def write(self, name: str, data: Bytes | Sequence[Bytes]) -> None:
        """Store a large object under a name that was never used before; `data` may be several buffers in a row.

        A failed call removes what it wrote, if it can.
        """
        parts = [data] if isinstance(data, (bytes, bytearray, memoryview, pa.Buffer)) else data
        with self._failures("write", name):
            self._backend().write(_checked(name), [_view(part) for part in parts])

    def find(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""
        with self._failures("read", name):
            try:
                return self._backend().get(_checked(name))
            except FileNotFoundError:
                return None

    def get(self, name: str) -> bytes:
        """Return the content of an object. Raises `errors.Corrupt` if it does not exist."""
        content = self.find(name)
        if content is None:
            _raise_missing(name, self.url)
        return content

    def map(self, name: str, size: int) -> pa.Buffer:
        """Return the object, which must have `size` bytes, without a copy where possible.

        Local disk: memory-mapped. Memory: the stored buffer. Remote: downloaded once per host, then memory-mapped.
        Raises `errors.Corrupt` if it does not exist or has another size. The buffer stays valid when the object is
        deleted.
        """
        with self._failures("read", name):
            try:
                buffer = self._backend().map(_checked(name), size)
            except FileNotFoundError:
                _raise_missing(name, self.url)
        if buffer.size != size:
            raise errors.Corrupt(
                "an object of the state has the wrong size",
                detail=f"`{name}` in {self.url} has {buffer.size} bytes, and {size} were committed",
                hint="restore this object, or the whole state, from a backup",
            )
        return buffer

    def exists(self, name: str) -> bool:
        """Whether an object of that name exists."""
        return self._size(name) is not None

    def size(self, name: str) -> int:
        """Return the size of an object in bytes. Raises `errors.Corrupt` if it does not exist."""
        size = self._size(name)
        if size is None:
            _raise_missing(name, self.url)
        return size

    def list(self, prefix: str = "") -> Names:
        """Return the names below the folder `prefix` (all, if empty), sorted."""
        return [entry.name for entry in self.entries(prefix)]

    def entries(self, prefix: str = "") -> Entries:
        """Return the objects below the folder `prefix` (all, if empty), sorted by name."""
        folder = _checked(prefix.rstrip("/")) if prefix else ""
        with self._failures("list", prefix or "(all)"):
            return sorted(self._backend().entries(folder), key=lambda entry: entry.name)

    def real_entries(self, prefix: str = "") -> Entries:
        """Return the same as `entries`, but skip links instead of refusing them. For callers that delete objects."""
        backend = self._backend()
        if not isinstance(backend, Linked):
            return self.entries(prefix)
        folder = _checked(prefix.rstrip("/")) if prefix else ""
        with self._failures("list", prefix or "(all)"):
            return sorted(backend.real_entries(folder), key=lambda entry: entry.name)

    def delete(self, names: Iterable[str]) -> None:
        """Delete the named objects, in any order; missing ones are ignored."""
        checked = [_checked(name) for name in names]
        if checked:
            rest = "" if len(checked) == 1 else f" and {len(checked) - 1} more"
            with self._failures("delete", f"{checked[0]}{rest}"):
                self._backend().delete(checked)

    def drop_cached(self, name: str) -> None:
        """Drop this host's cached copy, if any, so that the next `map` fetches the object (after a failed checksum)."""
        with self._failures("uncache", name):
            self._backend().drop_cached(_checked(name))

    def time_ms(self) -> int | None:
        """Return the time of the store in milliseconds since 1970; None if it has no clock. Writes an empty object."""
        backend = self._backend()
        with self._failures("write", CLOCK):
            return int(backend.time() * 1000) if isinstance(backend, Dated) else None

    def sweep(self, older_than_seconds: float) -> None:
        """Remove temporary files that killed writers left. They are not objects, so this only frees space."""
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
    """Return the store at a path or `file://`, `memory://name`, `s3://`, `gs://` or `az://` with bucket and prefix.

    Options. Local: `sync` (fsync before a write returns; off by default). Remote: `cache_dir`, `cache_bytes` (of this
    host's copies), `retry_seconds`, `endpoint`, `allow_http`; S3: `region`, `key`, `secret`, `token`; GCS:
    `service_account` (a path); Azure: `account`, `key`. Other settings come from the provider's environment.

    >>> store = open_store("memory://example")
    >>> store.put_if_absent("greetings/first", b"hello"), store.put_if_absent("greetings/first", b"bye")
    (True, False)
    >>> store.get("greetings/first")
    b'hello'
    """
    return ObjectStore(url, options)


def _split(url: str) -> tuple[str, str]:
    """Return the scheme of a URL and the location within it. Raises `Unsupported` for any other URL."""
    if not url:
        raise errors.Unsupported(
            "the location of a store is empty", hint="pass a folder, or a URL such as s3://bucket/shop"
        )
    if "://" not in url:
        return "file", str(Path(os.path.expanduser(url)).absolute())
    parts = urlsplit(url)
    if parts.scheme not in _OPTIONS:
        raise errors.Unsupported(
            f"storage `{parts.scheme}://` is not supported",
            hint="use a path, or " + ", ".join(f"`{scheme}://`" for scheme in _OPTIONS),
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise errors.Unsupported(
            f"the `{parts.scheme}://` URL of a store contains more than a location",
            hint="pass credentials and settings as options: URLs are shown in logs",
        )
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise errors.Unsupported(f"`{url}` is not a local path", hint="write three slashes: `file:///some/path`")
        return "file", str(Path(unquote(parts.path)).absolute())
    if not parts.netloc:
        noun, example = ("store", "a-name") if parts.scheme == "memory" else ("bucket", "bucket/prefix")
        raise errors.Unsupported(
            f"`{url}` does not name a {noun}", hint=f"write for example `{parts.scheme}://{example}`"
        )
    return parts.scheme, (parts.netloc + parts.path).rstrip("/")


def _check_options(scheme: str, options: Mapping[str, Option]) -> None:
    for option in options:
        if option not in _OPTIONS[scheme]:
            raise errors.UnknownName(
                f"no option `{option}` for a `{scheme}://` store",
                hint=errors.near_misses(option, _OPTIONS[scheme])
                or f"options: {', '.join(_OPTIONS[scheme]) or 'none'}",
            )


def _checked(name: str) -> str:
    """Return `name` if it is a valid name. Raises `StateError` otherwise: it could point outside the store."""
    if len(name) > _LONGEST or not all(map(_SEGMENT.fullmatch, name.split("/"))):
        raise errors.StateError(
            "invalid name of an object",
            detail=f"{name[:200]!r}: relative, `/`-separated, of A-Z a-z 0-9 . _ = -, and no segment starts with a dot",
            hint="a state that names such an object was not written by Rejoinder, or was modified",
        )
    return name


def _view(data: Bytes) -> memoryview:
    return memoryview(data).cast("B")


def _raise_missing(name: str, url: str) -> NoReturn:
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
