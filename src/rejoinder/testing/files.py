"""File sources without Spark: which files are new, in which order. What was read is part of the commit.

A Delta table is none: its rows are put in by hand, as those of a topic are.
"""

from __future__ import annotations

import glob
import os
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.errors import MissingInput
from rejoinder.plan.catalog import Source
from rejoinder.plan.physical import SourceScan
from rejoinder.sql.feed_definition import DELTA

Splits = list[tuple[str, str | None, int, bytes | None]]


def new_files(engine: Engine) -> tuple[dict[str, Any], Splits]:
    """Splits of all files that no epoch has read yet, oldest first, and the positions after them."""
    positions: dict[str, Any] = dict(engine.positions)
    splits: Splits = []
    for scan in engine.dataflow.scans.values():
        if not isinstance(scan, SourceScan) or "path" not in scan.source.options or scan.source.format == DELTA:
            continue
        source = scan.source
        identity = engine.attached[source.name]
        seen = set(positions.get(identity, ()))
        found = [path for path in _files(source) if path not in seen]
        ordered = sorted(found, key=lambda path: (os.stat(path).st_mtime_ns, path))
        limit = source.options.get("maxfilespertrigger")
        ordered = ordered[: int(limit)] if limit else ordered
        positions[identity] = [*positions.get(identity, ()), *ordered]
        last = -1
        for path in ordered:
            last = max(last + 1, os.stat(path).st_mtime_ns // 1_000_000)  # files of one millisecond keep their order
            splits.append((source.name, path, last, None))
    return positions, splits


def _files(source: Source) -> list[str]:
    path = source.options["path"].removeprefix("file://")
    if glob.has_magic(path):
        return [p for p in glob.glob(path) if os.path.isfile(p)]
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise MissingInput(
            f"path `{path}` of `{source.name}` does not exist", hint="create the folder, or correct OPTIONS (path '…')"
        )
    return [
        os.path.join(path, name)
        for name in os.listdir(path)
        if not name.startswith((".", "_")) and os.path.isfile(os.path.join(path, name))
    ]
