"""File sources without Spark: list new files in order. The files that were read are part of the commit.

A Delta table is not a file source here: a test inserts its rows, as those of a topic.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from fnmatch import fnmatchcase
from os.path import abspath

from rejoinder.connectors.registry import source_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.source_replay import local_path
from rejoinder.errors import MissingInput
from rejoinder.formats.file_signatures import local_signature
from rejoinder.ir.catalog import Source
from rejoinder.ir.splits import FileSplit
from rejoinder.ir.streams import StreamId
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.state.positions import Positions, as_in_log
from rejoinder.store.commits.file_log import FileRead


def new_files(engine: Engine) -> tuple[Positions, list[FileSplit]]:
    """Return the positions after all unread files, and the splits of these files, oldest first."""
    positions = engine.version.positions
    splits: list[FileSplit] = []
    for scan in engine.dataflow.scans.values():
        if not isinstance(scan, SourceScan) or not source_side(scan.source).rereads_files:
            continue
        source = scan.source
        identity = engine.version.attached[source.name]
        seen = {local_path(file.path) for file in positions.files_read(engine.store, identity)}
        ordered = _limited(source, [path for path in _files(source) if abspath(path) not in seen])
        read: list[FileRead] = []
        last = -1
        for path in ordered:
            last = max(last + 1, os.stat(path).st_mtime_ns // 1_000_000)  # files of one millisecond keep their order
            read.append(FileRead(as_in_log(path), last, local_signature(path)))
        splits += [FileSplit(source.name, path, file.modified) for path, file in zip(ordered, read, strict=True)]
        positions = positions.with_files(engine.store, StreamId(identity), engine.epoch + 1, read)
    return positions, splits


def ignored_options(source: Source) -> str | None:
    """Return a warning about an option of a source that only Spark supports; None if it has none."""
    if source.options.get("cleansource", "off").lower() != "off":
        return f"files of `{source.name}` stay where they are: `cleanSource` counts on Spark only"
    if "maxfileage" in source.options:
        return f"files of `{source.name}` are read whatever their age: `maxFileAge` counts on Spark only"
    return None


def _limited(source: Source, unread: list[str]) -> list[str]:
    """Return the files that an epoch reads, oldest first: all, or up to the limits of the source."""
    options = source.options
    stats = {path: os.stat(path) for path in unread}
    oldest = sorted(unread, key=lambda path: (stats[path].st_mtime_ns, path))
    chosen = oldest[::-1] if _is_true(source, "latestfirst") else oldest
    chosen = chosen[: int(options.get("maxfilespertrigger", len(chosen)))]
    if "maxbytespertrigger" in options:
        sums = itertools.accumulate(stats[path].st_size for path in chosen)
        fitting = sum(total <= int(options["maxbytespertrigger"]) for total in sums)
        chosen = chosen[: max(1, fitting)]
    return sorted(chosen, key=oldest.index)


def _files(source: Source) -> list[str]:
    """List the files that the path and the options match, as Spark does. Raises `MissingInput`."""
    path = source.options["path"].removeprefix("file://")
    paths = [path] if os.path.exists(path) else [match for plain in _alternatives(path) for match in glob.glob(plain)]
    if not paths and _alternatives(path) == [path] and not glob.has_magic(path):
        raise MissingInput(
            f"path `{path}` of `{source.name}` does not exist", hint="create the folder, or correct OPTIONS (path '…')"
        )
    is_deep = _is_true(source, "recursivefilelookup")
    files = [file for path in paths for file in ([path] if os.path.isfile(path) else _inside(path, is_deep=is_deep))]
    patterns = _alternatives(source.options.get("pathglobfilter", "*"))
    names = {file: os.path.basename(file) for file in files}
    return [
        file
        for file, name in names.items()
        if not _is_hidden(name) and any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _inside(folder: str, *, is_deep: bool) -> list[str]:
    """List the files of a folder; with `is_deep`, also those of its folders that are not hidden."""
    entries = list(os.scandir(folder))
    files = [entry.path for entry in entries if entry.is_file()]
    deeper = [entry.path for entry in entries if is_deep and entry.is_dir() and not _is_hidden(entry.name)]
    return [*files, *(file for folder in deeper for file in _inside(folder, is_deep=True))]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith("._COPYING_")


def _alternatives(pattern: str) -> list[str]:
    """Expand the braces of a pattern: `*.{csv,txt}` gives two patterns."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [pattern for choice in braces.group(1).split(",") for pattern in _alternatives(before + choice + after)]


def _is_true(source: Source, option: str) -> bool:
    return source.options.get(option, "false").lower() == "true"
