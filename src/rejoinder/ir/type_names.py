"""Names of Arrow types in Spark's SQL."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.errors import Unsupported

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.null(): "void",
    pa.time64("us"): "time(6)",
    pa.duration("us"): "interval day to second",
    pa.duration("s"): "interval year to month",  # of months, within expressions
    pa.month_day_nano_interval(): "interval",
}


def spark_name(kind: pa.DataType) -> str:
    """Name an Arrow type as Spark's `simpleString` does. Raises `Unsupported` for a type that Spark does not have.

    >>> spark_name(pa.decimal128(10, 2)), spark_name(pa.timestamp("us", tz="UTC"))
    ('decimal(10,2)', 'timestamp')
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    raise Unsupported(f"the Arrow type `{kind}` is not supported", hint="cast the column in the source")


def is_integer(kind: pa.DataType) -> bool:
    """Whether a type is one of the four integers."""
    return kind in INTEGERS


def listed_columns(schema: pa.Schema) -> str:
    """Return columns with their types, for the detail of an error."""
    return f"columns: {', '.join(f'{field.name} {spark_name(field.type)}' for field in schema)}"
