"""File sources without Spark: which files are new, in which order. What was read is part of the commit.

A Delta table is none: its rows are put in by hand, as those of a topic are.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from fnmatch import fnmatchcase
from typing import Any

from rejoinder.engine.engine import Engine
from rejoinder.errors import MissingInput
from rejoinder.formats.file_signatures import local_signature
from rejoinder.ir.catalog import Source
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.sql.definitions.feed_definition import DELTA
from rejoinder.state.positions import files_read, with_files
from rejoinder.store.commits.file_log import FileRead

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
        seen = {each.path for each in files_read(engine.store, positions, identity)}
        ordered = _taken(source, [path for path in _files(source) if path not in seen])
        read: list[FileRead] = []
        last = -1
        for path in ordered:
            last = max(last + 1, os.stat(path).st_mtime_ns // 1_000_000)  # files of one millisecond keep their order
            read.append(FileRead(path, last, local_signature(path)))
        splits += [(source.name, each.path, each.modified, None) for each in read]
        positions = with_files(engine.store, positions, f"{identity}/0", engine.epoch + 1, read)
    return positions, splits


def unheeded(source: Source) -> str | None:
    """What a source says of files that counts on Spark only; None if there is nothing."""
    given = source.options
    if given.get("cleansource", "off").lower() != "off":
        return f"files of `{source.name}` stay where they are: `cleanSource` counts on Spark only"
    if "maxfileage" in given:
        return f"files of `{source.name}` are read whatever their age: `maxFileAge` counts on Spark only"
    return None


def _taken(source: Source, found: list[str]) -> list[str]:
    """The files that an epoch takes, oldest first: all, or as many as the source says."""
    options = source.options
    stats = {path: os.stat(path) for path in found}
    oldest = sorted(found, key=lambda path: (stats[path].st_mtime_ns, path))
    chosen = oldest[::-1] if _is_true(source, "latestfirst") else oldest
    chosen = chosen[: int(options.get("maxfilespertrigger", len(chosen)))]
    if "maxbytespertrigger" in options:
        sums = itertools.accumulate(stats[path].st_size for path in chosen)
        fitting = sum(total <= int(options["maxbytespertrigger"]) for total in sums)
        chosen = chosen[: max(1, fitting)]
    return sorted(chosen, key=oldest.index)


def _files(source: Source) -> list[str]:
    """All files that the path and the options name, as Spark finds them."""
    path = source.options["path"].removeprefix("file://")
    found = [path] if os.path.exists(path) else [one for plain in _alternatives(path) for one in glob.glob(plain)]
    if not found and _alternatives(path) == [path] and not glob.has_magic(path):
        raise MissingInput(
            f"path `{path}` of `{source.name}` does not exist", hint="create the folder, or correct OPTIONS (path '…')"
        )
    is_deep = _is_true(source, "recursivefilelookup")
    files = [file for one in found for file in ([one] if os.path.isfile(one) else _inside(one, is_deep=is_deep))]
    patterns = _alternatives(source.options.get("pathglobfilter", "*"))
    names = {file: os.path.basename(file) for file in files}
    return [
        file for file, name in names.items() if not _is_hidden(name) and any(fnmatchcase(name, one) for one in patterns)
    ]


def _inside(folder: str, *, is_deep: bool) -> list[str]:
    """The files of a folder; those of its folders too, if asked for and not hidden."""
    entries = list(os.scandir(folder))
    files = [entry.path for entry in entries if entry.is_file()]
    deeper = [entry.path for entry in entries if is_deep and entry.is_dir() and not _is_hidden(entry.name)]
    return [*files, *(file for one in deeper for file in _inside(one, is_deep=True))]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith("._COPYING_")


def _alternatives(pattern: str) -> list[str]:
    """The patterns that one with braces stands for: `*.{csv,txt}` is two."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [one for choice in braces.group(1).split(",") for one in _alternatives(before + choice + after)]


def _is_true(source: Source, option: str) -> bool:
    return source.options.get(option, "false").lower() == "true"
