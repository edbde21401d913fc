"""A simulated object store: what it really holds (`Shelf`), and what a driver sees of it over a bad line (`Link`).

A call may fail, take effect and lose its answer, take effect later, be repeated, or show an old listing. Before and
after every call the driver may be put to sleep or killed. Objects themselves are never torn: that is for disks.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from rejoinder.store.objects.local_objects import Disk
from rejoinder.store.objects.memory_objects import Memory
from rejoinder.store.objects.object_store import Backend, Entry
from tests.simulation.coroutines import Killed

T = TypeVar("T")
LISTINGS = 4


class Shelf:
    """The objects themselves. `past` keeps what was overwritten, `listings` what the last ticks would have listed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.objects: dict[str, tuple[pa.Buffer, float]] = {}
        self.past: dict[str, list[bytes]] = {}
        self.listings: list[list[Entry]] = [[]]
        self._clock = clock

    def put(self, name: str, data: memoryview) -> None:
        if name in self.objects:
            self.past.setdefault(name, []).append(self.get(name))
        self.objects[name] = (pa.py_buffer(bytes(data)), self._clock())

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        if name in self.objects:
            return False
        self.put(name, data)
        return True

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        self.put(name, memoryview(b"".join(data)))

    def get(self, name: str) -> bytes:
        content: bytes = self.map(name, 0).to_pybytes()
        return content

    def map(self, name: str, size: int) -> pa.Buffer:
        if name not in self.objects:
            raise FileNotFoundError(name)
        return self.objects[name][0]

    def size(self, name: str) -> int:
        size: int = self.map(name, 0).size
        return size

    def entries(self, prefix: str) -> Iterable[Entry]:
        folder = f"{prefix}/" if prefix else ""
        return [
            Entry(name, buffer.size, modified)
            for name, (buffer, modified) in self.objects.items()
            if name.startswith(folder)
        ]

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.objects.pop(name, None)

    def drop_cached(self, name: str) -> None:
        pass

    def sweep(self, older_than_seconds: float) -> None:
        pass

    def store_listing(self) -> None:
        """Keep what a listing shows now, for stale answers."""
        self.listings = [*self.listings, list(self.entries(""))][-LISTINGS:]


class Line(Protocol):
    """What a link asks of the driver at its end."""

    def gate(self, what: str, name: str) -> None:
        """Let others run, or die."""

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""

    def later(self, what: str, name: str, effect: Callable[[], object]) -> None:
        """Let the call take effect later."""

    def stored(self, name: str, data: bytes) -> Callable[[], None]:
        """Say who stores an object and why; the result is called when it takes effect."""

    def pick(self, count: int) -> int:
        """A number below `count`."""

    def is_blind(self) -> bool:
        """Whether listings are empty for now."""


class Link(Memory):
    """The store as one driver reaches it. The real `ObjectStore` is opened on this instead of on memory."""

    def __init__(self, shelf: Shelf | Disk, line: Line) -> None:
        super().__init__()
        self._shelf: Backend = shelf
        self._line = line

    def put(self, name: str, data: memoryview) -> None:
        content, line = bytes(data), self._line
        stored = line.stored(name, content)

        def effect() -> None:
            self._shelf.put(name, memoryview(content))
            stored()

        self._change("put", name, effect)

    def put_if_absent(self, name: str, data: memoryview) -> bool:
        content, line = bytes(data), self._line
        stored = line.stored(name, content)

        def effect() -> bool:
            is_ours = self._shelf.put_if_absent(name, memoryview(content))
            if is_ours:
                stored()
            return is_ours

        return self._change("create", name, effect)

    def write(self, name: str, data: Sequence[memoryview]) -> None:
        content = b"".join(data)
        try:
            self._change("write", name, lambda: self._shelf.write(name, [memoryview(content)]), once=True)
        except Killed:
            if isinstance(self._shelf, Disk) and content:  # killed in the middle of it
                self._shelf.delete([name])
                self._shelf.write(name, [memoryview(content)[: self._line.pick(len(content))]])
            raise

    def get(self, name: str) -> bytes:
        self._before("get", name)
        past = self._shelf.past.get(name) if isinstance(self._shelf, Shelf) else None
        if past and self._line.strikes("stale", "get", name):
            return past[-1]
        return self._shelf.get(name)

    def map(self, name: str, size: int) -> pa.Buffer:
        self._before("map", name)
        return self._shelf.map(name, size)

    def size(self, name: str) -> int:
        self._before("size", name)
        return self._shelf.size(name)

    def entries(self, prefix: str) -> Iterable[Entry]:
        self._before("list", prefix)
        if self._line.is_blind():
            return []
        if isinstance(self._shelf, Shelf) and self._line.strikes("stale", "list", prefix):
            old = self._shelf.listings[self._line.pick(len(self._shelf.listings))]
            return [entry for entry in old if entry.name.startswith(f"{prefix}/" if prefix else "")]
        return list(self._shelf.entries(prefix))

    def delete(self, names: Sequence[str]) -> None:
        self._change("delete", ",".join(names), lambda: self._shelf.delete(names))

    def sweep(self, older_than_seconds: float) -> None:
        self._before("sweep", "")
        self._shelf.sweep(older_than_seconds)

    def _before(self, what: str, name: str) -> None:
        self._line.gate(what, name)
        if self._line.strikes("fail", what, name):
            raise OSError(errno.ECONNRESET, "connection reset")

    def _change(self, what: str, name: str, effect: Callable[[], T], *, once: bool = False) -> T:
        """Carry out a call that changes something. `once`: a name that is taken is refused, so nobody repeats it."""
        self._before(what, name)
        line = self._line
        if line.strikes("late", what, name):
            line.later(what, name, effect)
            raise OSError(errno.ETIMEDOUT, "timed out")
        if line.strikes("lost", what, name):
            effect()
            raise OSError(errno.ECONNRESET, "connection reset by peer")
        if line.strikes("retried", what, name) and not once:
            effect()
        result = effect()
        if line.strikes("duplicate", what, name) and not once:
            line.later(what, name, effect)
        line.gate(f"after {what}", name)
        return result
