"""The signature of a file: what tells that it was changed after it was read, without reading it again.

On a local disk it is the length and the time of the last change in nanoseconds. Elsewhere it is the length with the
ETag if the store has one, else with the time of the last change. A change that keeps all of these goes unnoticed.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow.fs as pafs


def local_signature(path: str) -> str:
    """The signature of a file on a local disk. Raises `OSError`.

    It is taken before the file is opened: a file that changes in between never matches its signature again.
    """
    found = os.stat(path)
    return f"{found.st_size}@{found.st_mtime_ns}"


def remote_signature(filesystem: pafs.FileSystem, path: str, file: Any) -> str:
    """The signature of an open file elsewhere. A store sends the ETag when a file is opened, so it costs no request."""
    metadata = {_text(key).lower(): _text(value) for key, value in (file.metadata() or {}).items()}
    tag = metadata.get("etag", "").strip('"')
    return f"{file.size()}#{tag}" if tag else f"{file.size()}@{filesystem.get_file_info(path).mtime_ns}"


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
