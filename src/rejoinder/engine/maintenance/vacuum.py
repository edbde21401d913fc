"""Vacuum: deletes what nobody names any more, in the store and in the folders beside it.

In the store: see `store.commits.unnamed_files`. Beside it, if the state is on a disk:

- generations of Spark's checkpoint before the last two, and those that were never named and are old;
- files of rows that were inserted and that a committed epoch has read; all files of sources that are not defined any
  more. The newest file of a source stays: the next one is numbered after it;
- tick files but the newest; temporary files of killed writers; queries on a cluster whose process was killed.

On this host: folders of processes that were killed (`host.temporary_folders`).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from rejoinder.engine.content import named_files
from rejoinder.host.temporary_folders import abandoned_folders, remove_abandoned
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.state.inbox_names import inbox_name
from rejoinder.state.positions import position_of
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.commits.unnamed_files import Garbage, delete_garbage, find_garbage
from rejoinder.store.objects.object_store import ObjectStore

QUERIES = "queries"
"""The folder in a state that holds the flows of queries on a cluster, while they run."""

OLDER_THAN_SECONDS = 24 * 3600.0
"""How old what may be an attempt under way must be: longer than any epoch takes."""

_GENERATION = re.compile(r"(\d+)-[0-9a-f]{8}")
_INBOX = re.compile(r"[0-9a-f]{16}")
_ROWS = re.compile(r"\d{20}[-.\w]*\.arrow")
_PART = re.compile(r"\.\d{20}[-.\w]*\.part")
_TICK = re.compile(r"[0-9a-f]{16}\.tick")
_TEMPORARY = re.compile(r"\d+-[0-9a-f]{16}")
_QUERY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Vacuumed:
    """What was deleted, or would be."""

    garbage: tuple[Garbage, ...]
    dry_run: bool

    @property
    def bytes(self) -> int:
        """The size of it all."""
        return sum(each.bytes for each in self.garbage)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Number and bytes by kind, in the order in which they were found."""
        result: dict[str, tuple[int, int]] = {}
        for each in self.garbage:
            count, size = result.get(each.kind, (0, 0))
            result[each.kind] = (count + 1, size + each.bytes)
        return result


def vacuum(
    store: ObjectStore,
    *,
    dry_run: bool,
    older_than_seconds: float = OLDER_THAN_SECONDS,
    checkpoint: str | None = None,
    waiting: str | None = None,
) -> Vacuumed:
    """Delete what nobody names; with `dry_run` only list it. It is safe while the flow runs.

    `checkpoint` and `waiting` are the folders of Spark's checkpoint, and of inserted rows and ticks, if they are on
    this machine; those of a state on a disk are known.
    """
    if store.is_local:
        checkpoint, waiting = checkpoint or f"{store.path}/spark", waiting or store.path
    manifest = newest(store)
    in_store = find_garbage(store, named_files, older_than_seconds)
    beside: list[Garbage] = []
    if manifest is not None:
        old = time.time() - older_than_seconds
        beside += [*_temporary(store.path, old), *_queries(store.path, old)] if store.is_local else ()
        beside += _generations(checkpoint, manifest, old) if checkpoint else ()
        beside += [*_inserted(waiting, manifest, store, old), *_ticks(waiting)] if waiting else ()
    abandoned = [Garbage("folders of killed processes", path, _size(path)) for path in abandoned_folders()]
    if not dry_run:
        delete_garbage(store, in_store)
        for each in beside:
            _remove(each.name)
        for each in abandoned:
            remove_abandoned(each.name)
    return Vacuumed((*in_store, *beside, *abandoned), dry_run)


def _generations(folder: str, manifest: Manifest, old: float) -> Iterator[Garbage]:
    """The one that is named and the one before it stay: its driver may still be using it."""
    known = manifest.extra["positions"].get("spark", {"number": -1, "folder": ""})
    for name, path in _in(folder, _GENERATION, is_folder=True):
        number = int(name.partition("-")[0])
        is_unnamed = name != known["folder"] and number >= known["number"] and os.lstat(path).st_mtime < old
        if number < known["number"] - 1 or is_unnamed:
            yield Garbage("generations of Spark's checkpoint", path, _size(path))


def _inserted(waiting: str, manifest: Manifest, store: ObjectStore, old: float) -> Iterator[Garbage]:
    attached = manifest.extra["attached"]
    read_sources = [source for source in Catalog.from_json(manifest.catalog).sources if source.name in attached]
    sources = {inbox_name(source.name, attached[source.name]): source for source in read_sources}
    for folder, path in _in(f"{waiting}/inbox", _INBOX, is_folder=True):
        if folder not in sources:
            if os.lstat(path).st_mtime < old:  # a definition may be under way
                yield Garbage("rows of dropped sources", path, _size(path))
            continue
        read = _read(sources[folder], manifest, store)
        files = list(_in(path, _ROWS))
        yield from (Garbage("inserted rows, read", path, _size(path)) for name, path in files[:-1] if name in read)
        parts = _in(path, _PART)
        yield from (Garbage("temporary files", path, _size(path)) for _, path in parts if os.lstat(path).st_mtime < old)


def _read(source: Source, manifest: Manifest, store: ObjectStore) -> set[str]:
    """The names of the files of a source that committed epochs have read."""
    files = position_of(manifest.extra["positions"], f"{manifest.extra['attached'][source.name]}/0").files
    return {each.path.rpartition("/")[2] for each in files.read(store)}


def _ticks(waiting: str) -> Iterator[Garbage]:
    ticks = sorted(_in(f"{waiting}/ticks", _TICK), key=lambda each: os.lstat(each[1]).st_mtime_ns)
    yield from (Garbage("ticks", path, 0) for _, path in ticks[:-1])


def _temporary(root: str, old: float) -> Iterator[Garbage]:
    for _, path in _in(f"{root}/.temporary", _TEMPORARY):
        if os.lstat(path).st_mtime < old:
            yield Garbage("temporary files", path, _size(path))


def _queries(root: str, old: float) -> Iterator[Garbage]:
    for _, path in _in(f"{root}/{QUERIES}", _QUERY, is_folder=True):
        if _last_change(path) < old:
            yield Garbage("queries that were killed", path, _size(path))


def _last_change(path: str) -> float:
    """When something was last written in a folder."""
    inside = (f"{folder}/{name}" for folder, folders, files in os.walk(path) for name in (*folders, *files))
    return max((os.lstat(each).st_mtime for each in (path, *inside)), default=0.0)


def _in(folder: str, pattern: re.Pattern[str], *, is_folder: bool = False) -> Iterator[tuple[str, str]]:
    """The real files, or folders, of a folder whose names match, sorted; never links."""
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        kind = entry.is_dir(follow_symlinks=False) if is_folder else entry.is_file(follow_symlinks=False)
        if kind and pattern.fullmatch(entry.name):
            yield entry.name, entry.path


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.lstat(path).st_size
    return sum(os.lstat(f"{folder}/{file}").st_size for folder, _, files in os.walk(path) for file in files)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)  # follows no links
        return
    with suppress(FileNotFoundError):
        os.unlink(path)
