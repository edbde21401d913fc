"""Our types as DuckDB names them."""

from __future__ import annotations

import pyarrow as pa

from rejoinder import errors

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    # The evaluator hands over both timestamps without a zone: the session's zone is UTC.
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
    pa.timestamp("us"): "TIMESTAMP",
    pa.time64("us"): "TIME",
    # Intervals are counted: microseconds, months, or all three.
    pa.duration("us"): "BIGINT",
    pa.duration("s"): "INTEGER",
    pa.month_day_nano_interval(): "STRUCT(months INTEGER, days INTEGER, micros BIGINT)",
}


def duckdb_type(kind: pa.DataType) -> str:
    """Name a type for DuckDB.

    >>> duckdb_type(pa.list_(pa.struct([("x", pa.int32())])))
    'STRUCT("x" INTEGER)[]'
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        fields = ", ".join(f'"{field.name.replace(chr(34), chr(34) * 2)}" {duckdb_type(field.type)}' for field in kind)
        return f"STRUCT({fields})"
    raise errors.Unsupported(f"the Arrow type `{kind}` is not supported in expressions")
