"""A run: an immutable, sorted piece of an arrangement or of a view's changelog, in one Arrow IPC file.

Invariants:
- rows ascend by `__hash`, and within a hash by the order column of the arrangement if it has one;
- the file never changes once its name is published;
- each task attempt gives its files new names; a manifest never names a file of a failed or late attempt;
- a reference may cover a part of the file's hashes (`first`..`last`): a run can be read by any number of tasks, and
  compacted piece by piece, without being rewritten;
- length and checksum are in the reference, so a truncated or corrupt file is detected before its rows are used.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.host.entropy import token
from rejoinder.ir.evolution.column_changes import ColumnChange, changes_hash, new_names, rehashing
from rejoinder.kernels.arrow.columns import EPOCH, diffs, drop_unit_diffs, hashes, numbers, replaced, without
from rejoinder.kernels.arrow.ipc_buffers import file_buffers
from rejoinder.kernels.arrow.sorting import LAST_HASH, group_starts, slice_of
from rejoinder.store.objects.checked_objects import CheckedRef, map_checked
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.changed_columns import changed_columns
from rejoinder.store.runs.time_values import NO_TIME, span_of

OPEN_RUNS = 4096
_CHANGED = "#"
"""Stands between the name of a run and the changes of its columns, in the cache."""


@dataclass(frozen=True)
class RunRef:
    """A manifest's reference to a run: a file, or the part of it that covers a range of hashes."""

    name: str
    """Name of the file in the object store."""
    size: int
    """Bytes of the whole file."""
    crc: int
    """CRC-32 of the whole file."""
    rows: int
    """Rows that the reference covers; an estimate if it covers a part of the file."""
    keys: int
    """Distinct hashes that the reference covers; an estimate likewise."""
    retractions: int
    """Rows of the file with a negative diff."""
    first: int
    """Smallest hash that the reference covers."""
    last: int
    """Largest hash that the reference covers."""
    run: str
    """The run that this piece belongs to: the name of its first file, or of the compaction that wrote it."""
    level: int
    """Size class."""
    epochs: tuple[int, int]
    """First and last epoch of the rows."""
    file_rows: int
    """Rows of the whole file."""
    into: str = ""
    """The run that a compaction in progress writes this one into."""
    segment: int = 0
    """Time segment. Runs of different segments are never compacted together."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """Time columns, such as those by which rows expire, each with its smallest and largest time."""
    nulls: tuple[str, ...] = ()
    """Those of the time columns that are NULL in some row."""
    changes: tuple[ColumnChange, ...] = ()
    """What ALTER did to the columns of the source after the run was written. Readers see the changed rows."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest; hashes as text, since JSON readers lose 64-bit integers.

        Default values are left out: every task reads this.
        """
        lists = {"epochs": list(self.epochs), "spans": list(map(list, self.spans)), "nulls": list(self.nulls)}
        lists["changes"] = [change.to_json() for change in self.changes]
        data = {**self.__dict__, "first": f"{self.first:x}", "last": f"{self.last:x}", **lists}
        defaults = {"run": self.name, "file_rows": self.rows, "into": "", "segment": 0, "retractions": 0}
        defaults |= {"spans": [], "nulls": [], "changes": []}
        return {name: value for name, value in data.items() if name not in defaults or value != defaults[name]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunRef:
        """Read what `to_json` returned, also in the older form with a single `span`."""
        fields: dict[str, Any] = {"run": data["name"], "file_rows": data["rows"], "retractions": 0, **data}
        fields |= {name: int(data[name], 16) for name in ("first", "last")}
        single_span = fields.pop("span", None)
        spans = data.get("spans", [] if single_span is None else [single_span])
        fields |= {"epochs": tuple(data["epochs"]), "spans": tuple(map(tuple, spans))}
        fields["nulls"] = tuple(data.get("nulls", ()))
        fields["changes"] = tuple(map(ColumnChange.from_json, data.get("changes", ())))
        return cls(**fields)

    def clipped(self, first: int, last: int) -> RunRef:
        """Return the part within a range of hashes; counts are scaled in proportion, since hashes are uniform."""
        low, high = max(first, self.first), min(last, self.last)
        if (low, high) == (self.first, self.last):
            return self
        width = self.last - self.first + 1

        def share(amount: int) -> int:
            return amount * (high + 1 - self.first) // width - amount * (low - self.first) // width

        return replace(self, first=low, last=high, rows=share(self.rows), keys=share(self.keys))

    def changed(self, changes: Sequence[ColumnChange], *, by_row: bool) -> RunRef:
        """Return the reference to the rows after column changes. `by_row`: rows are sorted by the whole row."""
        names = new_names(changes, [name for name, _, _ in self.spans])
        more = rehashing(changes, (self.first, self.last)) if by_row else tuple(changes)
        bounds = (0, LAST_HASH) if by_row and changes_hash(changes) else (self.first, self.last)
        return replace(
            self,
            first=bounds[0],
            last=bounds[1],
            spans=tuple((names[name], low, high) for name, low, high in self.spans if name in names),
            nulls=tuple(names[name] for name in self.nulls if name in names),
            changes=(*self.changes, *more),
        )

    def overlaps(self, first: int, last: int) -> bool:
        """Whether the reference covers a hash in first..last."""
        return self.first <= last and first <= self.last

    def span(self, column: str) -> tuple[int, int] | None:
        """Return the smallest and the largest time of a column; None if the run was written without its span.

        NULL counts as `NO_TIME`, later than any time.
        """
        spans = ((low, high) for name, low, high in self.spans if name == column)
        return next(((low, NO_TIME if column in self.nulls else high) for low, high in spans), None)

    def latest(self, column: str) -> int | None:
        """Return the largest time of a column, NULL left out; None if the run was written without its span."""
        return next((high for name, _, high in self.spans if name == column), None)

    @property
    def bytes(self) -> int:
        """The share of the file's size that this reference covers."""
        return self.size * self.rows // max(1, self.file_rows)


