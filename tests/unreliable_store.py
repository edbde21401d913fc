"""A store over a bad line: requests whose answer is lost, that arrive late, or that arrive twice.

`unreliable(store)` puts itself between a store and its backend, on memory, disk and S3 alike. A test says what happens
to the next request for a name:

>>> from rejoinder.store.objects.object_store import open_store
>>> store = open_store("memory://unreliable-example")
>>> line = unreliable(store)
>>> line.next("manifests/1", "lost")        # it is stored; the caller gets an error
>>> line.next("manifests/1", "refused")     # it is stored; the caller hears that the name was taken
>>> line.next("manifests/1", "late")        # the caller gets an error; it is stored when `arrive` is called
>>> line.next("manifests/1", "twice")       # it is stored, and once more when `arrive` is called
>>> line.next("manifests/1", "failed")      # it is not stored; the caller gets an error
>>> line.next("manifests/1", "answered")    # it is stored, and the caller is told so, as without a fate
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rejoinder.store.objects.object_store import Backend, Entry, ObjectStore

FATES = ("lost", "refused", "late", "twice", "failed", "answered")


class Line:
    """A backend behind a bad line. Reads go through, unless `hidden` says that a folder is shown as empty."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._fates: dict[str, list[str]] = {}
        self._under_way: list[Callable[[], object]] = []
        self.before: dict[str, Callable[[], object]] = {}
        self.hidden: set[str] = set()

    def next(self, name: str, fate: str) -> None:
        """Say what happens to the next PUT of `name`."""
        assert fate in FATES, fate
        self._fates.setdefault(name, []).append(fate)

    def arrive(self) -> None:
        """Let the requests that are under way arrive."""
        arrived, self._under_way = self._under_way, []
        for request in arrived:
            request()

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        kept = memoryview(bytes(data))
        return self._send(name, lambda: self._backend.put_if_absent(name, kept))

    def put(self, name: str, data: memoryview) -> None:
        kept = memoryview(bytes(data))

        def request() -> bool:
            self._backend.put(name, kept)
            return True

        self._send(name, request)

    def entries(self, prefix: str) -> Iterable[Entry]:
        return [] if prefix in self.hidden else self._backend.entries(prefix)

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        self._backend.write(name, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def _send(self, name: str, request: Callable[[], bool]) -> bool:
        self.before.pop(name, lambda: None)()
        fates = self._fates.get(name, [])
        fate = fates.pop(0) if fates else ""
        if fate in ("late", "twice"):
            self._under_way.append(request)
        if fate in ("late", "failed"):
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        answer = request()
        if fate == "lost":
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        return answer and fate != "refused"


def unreliable(store: ObjectStore) -> Line:
    """Put a bad line between a store and its backend."""
    line = Line(store._backend())
    store._opened = (os.getpid(), line)
    return line
