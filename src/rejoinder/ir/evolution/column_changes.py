"""Column changes: what ALTER does to the columns of a source, as plain data that manifests store.

Rows of the past are not rewritten. A reference to a run, or a former definition of a source, lists the changes that
came after it, and `store.runs.changed_columns` applies them to its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

ChangeKind = Literal["add", "drop", "rename", "cast", "clip", "hash"]


@dataclass(frozen=True)
class ColumnChange:
    """One change of the columns of rows.

    - `add`: a column whose value, of every row, is that of `sample`;
    - `drop`, `rename` (to `to`), `cast` (to the type of `sample`): of a column, where rows have it;
    - `clip`: only rows whose hash is in `hashes`;
    - `hash`: rows are sorted by the hash of all their columns, which `add` and `drop` change.
    """

    kind: ChangeKind
    column: str = ""
    to: str = ""
    sample: str = ""
    """A table with one row of one column, as Arrow's bytes in hexadecimal."""
    hashes: tuple[int, int] = (0, 0)

    @property
    def value(self) -> pa.ChunkedArray:
        """The column of one row in `sample`."""
        return pa.ipc.open_stream(pa.BufferReader(bytes.fromhex(self.sample))).read_all().column(0)

    def to_json(self) -> list[Any]:
        """Return plain data for the manifest; hashes as text, since JSON readers lose 64-bit integers."""
        return [self.kind, self.column, self.to, self.sample, *(f"{each:x}" for each in self.hashes)]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> ColumnChange:
        """Read what `to_json` returned."""
        kind, column, to, sample, first, last = data
        return cls(kind, column, to, sample, (int(first, 16), int(last, 16)))


def sample_of(column: str, value: pa.Array) -> str:
    """Return one value of a column as text."""
    sink = pa.BufferOutputStream()
    table = pa.table({column: value})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return str(sink.getvalue().to_pybytes().hex())


def added(column: str, value: pa.Array) -> ColumnChange:
    """Return the change that adds a column; `value` is an array of one value."""
    return ColumnChange("add", column, sample=sample_of(column, value))


def cast(column: str, kind: pa.DataType) -> ColumnChange:
    """Return the change of the type of a column."""
    return ColumnChange("cast", column, sample=sample_of(column, pa.nulls(1, kind)))


def changed_schema(schema: pa.Schema, changes: Sequence[ColumnChange]) -> pa.Schema:
    """Return the columns of rows after changes."""
    fields = list(schema)
    for change in changes:
        match change.kind:
            case "add":
                fields.append(pa.field(change.column, change.value.type))
            case "drop":
                fields = [field for field in fields if field.name != change.column]
            case "rename":
                fields = [field.with_name(change.to) if field.name == change.column else field for field in fields]
            case "cast":
                kind = change.value.type
                fields = [field.with_type(kind) if field.name == change.column else field for field in fields]
    return pa.schema(fields)


def new_names(changes: Sequence[ColumnChange], names: Sequence[str]) -> dict[str, str]:
    """Return the name of each column after changes, by its name before; without those that are dropped."""
    result = {name: name for name in names}
    for change in changes:
        if change.kind == "rename":
            result = {old: change.to if new == change.column else new for old, new in result.items()}
        elif change.kind == "drop":
            result = {old: new for old, new in result.items() if new != change.column}
    return result


def rehashing(changes: Sequence[ColumnChange], hashes: tuple[int, int]) -> tuple[ColumnChange, ...]:
    """Return changes for rows that are sorted by the hash of the whole row, of which a part is read: `hashes`."""
    if not changes_hash(changes):
        return tuple(changes)
    return (replace(ColumnChange("clip"), hashes=hashes), *changes, ColumnChange("hash"))


def changes_hash(changes: Sequence[ColumnChange]) -> bool:
    """Return whether rows have another hash after changes. Widened values hash as before."""
    return any(change.kind in ("add", "drop") for change in changes)
