"""Which types hold the same kind of values, so that a cast from one to the other keeps their meaning."""

from __future__ import annotations

import pyarrow as pa


def is_related(found: pa.DataType, declared: pa.DataType) -> bool:
    """Whether a cast keeps the meaning. Arrow's also reads text as numbers, and numbers as times.

    >>> is_related(pa.int64(), pa.int32()), is_related(pa.string(), pa.int32())
    (True, False)
    """
    if pa.types.is_dictionary(found):
        found = found.value_type
    if found == declared or pa.types.is_null(found):
        return True
    if pa.types.is_nested(found) and pa.types.is_nested(declared):
        parts = [(found.field(at).type, declared.field(at).type) for at in range(declared.num_fields)]
        return found.num_fields == declared.num_fields and all(is_related(*pair) for pair in parts)
    return any(any(of(found) for of in family) and any(of(declared) for of in family) for family in _FAMILIES)


def _is_text(kind: pa.DataType) -> bool:
    """Strings and bytes in any layout: Parquet does not always say which it is."""
    types = pa.types
    is_string = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(is_string or is_binary or types.is_fixed_size_binary(kind))


_FAMILIES = (
    (pa.types.is_integer, pa.types.is_floating),
    (pa.types.is_integer, pa.types.is_decimal),
    (_is_text,),
    (pa.types.is_date,),
    (pa.types.is_timestamp,),
)
