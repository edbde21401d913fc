"""Which types hold the same kind of values, so that a cast from one to the other keeps their meaning."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def is_related(actual: pa.DataType, declared: pa.DataType, *, may_lack_fields: bool = False) -> bool:
    """Whether a cast keeps the meaning. Arrow's also reads text as numbers, and numbers as times.

    Arrow casts structs by name: a field that is not found becomes NULL. So both have the same fields, in any order,
    unless `may_lack_fields`: then they have at least one in common.

    >>> is_related(pa.int64(), pa.int32()), is_related(pa.string(), pa.int32())
    (True, False)
    """
    if pa.types.is_dictionary(actual):
        actual = actual.value_type
    if actual == declared or pa.types.is_null(actual):
        return True
    if pa.types.is_nested(actual) or pa.types.is_nested(declared):
        pairs = _parts(actual, declared, may_lack_fields=may_lack_fields)
        return bool(pairs) and all(is_related(*pair, may_lack_fields=may_lack_fields) for pair in pairs)
    return any(any(of(actual) for of in family) and any(of(declared) for of in family) for family in _FAMILIES)


def _parts(
    actual: pa.DataType, declared: pa.DataType, *, may_lack_fields: bool
) -> Sequence[tuple[pa.DataType, pa.DataType]]:
    """The types inside of two nested types, in pairs; none if the two do not correspond."""
    types = pa.types
    if types.is_struct(actual) and types.is_struct(declared):
        mine, theirs = ({field.name: field.type for field in kind.fields} for kind in (actual, declared))
        if mine.keys() != theirs.keys() and not may_lack_fields:
            return ()
        return [(mine[name], theirs[name]) for name in mine.keys() & theirs.keys()]
    if types.is_map(actual) and types.is_map(declared):
        return [(actual.key_type, declared.key_type), (actual.item_type, declared.item_type)]
    if _is_list(actual) and _is_list(declared):
        return [(actual.value_type, declared.value_type)]
    return ()


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


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
