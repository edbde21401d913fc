"""A disk that loses power: the real `Disk` on a scratch folder, and a record of what was flushed to the device.

What the record knows: the content of a file when it was flushed, and the names in a folder when that was flushed. After
a power cut a name that was not flushed is there or not, and so is one whose removal was not flushed; a file that was
not flushed has its bytes, a part of them, or zeros.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from rejoinder.store.objects.local_objects import Disk

Identity = tuple[int, int]


class Device:
    """A scratch folder as a disk. `disk` is the real backend, with `sync` on."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(prefix="rejoinder-simulation-", dir=memory if memory.is_dir() else None))
        self.disk = Disk(self.root / "state", sync=True)
        self._content: dict[Identity, bytes] = {}
        self._names: dict[str, dict[str, Identity]] = {}

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root, ignore_errors=True)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record flushes instead of waiting for a device."""
        with mock.patch.object(os, "fsync", self._flushed):
            yield

    def power_cut(self, dice: random.Random) -> int:
        """Lose what was not flushed; return how many names or files were not."""
        lost = 0
        top = self.root / "state"
        for folder in sorted((top, *top.rglob("*/")), key=lambda path: len(path.parts)):
            if not folder.is_dir():
                continue
            durable = self._names.get(str(folder), {})
            present = {path.name: _identity(path) for path in sorted(folder.iterdir())}
            for name in sorted({*durable, *present}):
                path = folder / name
                if present.get(name) == durable.get(name):
                    lost += self._tear(path, dice)
                    continue
                lost += 1
                if dice.random() < 0.5:  # as before the change
                    if name in present:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                    if name in durable and durable[name] in self._content:
                        path.write_bytes(self._content[durable[name]])
                elif name in present:
                    lost += self._tear(path, dice)
        self._names = {}
        self._content = {}
        for folder in (top, *top.rglob("*/")):
            self._keep(folder)
        for path in top.rglob("*"):
            if path.is_file():
                self._content[_identity(path)] = path.read_bytes()
        return lost

    def _tear(self, path: Path, dice: random.Random) -> int:
        if not path.is_file():
            return 0
        data = path.read_bytes()
        if self._content.get(_identity(path)) == data or not data:
            return 0
        cut = dice.randrange(len(data) + 1)
        torn = dice.choice([data, data[:cut], data[:cut] + bytes(len(data) - cut)])
        path.unlink()
        path.write_bytes(torn)
        return 1

    def _flushed(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._keep(Path(path))
        else:
            self._content[(status.st_ino, status.st_mtime_ns)] = Path(path).read_bytes()

    def _keep(self, folder: Path) -> None:
        if folder.is_dir():
            self._names[str(folder)] = {path.name: _identity(path) for path in folder.iterdir()}


def _identity(path: Path) -> Identity:
    """What a name stands for. A folder is identified by its inode alone: its time changes with its content."""
    status = path.lstat()
    return (status.st_ino, 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns)
