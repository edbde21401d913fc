"""The folders of file sources: files that appear late, with equal times, or under a hidden name until they are whole.

The test driver lists them through `os`, and tasks read them through pyarrow. Both are put in place by `seams`. A file
is never changed under its name. Its rows are known, so that each can be looked for.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from tests.simulation.flows import INPUTS, Row

if TYPE_CHECKING:
    from tests.simulation.ledger import Arrived
    from tests.simulation.world import World

HOUR = 3_600_000


class Line(Protocol):
    """What the folders ask of the driver that reads them."""

    def gate(self, what: str, name: str) -> None:
        """Let others run, or die."""

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""


class Inputs(pafs.FileSystemHandler):  # type: ignore[misc]
    """All input files by path. `times` are milliseconds; `unfinished` are hidden files, by the tick of their rename."""

    def __init__(self, sources: list[str], line: Callable[[], Line | None]) -> None:
        self.sources = sources
        self.line = line
        self.files: dict[str, bytes] = {}
        self.times: dict[str, int] = {}
        self.rows: dict[str, Arrived] = {}
        self.removed: set[str] = set()
        self.unfinished: list[tuple[int, str]] = []
        self.path = self  # `os.path`
        self._number = 0

    # -- what the world does ------------------------------------------------------------------------------------------

    def add(self, world: World, rows: list[tuple[str, Row, int]]) -> None:
        """Let a file appear for each source that rows are for: at once, or under a hidden name at first."""
        dice = world.dice
        for source in sorted({source for source, _, _ in rows}):
            self._number += 1
            # Names do not follow the order of arrival, so that files of one time are not read in that order by chance.
            path = f"{INPUTS}/{source}/{dice.randrange(100):02d}-{self._number:04d}.json"
            own = [each for each in rows if each[0] == source]
            data = b"".join(json.dumps(row).encode() + b"\n" for _, row, _ in own)
            if dice.random() < 0.2 and not world.is_quiet:
                hidden = f"{INPUTS}/{source}/.{path.rpartition('/')[2]}"
                self._put(world, hidden, data[: dice.randrange(len(data))])
                self.unfinished.append((world.tick + dice.choice([1, 3, 9]), path))
                self.rows[path] = own
            else:
                self.rows[path] = own
                self._put(world, path, data)
            world.trace(f"input: {path}, {len(own)} rows")

    def finish(self, world: World, until: int | None) -> None:
        """Rename files that are whole now. None: all."""
        due = [path for tick, path in self.unfinished if until is None or tick <= until]
        self.unfinished = [each for each in self.unfinished if each[1] not in due]
        for path in due:
            folder, _, name = path.rpartition("/")
            del self.files[f"{folder}/.{name}"]
            self._put(world, path, b"".join(json.dumps(row).encode() + b"\n" for _, row, _ in self.rows[path]))

    def clean(self, world: World, read: set[str]) -> None:
        """Remove a file that committed epochs have read, as a user does."""
        known = sorted(path for path in read if path in self.files)
        if known:
            path = world.dice.choice(known)
            del self.files[path]
            self.removed.add(path)
            world.trace(f"input removed: {path}")

    def _put(self, world: World, path: str, data: bytes) -> None:
        folder = path.rpartition("/")[0]
        last = [self.times[known] for known in self.files if known.startswith(f"{folder}/")][-1:]
        choices = [world.clock.now, world.clock.now, *last, world.clock.now - HOUR]
        self.times[path] = world.dice.choice(choices)
        self.files[path] = data

    # -- what is known of them ----------------------------------------------------------------------------------------

    def visible(self) -> list[str]:
        """The files that a source has to read."""
        return [path for path in self.files if not path.rpartition("/")[2].startswith(".")]

    # -- `os`, as far as the test driver and the engine ask it about inputs -------------------------------------------

    def stat(self, path: str) -> Any:
        """Size and time of a file."""
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, path)
        return SimpleNamespace(st_mtime_ns=self.times[path] * 1_000_000, st_size=len(self.files[path]))

    def scandir(self, folder: str) -> list[Any]:
        """The entries of a folder."""
        line = self.line()
        if line is not None:
            line.gate("list input", folder)
        found = [path for path in sorted(self.files) if path.startswith(f"{folder}/")]
        return [
            SimpleNamespace(path=path, name=path.rpartition("/")[2], is_file=lambda: True, is_dir=lambda: False)
            for path in found
        ]

    def exists(self, path: str) -> bool:
        """Whether there is such a folder."""
        return path in [f"{INPUTS}/{source}" for source in self.sources]

    def isfile(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self.files

    def basename(self, path: str) -> str:
        """The last part of a path."""
        return os.path.basename(path)

    # -- pyarrow's file system, as far as it is read ------------------------------------------------------------------

    def open_input_file(self, path: str) -> pa.NativeFile:
        line = self.line()
        if line is not None:
            line.gate("read input", path)
            if line.strikes("fail", "read input", path):
                raise OSError(errno.EIO, "input/output error")
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, path)
        return pa.BufferReader(self.files[path])

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [
            pafs.FileInfo(path, pafs.FileType.File, size=len(self.files[path]), mtime_ns=self.times[path] * 1_000_000)
            if path in self.files
            else pafs.FileInfo(path, pafs.FileType.NotFound)
            for path in paths
        ]

    def get_type_name(self) -> str:
        return "inputs"

    def normalize_path(self, path: str) -> str:
        return path

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refused
    delete_root_dir_contents = delete_file = move = copy_file = open_input_stream = _refused
    open_output_stream = open_append_stream = _refused
