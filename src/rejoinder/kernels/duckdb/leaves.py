"""DuckDB text that transforms the scalars within a value, at any depth."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.kernels.duckdb.duckdb_words import text_literal

Leaf = Callable[[str, pa.DataType], str]


def at_leaves(value: str, kind: pa.DataType, leaf: Leaf, depth: int = 0) -> str:
    """Apply `leaf`, which makes a text of a text and its type, to all scalars of `value`, a text of type `kind`.

    Keys of maps stay. Where `leaf` returns its argument, nothing is taken apart.

    >>> at_leaves("x", pa.list_(pa.int32()), lambda value, kind: f"-{value}")
    'list_transform(x, lambda leaf_0: -leaf_0)'
    """
    item = f"leaf_{depth}"
    if pa.types.is_list(kind):
        inner = at_leaves(item, kind.value_type, leaf, depth + 1)
        return value if inner == item else f"list_transform({value}, lambda {item}: {inner})"
    if pa.types.is_map(kind):
        inner = at_leaves(item, kind.item_type, leaf, depth + 1)
        values = f"list_transform(map_values({value}), lambda {item}: {inner})"
        return value if inner == item else f"map(map_keys({value}), {values})"
    if not pa.types.is_struct(kind):
        return leaf(value, kind)
    names = [text_literal(field.name) for field in kind]
    parts = [f"struct_extract({value}, {name})" for name in names]
    inners = [at_leaves(part, field.type, leaf, depth) for part, field in zip(parts, kind, strict=True)]
    if inners == parts:
        return value
    fields = ", ".join(f"{name}: {inner}" for name, inner in zip(names, inners, strict=True))
    return f"CASE WHEN {value} IS NOT NULL THEN {{{fields}}} END"


def type_of_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with other scalars in it.

    >>> type_of_leaves(pa.list_(pa.date32()), lambda kind: pa.string())
    ListType(list<item: string>)
    """
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(type_of_leaves(kind.value_type, leaf)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(type_of_leaves(kind.item_type, leaf)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(type_of_leaves(field.type, leaf)) for field in kind])
    return leaf(kind)


def has_type(kind: pa.DataType, is_one: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type, or a type within it, satisfies a test."""
    fields = [kind.field(number).type for number in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return is_one(kind) or any(has_type(field, is_one) for field in fields)
