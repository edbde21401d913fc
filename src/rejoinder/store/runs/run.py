"""A run: an immutable, sorted piece of an arrangement or of a view's changelog, in one Arrow IPC file.

Invariants:
- rows ascend by `__hash`, and within a hash by the order column of the arrangement if it has one;
- the file never changes after its name is known to anybody;
- a file is named once, by one task attempt; what a failed or late attempt wrote is never named by a manifest;
- a reference may cover a part of the file's hashes (`first`..`last`): a run can be read by any number of tasks, and
  merged piece by piece, without being rewritten;
- length and checksum are in the reference, so a truncated or flipped file is noticed before its rows are used.
"""

from __future__ import annotations

import os
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.errors import Corrupt
from rejoinder.host.entropy import token
from rejoinder.kernels.arrow.columns import EPOCH, diffs, drop_unit_diffs, hashes, numbers, replaced, without
from rejoinder.kernels.arrow.ipc_buffers import file_buffers
from rejoinder.kernels.arrow.sorting import group_starts, slice_of
from rejoinder.store.objects.object_store import ObjectStore
from rejoinder.store.runs.time_values import TIMELESS, span_of

OPEN_RUNS = 4096


@dataclass(frozen=True)
class RunRef:
    """What a manifest says about a run: where it is, how large, and which part of it counts.

    `spans`: columns of times, such as those by which rows are forgotten, each with its smallest and largest; `nulls`:
    those of them in which some row has none. Runs of different segments are never merged with each other.
    """

    name: str
    size: int
    crc: int
    rows: int
    keys: int
    retractions: int
    first: int
    last: int
    run: str
    level: int
    epochs: tuple[int, int]
    file_rows: int
    into: str = ""
    segment: int = 0
    spans: tuple[tuple[str, int, int], ...] = ()
    nulls: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give plain data for the manifest; hashes as text, since JSON readers lose 64-bit integers.

        What most runs have in common is left out: every task reads this.
        """
        lists = {"epochs": list(self.epochs), "spans": list(map(list, self.spans)), "nulls": list(self.nulls)}
        data = {**self.__dict__, "first": f"{self.first:x}", "last": f"{self.last:x}", **lists}
        usual = {"run": self.name, "file_rows": self.rows, "into": "", "segment": 0, "retractions": 0}
        usual |= {"spans": [], "nulls": []}
        return {name: value for name, value in data.items() if name not in usual or value != usual[name]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunRef:
        """Read what `to_json` gave, or did when a run had one span."""
        usual: dict[str, Any] = {"run": data["name"], "file_rows": data["rows"], "retractions": 0, **data}
        usual |= {name: int(data[name], 16) for name in ("first", "last")}
        only = usual.pop("span", None)
        spans = data.get("spans", [] if only is None else [only])
        usual |= {"epochs": tuple(data["epochs"]), "spans": tuple(map(tuple, spans))}
        usual["nulls"] = tuple(data.get("nulls", ()))
        return cls(**usual)

    def clipped(self, first: int, last: int) -> RunRef:
        """Restrict to a range of hashes; row count and size are shared out in proportion (hashes are uniform)."""
        low, high = max(first, self.first), min(last, self.last)
        if (low, high) == (self.first, self.last):
            return self
        width = self.last - self.first + 1

        def share(amount: int) -> int:
            return amount * (high + 1 - self.first) // width - amount * (low - self.first) // width

        return replace(self, first=low, last=high, rows=share(self.rows), keys=share(self.keys))

    def overlaps(self, first: int, last: int) -> bool:
        """Say whether the reference covers a hash in first..last."""
        return self.first <= last and first <= self.last

    def span(self, column: str) -> tuple[int, int] | None:
        """The smallest and the largest time of a column; None if nobody asked for it when the run was written.

        A row that has none counts as later than any.
        """
        found = ((low, high) for name, low, high in self.spans if name == column)
        return next(((low, TIMELESS if column in self.nulls else high) for low, high in found), None)

    def latest(self, column: str) -> int | None:
        """The largest time of a column among the rows that have one."""
        return next((high for name, _, high in self.spans if name == column), None)

    @property
    def bytes(self) -> int:
        """The part of the file's size that this reference stands for."""
        return self.size * self.rows // max(1, self.file_rows)


def lies_in(ref: RunRef, column: str, after: int, until: int) -> bool:
    """Whether a run may hold times of a column after one and up to another."""
    span = ref.span(column)
    return span is None or (span[0] <= until and span[1] > after)


def new_name(folder: str, epoch: int) -> str:
    """Make a file name that no other attempt of any task can make."""
    return f"{folder_of(epoch, folder)}/{token(16)}.arrow"


def folder_of(epoch: int, folder: str = "runs") -> str:
    """Where the files of an epoch are."""
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
    """Write a table sorted by `__hash` as a new run. `bounds`: the hashes that the run is responsible for.

    `times` names the columns whose spans are noted.
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
    _remember_written(store, name)
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
    """Give the rows that the reference covers, memory-mapped: nothing is copied until it is touched."""
    table = _open(store, ref)
    begin, end = slice_of(hashes(table), ref.first, ref.last)
    return table.slice(begin, end - begin)


def with_epoch(table: pa.Table, ref: RunRef) -> pa.Table:
    """Fill in the `__epoch` column of a changelog run that has just one."""
    if EPOCH in table.column_names:
        return table
    return replaced(table, EPOCH, np.full(table.num_rows, ref.epochs[0], np.int64))


def close_runs(store: ObjectStore, names: Iterable[str]) -> None:
    """Let go of runs that nobody reads any more: an open one would stay in memory after it is deleted."""
    for name in names:
        _cache(store).pop(name, None)
        _written(store).pop(name, None)


def keep_open(store: ObjectStore, names: Collection[str]) -> None:
    """Let go of all runs but the named ones: what a state names no more is deleted, and would stay mapped here."""
    close_runs(store, [name for name in _cache(store) if name not in names])


def forget_runs(store: ObjectStore) -> None:
    """Let go of all runs, as if this process had neither read nor written them: the next reader checks each anew."""
    _cache(store).clear()
    _written(store).clear()


_opened: dict[tuple[int, str], OrderedDict[str, pa.Table]] = {}
_own: dict[tuple[int, str], OrderedDict[str, None]] = {}


def _written(store: ObjectStore) -> OrderedDict[str, None]:
    """The runs that this process has written itself lately: their checksum need not be computed again."""
    return _own.setdefault((os.getpid(), store.url), OrderedDict())


def _remember_written(store: ObjectStore, name: str) -> None:
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


def _verified(store: ObjectStore, ref: RunRef) -> pa.Table:
    """Map a run and check it, unless this process wrote it; a bad copy of a remote run is fetched once more."""
    data = store.map(ref.name, ref.size)
    if ref.name in _written(store):
        del _written(store)[ref.name]
    elif zlib.crc32(data) != ref.crc:
        store.forget(ref.name)
        data = store.map(ref.name, ref.size)
        if zlib.crc32(data) != ref.crc:
            raise Corrupt(
                f"run `{ref.name}` fails its checksum",
                detail=f"the manifest says {ref.size} bytes with checksum {ref.crc:08x}",
                hint="restore the file from a backup; no epoch has been committed on top of the damaged file",
            )
    return pa.ipc.open_file(data).read_all()
