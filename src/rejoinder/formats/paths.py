"""Paths as Spark writes them, opened with Arrow's file systems."""

from __future__ import annotations

import pyarrow.fs as pafs


def open_path(path: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path as Spark writes it, and the path within it."""
    if path.startswith("file:"):
        return pafs.LocalFileSystem(), "/" + path[5:].lstrip("/")
    if "://" not in path:
        return pafs.LocalFileSystem(), path
    filesystem, local = pafs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    return filesystem, local
