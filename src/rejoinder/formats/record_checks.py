"""Checks of a record beyond its types: the key of a table must not be NULL, and op or diff must be valid."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.formats.related_types import is_related
from rejoinder.formats.unreadable import Unreadable
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import DIFF, replaced, single_chunk

INSERTS = frozenset(
    {"i", "c", "r", "u", "+", "+i", "+u", "insert", "update", "upsert", "create", "read", "1", "update_postimage"}
)
DELETES = frozenset({"d", "-", "-d", "-u", "delete", "-1", "update_preimage"})
MOST_COPIES = 2**31 - 1  # of one record: sums of many stay far from overflow


def usable(table: pa.Table, source: Source) -> pa.Table:
    """Return the table with `__diff` from op or diff. Raises `pa.ArrowInvalid` for NULL in the key or an invalid op."""
    names = {name.lower(): name for name in table.column_names}
    for name in source.primary_key:
        if name.lower() in names and table.column(names[name.lower()]).null_count:
            raise Unreadable(f"NULL in column `{name}`, which is part of the primary key of `{source.name}`")
    mark = mark_of(table, source)
    if mark is None or DIFF in table.column_names:
        return table
    return replaced(table, DIFF, signs_of(table.column(mark), source))


def mark_of(table: pa.Table, source: Source) -> str | None:
    """Return the name of the op or diff column in a table (case as declared, else without case); None if missing."""
    mark = source.diff or source.op or ""
    names = table.column_names
    return mark if mark in names else next((name for name in names if name.lower() == mark.lower()), None)


def signs_of(marks: pa.ChunkedArray, source: Source) -> pa.Array:
    """Return the op or diff column as diffs. Raises `pa.ArrowInvalid` for NULL or an invalid value."""
    column = f"the {'diff' if source.diff else 'op'} column `{source.diff or source.op}` of `{source.name}`"
    if marks.null_count:
        raise Unreadable(f"NULL in {column}")
    kinds = (pa.int64(),) if source.diff is not None else (pa.string(), pa.int64())
    if not any(is_related(marks.type, kind) for kind in kinds):
        raise Unreadable(f"{column} has type {marks.type}")
    try:
        values = single_chunk(marks.cast(kinds[0]))
        values = values if source.diff is not None else pc.utf8_lower(values)
    except pa.ArrowInvalid as failure:
        raise Unreadable(f"{column} contains a value that is not of type {kinds[0]}", str(failure)) from None
    return _copies(values, column) if source.diff is not None else _signs(values, source.name)


def _copies(numbers: pa.Array, column: str) -> pa.Array:
    too_many = pc.or_(pc.greater(numbers, MOST_COPIES), pc.less(numbers, -MOST_COPIES))
    if pc.any(too_many).as_py():
        raise Unreadable(f"{column} exceeds {MOST_COPIES:,} copies", f"{numbers.filter(too_many)[0].as_py():,}")
    return numbers


def _signs(words: pa.Array, source: str) -> pa.Array:
    deletes = pc.is_in(words, pa.array(sorted(DELETES)))
    unknown = pc.invert(pc.or_(deletes, pc.is_in(words, pa.array(sorted(INSERTS)))))
    if pc.any(unknown).as_py():
        raise Unreadable(f"an op of `{source}` is unknown", f"`{words.filter(unknown)[0].as_py()}`")
    return pc.if_else(deletes, pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
