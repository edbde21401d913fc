"""Vacuum: deletes unreferenced files in the store and in the folders beside it.

In the store: see `store.commits.unnamed_files`. Beside it, if the state is on a local disk:

- generations of Spark's checkpoint before the last two, and old ones that no manifest references;
- files of inserted rows that a committed epoch has read, and all files of dropped sources. The newest file of a source
  stays, because the next one is numbered after it;
- all tick files except the newest, temporary files of killed writers, and killed queries on a cluster.

On this host: folders of killed processes (`host.temporary_folders`).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from rejoinder.engine.version import named_files
from rejoinder.host.temporary_folders import abandoned_folders, remove_abandoned
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.streams import Generation, StreamId
from rejoinder.state.inbox_names import inbox_name
from rejoinder.state.positions import Positions
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.commits.unnamed_files import Garbage, delete_garbage, find_garbage
from rejoinder.store.objects.object_store import ObjectStore

QUERIES = "queries"
"""The folder of the state with the temporary flows of queries on a cluster."""

OLDER_THAN_SECONDS = 24 * 3600.0
"""The minimum age of files that may belong to a running attempt: longer than any epoch takes."""

_GENERATION = re.compile(r"(\d+)-[0-9a-f]{8}")
_INBOX = re.compile(r"[0-9a-f]{16}")
_ROWS = re.compile(r"\d{20}[-.\w]*\.arrow")
_PART = re.compile(r"\.\d{20}[-.\w]*\.part")
_TICK = re.compile(r"[0-9a-f]{16}\.tick")
_TEMPORARY = re.compile(r"\d+-[0-9a-f]{16}")
_QUERY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Vacuumed:
    """The deleted files, or with `dry_run` those to be deleted."""

    garbage: tuple[Garbage, ...]
    dry_run: bool

    @property
    def bytes(self) -> int:
        """The total size."""
        return sum(item.bytes for item in self.garbage)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Return number and bytes by kind, in the order in which they were found."""
        result: dict[str, tuple[int, int]] = {}
        for item in self.garbage:
            count, size = result.get(item.kind, (0, 0))
            result[item.kind] = (count + 1, size + item.bytes)
        return result


def vacuum(
    store: ObjectStore,
    *,
    dry_run: bool,
    older_than_seconds: float = OLDER_THAN_SECONDS,
    checkpoint: str | None = None,
    pending: str | None = None,
) -> Vacuumed:
    """Delete unreferenced files; with `dry_run`, only list them. Safe while the flow runs.

    `checkpoint` and `pending` are the folders of Spark's checkpoint, and of inserted rows and ticks, if they are on
    this machine. For a state on a local disk they need not be given.
    """
    if store.is_local:
        checkpoint, pending = checkpoint or f"{store.path}/spark", pending or store.path
    manifest = newest(store)
    in_store = find_garbage(store, named_files, older_than_seconds)
    beside: list[Garbage] = []
    if manifest is not None:
        old = time.time() - older_than_seconds
        beside += [*_temporary(store.path, old), *_queries(store.path, old)] if store.is_local else ()
        beside += _generations(checkpoint, manifest, old) if checkpoint else ()
        beside += [*_inserted(pending, manifest, store, old), *_ticks(pending)] if pending else ()
    abandoned = [Garbage("folders of killed processes", path, _size(path)) for path in abandoned_folders()]
    if not dry_run:
        delete_garbage(store, in_store)
        for item in beside:
            _remove(item.name)
        for item in abandoned:
            remove_abandoned(item.name)
    return Vacuumed((*in_store, *beside, *abandoned), dry_run)


def _generations(folder: str, manifest: Manifest, old: float) -> Iterator[Garbage]:
    """Yield old generations. The current one and the one before it stay, since a driver may still use that."""
    current = Positions.from_json(manifest.extra["positions"]).spark or Generation(-1, "", ())
    for name, path in _entries(folder, _GENERATION, is_folder=True):
        number = int(name.partition("-")[0])
        is_unnamed = name != current.folder and number >= current.number and os.lstat(path).st_mtime < old
        if number < current.number - 1 or is_unnamed:
            yield Garbage("generations of Spark's checkpoint", path, _size(path))


def _inserted(pending: str, manifest: Manifest, store: ObjectStore, old: float) -> Iterator[Garbage]:
    attached = manifest.extra["attached"]
    read_sources = [source for source in Catalog.from_json(manifest.catalog).sources if source.name in attached]
    sources = {inbox_name(source.name, attached[source.name]): source for source in read_sources}
    for folder, path in _entries(f"{pending}/inbox", _INBOX, is_folder=True):
        if folder not in sources:
            if os.lstat(path).st_mtime < old:  # a newer one may belong to a definition that is not committed yet
                yield Garbage("rows of dropped sources", path, _size(path))
            continue
        read = _read(sources[folder], manifest, store)
        files = list(_entries(path, _ROWS))
        yield from (Garbage("inserted rows, read", path, _size(path)) for name, path in files[:-1] if name in read)
        parts = _entries(path, _PART)
        yield from (Garbage("temporary files", path, _size(path)) for _, path in parts if os.lstat(path).st_mtime < old)


def _read(source: Source, manifest: Manifest, store: ObjectStore) -> set[str]:
    """Return the names of the files of a source that committed epochs have read."""
    stream = StreamId(manifest.extra["attached"][source.name])
    files = Positions.from_json(manifest.extra["positions"]).of(stream).files
    return {file.path.rpartition("/")[2] for file in files.read(store)}


def _ticks(pending: str) -> Iterator[Garbage]:
    ticks = sorted(_entries(f"{pending}/ticks", _TICK), key=lambda entry: os.lstat(entry[1]).st_mtime_ns)
    yield from (Garbage("ticks", path, 0) for _, path in ticks[:-1])


def _temporary(root: str, old: float) -> Iterator[Garbage]:
    for _, path in _entries(f"{root}/.temporary", _TEMPORARY):
        if os.lstat(path).st_mtime < old:
            yield Garbage("temporary files", path, _size(path))


def _queries(root: str, old: float) -> Iterator[Garbage]:
    for _, path in _entries(f"{root}/{QUERIES}", _QUERY, is_folder=True):
        if _last_change(path) < old:
            yield Garbage("queries that were killed", path, _size(path))


def _last_change(path: str) -> float:
    """Return the time of the last write in a folder."""
    inside = (f"{folder}/{name}" for folder, folders, files in os.walk(path) for name in (*folders, *files))
    return max((os.lstat(file).st_mtime for file in (path, *inside)), default=0.0)


def _entries(folder: str, pattern: re.Pattern[str], *, is_folder: bool = False) -> Iterator[tuple[str, str]]:
    """Yield name and path of the files, or folders, with matching names, sorted by name. Skips symbolic links."""
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    for entry in sorted(os.scandir(folder), key=lambda item: item.name):
        matches = entry.is_dir(follow_symlinks=False) if is_folder else entry.is_file(follow_symlinks=False)
        if matches and pattern.fullmatch(entry.name):
            yield entry.name, entry.path


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.lstat(path).st_size
    return sum(os.lstat(f"{folder}/{file}").st_size for folder, _, files in os.walk(path) for file in files)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)  # does not follow links
        return
    with suppress(FileNotFoundError):
        os.unlink(path)
