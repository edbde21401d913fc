"""Avro records as a schema registry frames them: a zero byte and the id of the schema stand before each value.

The records of a chunk are decoded in groups, one for each schema, and put back in order. So the Python work is one
pass per field and schema, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rejoinder.formats.avro.avro_reader import Cursors, decode_rows
from rejoinder.formats.unreadable import Reason, Unreadable
from rejoinder.kernels.arrow.columns import Int64, contiguous, take

FRAME = 5
SCHEMA, SCHEMA_ID, FURTHER = "avro_schema", "avro_schema_id", "avro_schema."
_NO_FRAME = -1


def is_framed(options: Mapping[str, str]) -> bool:
    """Whether a schema id stands before each value of a source."""
    return options.get("format") == "avro" and options.get("avro_framing") == "confluent"


def schemas_by_id(options: Mapping[str, str]) -> dict[int, str]:
    """The schemas that a source declares, by their ids. The options were checked when the source was defined.

    >>> schemas_by_id({"avro_schema": "new", "avro_schema_id": "9", "avro_schema.7": "old"})
    {9: 'new', 7: 'old'}
    """
    first = {int(options[SCHEMA_ID]): options[SCHEMA]} if SCHEMA_ID in options else {}
    further = (option for option in options if option.startswith(FURTHER))
    return {**first, **{int(option.removeprefix(FURTHER)): options[option] for option in further}}


def frame_faults(values: pa.Array, declared: Collection[int]) -> dict[int, str]:
    """The positions of records that have no frame, or a schema id that is not declared, with the reason."""
    ids = _schema_ids(values)
    faulty = np.flatnonzero(~np.isin(ids, list(declared)))
    return {int(record): _fault(int(ids[record]), declared) for record in faulty}


def decode_framed(values: pa.Array, schemas: Mapping[int, str], columns: Sequence[pa.Field]) -> pa.Table:
    """Fill columns by name, each record by the schema of its id. A column that the schema does not have is NULL.

    Every record has the id of one of the schemas, see `frame_faults`. Raises `pa.ArrowInvalid` if a record does not
    hold what its schema says, or a value does not fit its column.
    """
    ids = _schema_ids(values)
    cursors = Cursors(values)
    cursors.at += FRAME
    groups = [np.flatnonzero(ids == number) for number in np.unique(ids)]
    tables = [_fitted(decode_rows(cursors, rows, schemas[int(ids[rows[0]])]), columns) for rows in groups]
    if len(tables) == 1:
        return tables[0]
    return take(contiguous(tables), np.argsort(np.concatenate(groups)))


def _schema_ids(values: pa.Array) -> Int64:
    """The schema id of each record; `_NO_FRAME` where there is none."""
    cursors = Cursors(values)
    ids = np.full(len(values), _NO_FRAME, np.int64)
    rows = np.flatnonzero(cursors.ends - cursors.at >= FRAME)
    frames = cursors.span(rows, np.full(len(rows), FRAME)).reshape(-1, FRAME)
    numbers = np.ascontiguousarray(frames[:, 1:]).view(">u4")[:, 0]
    ids[rows] = np.where(frames[:, 0] == 0, numbers.astype(np.int64), _NO_FRAME)
    return ids


def _fault(number: int, declared: Collection[int]) -> str:
    if number == _NO_FRAME:
        return "the record does not begin with a zero byte and a schema id, as schema registries write them"
    listed = ", ".join(map(str, sorted(declared))) or "none"
    return f"schema id {number} is not declared (declared: {listed}); add option `{FURTHER}{number}` with its schema"


def _fitted(table: pa.Table, columns: Sequence[pa.Field]) -> pa.Table:
    """The declared columns, in their types, by name: case as declared, else without case."""
    by_lower = {name.lower(): name for name in table.column_names}
    arrays = []
    for column in columns:
        name = column.name if column.name in table.column_names else by_lower.get(column.name.lower())
        if name is None:
            arrays.append(pa.nulls(table.num_rows, column.type))
        else:
            arrays.append(_cast(table.column(name), column))
    return pa.Table.from_arrays(arrays, schema=pa.schema(columns))


def _cast(values: pa.ChunkedArray, column: pa.Field) -> pa.ChunkedArray:
    if values.type == column.type:
        return values
    try:
        values.validate(full=True)  # a cast trusts what it reads
        return values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        raise Unreadable(
            f"field `{column.name}` does not fit its column: "
            f"declared {column.type}, found {values.type}: {Reason.of(failure).plain}",
            str(failure),
        ) from None
