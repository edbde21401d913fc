"""Files and folders of a state: readable only by their owner, and never accessed through a symbolic link.

Files are created with mode 0600 and folders with 0700, whatever the umask is. An existing folder keeps its mode.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, TextIO

FILE_MODE = 0o600
FOLDER_MODE = 0o700


class LinkError(OSError):
    """A symbolic link where a file or folder of a state is expected."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, f"`{path}` is a symbolic link")


def make_folder(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Create a folder, and those between `root` and it. Raises `LinkError` if one of them is a link.

    `root` itself may be a link. Missing folders above it are created with the mode of the umask. The default root is
    the nearest existing folder above `path`.
    """
    target = os.path.abspath(path)
    top = _nearest_folder(target) if root is None else os.fspath(root)
    if not os.path.isdir(top):
        os.makedirs(os.path.dirname(os.path.abspath(top)), exist_ok=True)
    name = os.path.relpath(target, os.path.abspath(top))
    refuse_links(top, name)
    for folder in (top, *_below(top, name)):
        try:
            os.mkdir(folder, FOLDER_MODE)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def refuse_links(root: str | os.PathLike[str], name: str) -> None:
    """Raise `LinkError` if a part of the relative path `name` below `root` is a link. Missing parts are ignored."""
    for path in _below(os.fspath(root), name):
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISLNK(mode):
            raise LinkError(path)


def _below(root: str, name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return ["/".join([root, *parts[: count + 1]]) for count in range(len(parts))]


def create_file(path: str | os.PathLike[str], *, buffering: int = -1) -> BinaryIO:
    """Open a new file for writing. Raises `FileExistsError` if the name exists, even as a link."""
    file: BinaryIO = open(path, "xb", buffering=buffering, opener=_private)  # noqa: SIM115
    return file


def replace_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for writing and truncate it if it exists. Raises `OSError` if it is a link."""
    file: BinaryIO = open(path, "wb", opener=_private)  # noqa: SIM115
    return file


def lock_file(path: str | os.PathLike[str]) -> TextIO:
    """Open a file for locking; its content is kept. Raises `OSError` if it is a link."""
    file: TextIO = open(path, "a", encoding="utf-8", opener=_private)  # noqa: SIM115
    return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
