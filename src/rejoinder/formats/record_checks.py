"""What a record needs beyond values that can be read: a key, if it is of a table, and a word for what it does."""

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
    """Add what each record does to its row. Raises `pa.ArrowInvalid` if one does not say, or has no key."""
    names = {name.lower(): name for name in table.column_names}
    for name in source.primary_key:
        if name.lower() in names and table.column(names[name.lower()]).null_count:
            raise Unreadable(f"NULL in column `{name}`, which is of the primary key of `{source.name}`")
    mark = mark_of(table, source)
    if mark is None or DIFF in table.column_names:
        return table
    return replaced(table, DIFF, signs_of(table.column(mark), source))


def mark_of(table: pa.Table, source: Source) -> str | None:
    """The op or diff column in a table, by its name (case as declared, else without case)."""
    mark = source.diff or source.op or ""
    names = table.column_names
    return mark if mark in names else next((name for name in names if name.lower() == mark.lower()), None)


def signs_of(marks: pa.ChunkedArray, source: Source) -> pa.Array:
    """The op or diff column as signed multiplicities. Raises `pa.ArrowInvalid` where it says nothing, or not what."""
    column = f"the {'diff' if source.diff else 'op'} column `{source.diff or source.op}` of `{source.name}`"
    if marks.null_count:
        raise Unreadable(f"NULL in {column}")
    kinds = (pa.int64(),) if source.diff is not None else (pa.string(), pa.int64())
    if not any(is_related(marks.type, kind) for kind in kinds):
        raise Unreadable(f"{column} is of type {marks.type}")
    try:
        told = single_chunk(marks.cast(kinds[0]))
        told = told if source.diff is not None else pc.utf8_lower(told)
    except pa.ArrowInvalid as failure:
        raise Unreadable(f"{column} holds what is not of type {kinds[0]}", str(failure)) from None
    return _copies(told, column) if source.diff is not None else _signs(told, source.name)


def _copies(numbers: pa.Array, column: str) -> pa.Array:
    beyond = pc.or_(pc.greater(numbers, MOST_COPIES), pc.less(numbers, -MOST_COPIES))
    if pc.any(beyond).as_py():
        raise Unreadable(f"{column} goes beyond {MOST_COPIES:,} copies", f"{numbers.filter(beyond)[0].as_py():,}")
    return numbers


def _signs(words: pa.Array, source: str) -> pa.Array:
    deletes = pc.is_in(words, pa.array(sorted(DELETES)))
    unknown = pc.invert(pc.or_(deletes, pc.is_in(words, pa.array(sorted(INSERTS)))))
    if pc.any(unknown).as_py():
        raise Unreadable(f"an op of `{source}` is not known", f"`{words.filter(unknown)[0].as_py()}`")
    return pc.if_else(deletes, pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64()))
