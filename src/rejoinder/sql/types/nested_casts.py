"""Casts of ARRAY and STRUCT: element by element, field by field in their order, as Spark does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from rejoinder.sql.types.terms import Term, quote_text

_ITEM = re.compile(r"\bitem_([0-9]+)\b")


def is_nested_cast(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a cast is one of arrays, or of structs with equally many fields."""
    if pa.types.is_list(source) and pa.types.is_list(kind):
        return True
    is_struct = pa.types.is_struct(source) and pa.types.is_struct(kind)
    return bool(is_struct and source.num_fields == kind.num_fields)


def cast_nested(term: Term, kind: pa.DataType, cast: Callable[[Term, pa.DataType], Term]) -> Term:
    """Cast an array or a struct with `cast` for what is inside. NULL stays NULL; NULL inside stays NULL inside."""
    if pa.types.is_list(kind):
        number = 1 + max((int(used) for used in _ITEM.findall(term.sql)), default=0)
        item = cast(Term(f"item_{number}", term.type.value_type), kind.value_type)
        made = f"list_transform({term.sql}, lambda item_{number}: {item.sql})"
        return Term(made, kind, term.columns, throws=term.throws or item.throws)
    fields = [
        (own.name, cast(Term(f"struct_extract({term.sql}, {quote_text(field.name)})", field.type), own.type))
        for field, own in zip(term.type, kind, strict=True)
    ]
    packed = ", ".join(f"{quote_text(name)}: {inner.sql}" for name, inner in fields)
    throws = term.throws or any(inner.throws for _, inner in fields)
    return Term(f"CASE WHEN {term.sql} IS NOT NULL THEN {{{packed}}} END", kind, term.columns, throws=throws)
