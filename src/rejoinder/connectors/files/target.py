"""The file sink: appends the changes of an epoch as files named by the epoch. Exactly once.

Layout of the folder: `epoch-0000000012-0000.parquet` and so on. The folder `_rejoinder/` beside them, which readers
skip, has the owner of the folder, its progress, and incomplete files. Tasks write there. When all files of an epoch are
complete, they are renamed to their final names, then the progress file is replaced. An attempt that failed in between
is repeated with the same names, and its leftover files are removed. So an epoch exists once, however often it is tried.

Fence: an attempt stages its files in a folder of its own, `staged-<writer epoch>-<random>`. It changes the sink only by
renames from and to that folder, including the progress file. Before a driver stages its own files, it removes the
staged folders that it finds. Those of later writers are removed only if no later writer has committed: they are from
before the state was restored from a backup. A driver that was replaced and continues later finds its folder gone: its
renames fail and have no effect.

An object store has no renames: a move is a copy, which fails if its source is gone, and a delete. So only a copy that
was requested before the takeover and is executed after it can still have an effect. It is harmless. Both drivers
deliver an epoch from the same manifest, so a data file that is written late has the same content. A progress file that
is written late is behind: the next start writes later epochs again, under the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from rejoinder.connectors.delivery import Delivery, Target, absolute
from rejoinder.connectors.files.writers import Writer
from rejoinder.errors import SinkFailed
from rejoinder.faults import reach
from rejoinder.formats.paths import open_path
from rejoinder.host.entropy import token
from rejoinder.ir.catalog import Sink

HIDDEN = "_rejoinder"
OWNER, PROGRESS, STAGED = "sink.json", "progress.json", "staged-"
CHECKSUM = "checksum"


@dataclass(frozen=True)
class FilesTarget(Target):
    """A folder of files, local or in an object store."""

    sink: Sink
    identity: str
    write: Writer
    stores_epochs: ClassVar[bool] = True

    def check(self) -> None:
        """Raise `SinkFailed` if the folder cannot be created or written, or belongs to another sink."""
        filesystem, folder = self._open()
        hidden = posixpath.join(folder, HIDDEN)
        try:
            owner = self._read(filesystem, posixpath.join(hidden, OWNER))
            if owner is None and not self.identity:
                filesystem.create_dir(hidden, recursive=True)
                probe = posixpath.join(hidden, "probe")
                with filesystem.open_output_stream(probe):
                    pass
                with suppress(FileNotFoundError):  # another driver may be defining the same sink
                    filesystem.delete_file(probe)
        except OSError as refused:
            raise SinkFailed(
                f"sink `{self.sink.name}` cannot write to `{self.sink.options['path']}`",
                detail=str(refused),
                hint="create the folder where workers and driver can write, or correct OPTIONS (path '…')",
            ) from refused
        if owner is not None:
            self._check_owner(owner)

    def delivered(self) -> int | None:
        """Return the last epoch whose files are complete; None if there is none. Raises `SinkFailed`."""
        filesystem, folder = self._open()
        progress = self._read(filesystem, posixpath.join(folder, HIDDEN, PROGRESS))
        if progress is None:
            return None
        self._check_owner(progress)
        return int(progress["epoch"])

    def deliver(self, delivery: Delivery) -> None:
        """Write the files of an epoch. Raises `Fenced`, and changes nothing, if another driver has taken over."""
        filesystem, folder = self._open()
        hidden = posixpath.join(folder, HIDDEN)
        staged = posixpath.join(hidden, f"{STAGED}{delivery.writer:010d}-{token(8)}")
        try:
            # Later, a missing folder means lost files: it must not be created with one epoch only.
            if delivery.is_first:
                filesystem.create_dir(hidden, recursive=True)
            _clear_staged(filesystem, hidden, delivery)
            filesystem.create_dir(staged, recursive=False)
            _replace(filesystem, staged, posixpath.join(hidden, OWNER), _sealed(self._owner))
            written = delivery.run(
                WriteFile(
                    absolute(self.sink.options["path"]),
                    posixpath.basename(staged),
                    self.write,
                    self.sink.options,
                )
            )
            reach("in_delivery", delivery.epoch)
            # Stage the progress file before the check of the fence: after it only moves out of our folder are allowed.
            with filesystem.open_output_stream(posixpath.join(staged, PROGRESS)) as file:
                file.write(_sealed({**self._owner, "epoch": delivery.epoch, "writer": delivery.writer}))
            delivery.check_fence()
            self._publish(filesystem, staged, list(filter(None, written)), delivery)
        except Exception:
            delivery.check_fence()  # a driver that took over may have removed our staged folder
            raise
        with suppress(FileNotFoundError):  # a driver that took over since may have removed it
            filesystem.delete_dir(staged)

    def _publish(self, filesystem: pafs.FileSystem, staged: str, written: list[str], delivery: Delivery) -> None:
        """Move the files of an epoch to their final names, then replace the progress file."""
        _, folder = self._open()
        prefix = f"epoch-{delivery.epoch:010d}-"
        names = [f"{prefix}{number:04d}.{self.sink.format}" for number, _ in enumerate(written)]
        for info in filesystem.get_file_info(pafs.FileSelector(folder)):
            if info.base_name.startswith(prefix) and info.base_name not in names:  # left over from a failed attempt
                filesystem.move(info.path, posixpath.join(staged, f"left-{info.base_name}"))
        for source, name in zip(written, names, strict=True):
            filesystem.move(posixpath.join(staged, source), posixpath.join(folder, name))
        filesystem.move(posixpath.join(staged, PROGRESS), posixpath.join(folder, HIDDEN, PROGRESS))

    def _check_owner(self, owner: Mapping[str, Any]) -> None:
        if owner["identity"] != self.identity:
            raise SinkFailed(
                f"the folder `{self.sink.options['path']}` of sink `{self.sink.name}` belongs to another sink",
                detail=f"`{owner['sink']}` wrote to it: its files and those of this sink do not belong together",
                hint="use another folder, or remove this one",
            )

    def _read(self, filesystem: pafs.FileSystem, path: str) -> dict[str, Any] | None:
        """Read a file that `_sealed` encoded; None if it does not exist. Raises `SinkFailed` if it is damaged."""
        kind = filesystem.get_file_info(path).type
        if kind == pafs.FileType.NotFound:
            return None
        data = b""
        if kind == pafs.FileType.File:
            with filesystem.open_input_file(path) as file:
                data = file.read()
        try:
            fields: dict[str, Any] = json.loads(data)
            if _sealed(dict(fields)) != data:
                raise ValueError("it fails its checksum")
        except (ValueError, TypeError) as failure:
            raise SinkFailed(
                f"the progress of sink `{self.sink.name}` cannot be read",
                detail=f"`{path}` is damaged: {failure}",
                hint=f"restore `{posixpath.dirname(path)}` from a backup, or DROP SINK {self.sink.name} and create one "
                "that writes elsewhere",
            ) from failure
        return fields

    @property
    def _owner(self) -> dict[str, Any]:
        return {"sink": self.sink.name, "identity": self.identity}

    def _open(self) -> tuple[pafs.FileSystem, str]:
        """Open the folder. Raises `SinkFailed` if the hidden folder, or a file in it, is a symbolic link."""
        filesystem, folder = open_path(absolute(self.sink.options["path"]))
        if isinstance(filesystem, pafs.LocalFileSystem):
            hidden = os.path.join(folder, HIDDEN)
            entries = list(os.scandir(hidden)) if os.path.isdir(hidden) else []
            for path in [hidden] * os.path.islink(hidden) + [entry.path for entry in entries if entry.is_symlink()]:
                raise SinkFailed(
                    f"sink `{self.sink.name}` does not follow the symbolic link `{path}`",
                    detail="it keeps its progress there, and files that are not complete yet",
                    hint="remove the link; the folder of the sink itself may be one",
                )
        return filesystem, folder


@dataclass(frozen=True)
class WriteFile:
    """Writes a part of an epoch to a file. Sent to tasks."""

    path: str
    staged: str
    write: Writer
    options: Mapping[str, str]

    def __call__(self, number: int, chunks: Iterator[pa.Table]) -> str:
        """Write the chunks one by one. Returns the name of the file; "" if there are no rows."""
        first = next(chunks, None)
        if first is None:
            return ""
        filesystem, folder = open_path(self.path)
        name = f"{number:04d}-{token(8)}"
        with filesystem.open_output_stream(posixpath.join(folder, HIDDEN, self.staged, name)) as file:
            self.write(file, chain([first], chunks), self.options)
        return name


def _clear_staged(filesystem: pafs.FileSystem, hidden: str, delivery: Delivery) -> None:
    """Remove staged folders of earlier attempts: they failed, or must not continue. Raises `Fenced`."""
    names = [info.base_name for info in filesystem.get_file_info(pafs.FileSelector(hidden))]
    staged = [name for name in names if name.startswith(STAGED)]
    if any(_writer(name) > delivery.writer for name in staged):
        delivery.check_fence()  # a driver that takes over commits before it stages, so these are not of such a driver
    for name in staged:
        with suppress(FileNotFoundError):  # a driver that was replaced may remove it at the same time
            filesystem.delete_dir(posixpath.join(hidden, name))


def _writer(staged: str) -> int:
    number = staged.removeprefix(STAGED).partition("-")[0]
    return int(number) if number.isdigit() else -1


def _sealed(fields: Mapping[str, Any]) -> bytes:
    """Encode fields as JSON with their checksum; an earlier checksum is replaced."""
    plain = {name: value for name, value in fields.items() if name != CHECKSUM}
    checksum = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()
    return json.dumps({**plain, CHECKSUM: checksum}, sort_keys=True).encode()


def _replace(filesystem: pafs.FileSystem, staged: str, path: str, data: bytes) -> None:
    """Replace a small file atomically. Raises if our staged folder is gone."""
    complete = posixpath.join(staged, posixpath.basename(path))
    with filesystem.open_output_stream(complete) as file:
        file.write(data)
    filesystem.move(complete, path)