def lies_in(ref: RunRef, column: str, after: int, until: int) -> bool:
    """Whether a run may hold rows with `after` < `column` <= `until`."""
    span = ref.span(column)
    return span is None or (span[0] <= until and span[1] > after)


def new_name(folder: str, epoch: int) -> str:
    """Return a new file name, unique among all attempts of all tasks."""
    return f"{folder_of(epoch, folder)}/{token(16)}.arrow"


def folder_of(epoch: int, folder: str = "runs") -> str:
    """Return the folder of the files of an epoch."""
    return f"{folder}/{epoch:010d}"


def write_run(
    store: ObjectStore,
    table: pa.Table,
    *,
    epoch: int,
    level: int,
    bounds: tuple[int, int],
    run: str = "",
    segment: int = 0,
    times: Iterable[str] = (),
) -> RunRef:
    """Write a table sorted by `__hash` as a new run, and return the reference to it.

    `bounds`: the range of hashes that the run covers; `times`: the columns whose spans the reference stores.
    """
    table = drop_unit_diffs(table)
    epochs = (epoch, epoch)
    if EPOCH in table.column_names and table.num_rows:
        values = numbers(table, EPOCH)
        epochs = (int(values.min()), int(values.max()))
        if epochs[0] == epochs[1]:
            table = without(table, [EPOCH])
    sink = file_buffers(table)
    name = new_name("runs", epoch)
    store.write(name, sink.parts)
    _mark_written(store, name)
    keys = len(group_starts(hashes(table)))
    retractions = int(np.count_nonzero(diffs(table) < 0))
    return RunRef(
        name=name,
        size=sink.size,
        crc=sink.crc,
        rows=table.num_rows,
        keys=keys,
        retractions=retractions,
        first=bounds[0],
        last=bounds[1],
        run=run or name,
        level=level,
        epochs=epochs,
        file_rows=table.num_rows,
        segment=segment,
        spans=tuple((name, *span_of(table, name)) for name in times),
        nulls=tuple(name for name in times if table.column(name).null_count),
    )


def read_run(store: ObjectStore, ref: RunRef) -> pa.Table:
    """Return the rows that the reference covers, memory-mapped. Raises `Corrupt` if the file fails its checksum."""
    table = _open(store, ref) if not ref.changes else _open_changed(store, ref)
    begin, end = slice_of(hashes(table), ref.first, ref.last)
    return table.slice(begin, end - begin)


def with_epoch(table: pa.Table, ref: RunRef) -> pa.Table:
    """Return the rows of a changelog run with `__epoch`, which a run of a single epoch does not store."""
    if EPOCH in table.column_names:
        return table
    return replaced(table, EPOCH, np.full(table.num_rows, ref.epochs[0], np.int64))


def close_runs(store: ObjectStore, names: Iterable[str]) -> None:
    """Unmap runs that are no longer read: a mapped file stays in memory after it is deleted."""
    closed = set(names)
    for name in [name for name in _cache(store) if name.partition(_CHANGED)[0] in closed]:
        del _cache(store)[name]
    for name in closed:
        _written(store).pop(name, None)


def keep_open(store: ObjectStore, names: Collection[str]) -> None:
    """Unmap all runs but the named ones: runs that the state no longer names will be deleted."""
    open_names = {name.partition(_CHANGED)[0] for name in _cache(store)}
    close_runs(store, open_names.difference(names))


def drop_open_runs(store: ObjectStore) -> None:
    """Unmap all runs and verify them again at the next read, as if this process had neither read nor written them."""
    _cache(store).clear()
    _written(store).clear()


_opened: dict[tuple[int, str], OrderedDict[str, pa.Table]] = {}
_own: dict[tuple[int, str], OrderedDict[str, None]] = {}


def _written(store: ObjectStore) -> OrderedDict[str, None]:
    """Return the names of runs that this process wrote recently: their checksums need no verification."""
    return _own.setdefault((os.getpid(), store.url), OrderedDict())


def _mark_written(store: ObjectStore, name: str) -> None:
    written = _written(store)
    written[name] = None
    while len(written) > OPEN_RUNS:
        written.popitem(last=False)


def _cache(store: ObjectStore) -> OrderedDict[str, pa.Table]:
    return _opened.setdefault((os.getpid(), store.url), OrderedDict())


def _open(store: ObjectStore, ref: RunRef) -> pa.Table:
    cache = _cache(store)
    table = cache.get(ref.name)
    if table is None:
        table = _verified(store, ref)
        cache[ref.name] = table
        while len(cache) > OPEN_RUNS:
            cache.popitem(last=False)
    else:
        cache.move_to_end(ref.name)
    return table


def _open_changed(store: ObjectStore, ref: RunRef) -> pa.Table:
    """Return the whole run after the changes of a reference. They are applied once, as long as it is in the cache."""
    cache, name = _cache(store), f"{ref.name}{_CHANGED}{hash(ref.changes)}"
    if name not in cache:
        cache[name] = changed_columns(_open(store, ref), ref.changes)
    cache.move_to_end(name)
    return cache[name]


def _verified(store: ObjectStore, ref: RunRef) -> pa.Table:
    """Map a run and verify its checksum, unless this process wrote it. A bad cached copy is fetched once more."""
    if ref.name in _written(store):
        data = store.map(ref.name, ref.size)
        del _written(store)[ref.name]
    else:
        data = map_checked(store, CheckedRef(ref.name, ref.size, ref.crc), "a run")
    return pa.ipc.open_file(data).read_all()
