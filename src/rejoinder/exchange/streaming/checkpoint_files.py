"""Text files of Spark's checkpoint: on a local or mounted disk, or on a file system of Hadoop."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Protocol

from rejoinder.host.private_files import make_folder, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CheckpointFiles(Protocol):
    """The file system operations of a checkpoint."""

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if it does not exist. Bytes that are not text are replaced."""

    def write(self, path: str, text: str) -> None:
        """Write a new file; create the folders above it."""

    def list(self, folder: str) -> list[str]:
        """Return the names in a folder, without hidden ones; none if the folder does not exist."""

    def is_folder(self, path: str) -> bool:
        """Whether a folder of that name exists."""

    def copy(self, folder: str, target: str) -> None:
        """Copy a folder of files that never change."""

    def delete(self, folder: str) -> None:
        """Delete a folder with its content."""


class LocalFiles:
    """Files of this machine."""

    def read(self, path: str) -> str | None:
        try:
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                return file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def write(self, path: str, text: str) -> None:
        make_folder(os.path.dirname(path))
        with replace_file(path) as file:
            file.write(text.encode())

    def list(self, folder: str) -> list[str]:
        return [name for name in os.listdir(folder) if not name.startswith(".")] if os.path.isdir(folder) else []

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def copy(self, folder: str, target: str) -> None:
        """Copy by hard links where the file system has them."""
        shutil.copytree(folder, target, copy_function=_link)

    def delete(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)


class HadoopFiles:
    """Files on a file system of Hadoop: s3a://, gs://, abfs://, hdfs://."""

    def __init__(self, session: SparkSession) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._conf: Any = session._jsc.hadoopConfiguration()

    def read(self, path: str) -> str | None:
        system, place = self._open(path)
        if not system.exists(place) or not system.getFileStatus(place).isFile():
            return None
        stream = system.open(place)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        system, place = self._open(path)
        stream = system.create(place, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def list(self, folder: str) -> list[str]:
        system, place = self._open(folder)
        if not self.is_folder(folder):
            return []
        names = [str(status.getPath().getName()) for status in system.listStatus(place)]
        return [name for name in names if not name.startswith(".")]

    def is_folder(self, path: str) -> bool:
        system, place = self._open(path)
        return bool(system.exists(place) and system.getFileStatus(place).isDirectory())

    def copy(self, folder: str, target: str) -> None:
        """Copy file by file."""
        system, place = self._open(folder)
        into, new = self._open(target)
        self._jvm.org.apache.hadoop.fs.FileUtil.copy(system, place, into, new, False, self._conf)

    def delete(self, folder: str) -> None:
        system, place = self._open(folder)
        system.delete(place, True)

    def _open(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._conf), place


def _link(old: str, new: str) -> None:
    """Copy a file that is never changed in place."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy(old, new)
