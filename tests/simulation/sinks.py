"""Simulated targets of sinks: a file system that can fail, pause and be left half-written; a function that fails.

The real file sink runs on `Folder` through pyarrow's file system interface. Both record what arrived.
"""

from __future__ import annotations

import errno
import io
import json
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tests.simulation.flows import Bag


class Line(Protocol):
    """What a target asks of the driver that writes to it."""

    def gate(self, what: str, name: str) -> None:
        """Let others run, or die."""

    def strikes(self, fault: str, what: str, name: str) -> bool:
        """Whether a fault strikes here."""

    def delivers(self, epoch: int) -> None:
        """Note a delivery to a target without fence."""

    @property
    def is_dead(self) -> bool:
        """Whether the driver was killed."""


class Folder(pafs.FileSystemHandler):  # type: ignore[misc]
    """All files of one sink, by path. `line` is the driver that is at work."""

    def __init__(self, line: Callable[[], Line | None]) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.past: dict[str, list[bytes]] = {}
        self.line = line

    def _call(self, what: str, path: str) -> None:
        line = self.line()
        if line is not None:
            line.gate(f"file {what}", path)
            if line.strikes("refuse", f"file {what}", path):
                raise OSError(errno.EIO, "input/output error")

    def get_type_name(self) -> str:
        return "simulated"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        self._call("list", selector.base_dir)
        below = f"{selector.base_dir}/"
        listed = sorted({below + path[len(below) :].split("/")[0] for path in self._all() if path.startswith(below)})
        return [self._info(path) for path in listed]

    def create_dir(self, path: str, recursive: bool) -> None:
        self._call("mkdir", path)
        parts = path.split("/")
        if not recursive and "/".join(parts[:-1]) not in self.folders:
            raise FileNotFoundError(errno.ENOENT, path)
        self.folders |= {"/".join(parts[:at]) for at in range(1, len(parts) + 1)}

    def delete_dir(self, path: str) -> None:
        self._call("rmdir", path)
        if path not in self.folders:
            raise FileNotFoundError(errno.ENOENT, path)
        self.folders = {each for each in self.folders if each != path and not each.startswith(f"{path}/")}
        self.files = {each: data for each, data in self.files.items() if not each.startswith(f"{path}/")}

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._call("unlink", path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, path)
        del self.files[path]

    def move(self, source: str, target: str) -> None:
        self._call("move", target)
        if source not in self.files:
            raise FileNotFoundError(errno.ENOENT, source)
        if target in self.files:
            self.past.setdefault(target, []).append(self.files[target])
        self.files[target] = self.files.pop(source)

    def copy_file(self, source: str, target: str) -> None:
        self._call("copy", target)
        self.files[target] = self.files[source]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self._call("read", path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, path)
        return pa.BufferReader(self.files[path])

    def open_output_stream(self, path: str, metadata: Any = None) -> pa.NativeFile:
        self._call("create", path)
        if path.rpartition("/")[0] not in self.folders:
            raise FileNotFoundError(errno.ENOENT, path)
        self.files[path] = b""
        return pa.PythonFile(_Written(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any = None) -> pa.NativeFile:
        raise NotImplementedError

    def _all(self) -> list[str]:
        return [*self.files, *self.folders]

    def _info(self, path: str) -> pafs.FileInfo:
        if path in self.files:
            return pafs.FileInfo(path, pafs.FileType.File, size=len(self.files[path]))
        kind = pafs.FileType.Directory if path in self.folders else pafs.FileType.NotFound
        return pafs.FileInfo(path, kind)

    def reached(self, root: str) -> int | None:
        """The epoch that the folder of a sink stores; None if it stores none."""
        noted = self.files.get(f"{root}/_rejoinder/progress.json")
        return None if noted is None else int(json.loads(noted)["epoch"])

    def of(self, root: str) -> dict[str, bytes]:
        """A copy of a sink's files."""
        return {path: data for path, data in self.files.items() if path.startswith(f"{root}/")}

    def take_away(self, root: str) -> tuple[dict[str, bytes], set[str]]:
        """Remove the folder of a sink; gives its files and folders."""
        files = self.of(root)
        folders = {path for path in self.folders if path == root or path.startswith(f"{root}/")}
        self.files = {path: data for path, data in self.files.items() if path not in files}
        self.folders -= folders
        return files, folders

    def restore(self, root: str, files: dict[str, bytes]) -> None:
        """Put a copy of a sink's files in the place of what is there."""
        self.files = {path: data for path, data in self.files.items() if not path.startswith(f"{root}/")} | files
        self.folders = {path for path in self.folders if path != root and not path.startswith(f"{root}/")}
        for path in files:
            parts = path.split("/")[:-1]
            self.folders |= {"/".join(parts[:at]) for at in range(1, len(parts) + 1)}

    def epochs(self, root: str) -> dict[int, Bag]:
        """The changes that a reader of the folder sees, by epoch."""
        result: dict[int, Bag] = {}
        for path, data in sorted(self.files.items()):
            folder, _, name = path.rpartition("/")
            if folder == root and name.startswith("epoch-"):
                bag = result.setdefault(int(name.split("-")[1]), Counter())
                bag.update(_changes(name.endswith(".parquet"), data))
        return result


@lru_cache(maxsize=2_000)
def _changes(is_parquet: bool, data: bytes) -> Bag:
    """The changes in a file."""
    if is_parquet:
        return _bag(pq.read_table(pa.BufferReader(data)).to_pylist())
    return _bag([json.loads(line) for line in data.splitlines()])


def _bag(rows: list[dict[str, Any]]) -> Bag:
    bag: Bag = Counter()
    for row in rows:
        values = tuple(value for name, value in row.items() if name not in ("_diff", "_epoch"))
        bag[values] += row["_diff"]
    return bag


class _Written(io.RawIOBase):
    """A file that is being written. What was written is there at once: a killed writer leaves a part."""

    def __init__(self, folder: Folder, path: str) -> None:
        super().__init__()
        self._folder, self._path = folder, path
        self._line = folder.line()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        is_dead = self._line is not None and self._line.is_dead
        if self._path in self._folder.files and not is_dead:  # else it was removed or moved meanwhile
            self._folder.files[self._path] += content
        return len(content)

    def tell(self) -> int:
        return len(self._folder.files.get(self._path, b""))


class Receiver:
    """A function that takes epochs. `calls` are those that came to their end, in order."""

    def __init__(self, line: Callable[[], Line | None]) -> None:
        self.calls: list[tuple[int, Bag]] = []
        self.line = line

    def __call__(self, epoch: int, changes: pa.Table) -> None:
        line = self.line()
        if line is not None:
            line.gate("call", str(epoch))
            if line.strikes("refuse", "call", str(epoch)):
                raise ConnectionError("the target went away half way")
        if line is not None:
            line.delivers(epoch)
        self.calls.append((epoch, _bag(changes.to_pylist())))
        if line is not None:
            line.gate("after call", str(epoch))
            if line.strikes("refuse", "after call", str(epoch)):
                raise ConnectionError("the target took all and went away")
