"""The signature of a file detects that it was changed after it was read, without reading it again.

On a local disk it is the size and the modification time in nanoseconds. Elsewhere it is the size and the ETag, or the
modification time if the store has no ETag. A change that keeps all of these is not detected.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow.fs as pafs


def local_signature(path: str) -> str:
    """Return the signature of a file on a local disk. Raises `OSError`.

    Call this before the file is opened: a file that changes in between then never matches its signature again.
    """
    status = os.stat(path)
    return f"{status.st_size}@{status.st_mtime_ns}"


def remote_signature(filesystem: pafs.FileSystem, path: str, file: Any) -> str:
    """Return the signature of an open remote file. A store sends the ETag when a file is opened: no extra request."""
    metadata = {_text(key).lower(): _text(value) for key, value in (file.metadata() or {}).items()}
    tag = metadata.get("etag", "").strip('"')
    return f"{file.size()}#{tag}" if tag else f"{file.size()}@{filesystem.get_file_info(path).mtime_ns}"


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
