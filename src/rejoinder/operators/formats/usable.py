"""What a record needs beyond values that can be read: a key, if it is of a table, and a word for what it does."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.columns import DIFF, replaced
from rejoinder.plan.catalog import Source

INSERTS = frozenset(
    {"i", "c", "r", "u", "+", "+i", "+u", "insert", "update", "upsert", "create", "read", "1", "update_postimage"}
)
DELETES = frozenset({"d", "-", "-d", "-u", "delete", "-1", "update_preimage"})


def usable(table: pa.Table, source: Source) -> pa.Table:
    """Add what each record does to its row. Raises `pa.ArrowInvalid` if one does not say, or has no key."""
    names = {name.lower(): name for name in table.column_names}
    for name in source.primary_key:
        if name.lower() in names and table.column(names[name.lower()]).null_count:
            raise pa.ArrowInvalid(f"NULL in column `{name}`, which is of the primary key of `{source.name}`")
    mark = source.diff or source.op
    if mark is None or mark not in table.column_names or DIFF in table.column_names:
        return table
    return replaced(table, DIFF, signs_of(table.column(mark), source))


def signs_of(marks: pa.ChunkedArray, source: Source) -> pa.Array:
    """The op or diff column as signed multiplicities. Raises `pa.ArrowInvalid` where it says nothing, or not what."""
    if marks.null_count:
        raise pa.ArrowInvalid(
            f"NULL in the {'diff' if source.diff else 'op'} column `{source.diff or source.op}` of `{source.name}`"
        )
    if source.diff is not None:
        return marks.combine_chunks().cast(pa.int64())
    words = pc.utf8_lower(marks.cast(pa.string()))
    deletes = pc.is_in(words, pa.array(sorted(DELETES)))
    unknown = pc.invert(pc.or_(deletes, pc.is_in(words, pa.array(sorted(INSERTS)))))
    if pc.any(unknown).as_py():
        raise pa.ArrowInvalid(f"op `{words.filter(unknown)[0].as_py()}` of `{source.name}` is not known")
    return pc.if_else(deletes, pa.scalar(-1, pa.int64()), pa.scalar(1, pa.int64())).combine_chunks()
