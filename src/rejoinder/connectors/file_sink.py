"""Parquet, CSV and JSON files: the changes of an epoch appended as files that carry its number, once.

Layout of the folder: `epoch-0000000012-0000.parquet` and so on, and `_rejoinder/` beside them, which readers pass over:
the sink that owns the folder, how far it has got, and files that are not whole yet. Tasks write there; when all files
of an epoch are whole they are moved to their names, then the epoch is noted. An attempt that died in between is written
anew over its own names, and what it left over is removed. So an epoch is there once, however often it is tried.

Fence: an attempt stages its files in a folder of its own, `staged-<writer epoch>-<random>`. It changes the sink only by
renames from and to that folder, the note of the epoch among them. A driver removes the staged folders of the writers
before it, never those of later ones, before it stages its own. A driver that was replaced and wakes up later finds its
folder gone: its renames fail and change nothing.

An object store has no renames: a move is a copy, which fails if its source is gone, and a delete. So there, too, only a
copy that the store was asked for before the takeover and carries out after it can still change something. It does no
harm. Two drivers deliver an epoch from the same manifest, so a file that is written late holds what it held. A note
that is written late says that the sink is less far: the next start writes later epochs again, under the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from rejoinder.connectors.delivery import Delivery, absolute
from rejoinder.errors import SinkFailed
from rejoinder.faults import reach
from rejoinder.formats import open_path
from rejoinder.host.entropy import token
from rejoinder.ir.catalog import Sink
from rejoinder.kernels.duckdb.json_text import json_lines
from rejoinder.state.neutral_text import guarded_table

HIDDEN = "_rejoinder"
OWNER, PROGRESS, STAGED = "sink.json", "progress.json", "staged-"
CHECKSUM = "checksum"


@dataclass(frozen=True)
class FilesTarget:
    """A folder of files, local or in an object store."""

    sink: Sink
    identity: str
    remembers: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse a folder that cannot be made or written, or that another sink has filled."""
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
        """The last epoch whose files are all there."""
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
            if delivery.is_first:  # else the folder is there, or was lost: it is never made anew around one epoch
                filesystem.create_dir(hidden, recursive=True)
            _clear_staged(filesystem, hidden, delivery.writer)
            filesystem.create_dir(staged, recursive=False)
            _replace(filesystem, staged, posixpath.join(hidden, OWNER), _sealed(self._owner))
            written = delivery.run(
                WriteFile(
                    absolute(self.sink.options["path"]),
                    posixpath.basename(staged),
                    self.sink.format,
                    is_guarded=self.sink.options.get("guard", "true").lower() == "true",
                )
            )
            reach("in_delivery", delivery.epoch)
            # The note is staged before the look at the fence: after it nothing is done but moves out of our folder.
            with filesystem.open_output_stream(posixpath.join(staged, PROGRESS)) as file:
                file.write(_sealed({**self._owner, "epoch": delivery.epoch, "writer": delivery.writer}))
            delivery.check_fence()
            self._publish(filesystem, staged, list(filter(None, written)), delivery)
        except Exception:
            delivery.check_fence()  # our folder is gone: whoever took over has removed it
            raise
        with suppress(FileNotFoundError):  # whoever took over since may have removed it
            filesystem.delete_dir(staged)

    def _publish(self, filesystem: pafs.FileSystem, staged: str, written: list[str], delivery: Delivery) -> None:
        """Move the files of an epoch to their names, and note the epoch."""
        _, folder = self._open()
        prefix = f"epoch-{delivery.epoch:010d}-"
        names = [f"{prefix}{number:04d}.{self.sink.format}" for number, _ in enumerate(written)]
        for info in filesystem.get_file_info(pafs.FileSelector(folder)):
            if info.base_name.startswith(prefix) and info.base_name not in names:  # of an attempt that died
                filesystem.move(info.path, posixpath.join(staged, f"left-{info.base_name}"))
        for source, name in zip(written, names, strict=True):
            filesystem.move(posixpath.join(staged, source), posixpath.join(folder, name))
        filesystem.move(posixpath.join(staged, PROGRESS), posixpath.join(folder, HIDDEN, PROGRESS))

    def _check_owner(self, owner: Mapping[str, Any]) -> None:
        if owner["identity"] != self.identity:
            raise SinkFailed(
                f"the folder `{self.sink.options['path']}` of sink `{self.sink.name}` belongs to another sink",
                detail=f"`{owner['sink']}` wrote to it: what is there and what would come do not belong together",
                hint="use another folder, or remove this one",
            )

    def _read(self, filesystem: pafs.FileSystem, path: str) -> dict[str, Any] | None:
        """What `_sealed` made; None if there is no such file. Raises `SinkFailed` if it is damaged."""
        found = filesystem.get_file_info(path).type
        if found == pafs.FileType.NotFound:
            return None
        data = b""
        if found == pafs.FileType.File:
            with filesystem.open_input_file(path) as file:
                data = file.read()
        try:
            fields: dict[str, Any] = json.loads(data)
            if _sealed(dict(fields)) != data:
                raise ValueError("it fails its checksum")
        except (ValueError, TypeError) as failure:
            raise SinkFailed(
                f"sink `{self.sink.name}` cannot tell which epochs it has",
                detail=f"`{path}` is damaged: {failure}",
                hint=f"restore `{posixpath.dirname(path)}` from a backup, or DROP SINK {self.sink.name} and create one "
                "that writes elsewhere",
            ) from failure
        return fields

    @property
    def _owner(self) -> dict[str, Any]:
        return {"sink": self.sink.name, "identity": self.identity}

    def _open(self) -> tuple[pafs.FileSystem, str]:
        """The folder. Raises `SinkFailed` if what the sink keeps for itself in it is reached through a link."""
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
    """Writes a part of an epoch to a file of its own, wherever it is run; gives its name, "" if there are no rows."""

    path: str
    staged: str
    format: str
    is_guarded: bool = True

    def __call__(self, number: int, chunks: Iterator[pa.Table]) -> str:
        """Write the chunks one by one."""
        first = next(chunks, None)
        if first is None:
            return ""
        filesystem, folder = open_path(self.path)
        name = f"{number:04d}-{token(8)}"
        with filesystem.open_output_stream(posixpath.join(folder, HIDDEN, self.staged, name)) as file:
            match self.format:
                case "parquet":
                    with pq.ParquetWriter(file, first.schema) as writer:
                        for chunk in _again(first, chunks):
                            writer.write_table(chunk)
                case "csv":
                    prepared = guarded_table if self.is_guarded else _as_it_is
                    with pacsv.CSVWriter(file, prepared(first).schema) as writer:
                        for chunk in _again(first, chunks):
                            writer.write_table(prepared(chunk))
                case _:
                    for chunk in _again(first, chunks):
                        file.write(json_lines(chunk))
        return name


def _clear_staged(filesystem: pafs.FileSystem, hidden: str, writer: int) -> None:
    """Remove what attempts have left that are not of a later writer: they failed, or must not go on."""
    for info in filesystem.get_file_info(pafs.FileSelector(hidden)):
        number = info.base_name.removeprefix(STAGED).partition("-")[0]
        if info.base_name.startswith(STAGED) and not (number.isdigit() and int(number) > writer):
            with suppress(FileNotFoundError):  # a driver that was replaced may be at the same
                filesystem.delete_dir(info.path)


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


def _again(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _sealed(fields: Mapping[str, Any]) -> bytes:
    """The fields as JSON, with their checksum (an earlier one is replaced)."""
    plain = {name: value for name, value in fields.items() if name != CHECKSUM}
    checksum = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()
    return json.dumps({**plain, CHECKSUM: checksum}, sort_keys=True).encode()


def _replace(filesystem: pafs.FileSystem, staged: str, path: str, data: bytes) -> None:
    """Replace a small file in one step, unless our staged folder is gone."""
    whole = posixpath.join(staged, posixpath.basename(path))
    with filesystem.open_output_stream(whole) as file:
        file.write(data)
    filesystem.move(whole, path)
