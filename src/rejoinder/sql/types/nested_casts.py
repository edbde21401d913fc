"""Casts of ARRAY and STRUCT: element by element, field by field in their order, as Spark does."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir import nodes
from rejoinder.sql.types.terms import Term, build, combine, evaluated_once, quote_text


def is_nested_cast(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a cast is one of arrays, or of structs with equally many fields."""
    if pa.types.is_list(source) and pa.types.is_list(kind):
        return True
    is_struct = pa.types.is_struct(source) and pa.types.is_struct(kind)
    return bool(is_struct and source.num_fields == kind.num_fields)


def cast_nested(term: Term, kind: pa.DataType, cast: Callable[[Term, pa.DataType], Term]) -> Term:
    """Cast an array or a struct with `cast` for what is inside. NULL stays NULL; NULL inside stays NULL inside."""
    if pa.types.is_list(kind):
        variable = nodes.Variable(f"item_{term.node.digest.hex()[:12]}", term.type.value_type)
        item = cast(Term(variable), kind.value_type)
        return combine("list_transform({0}, {1})", kind, term, Term(nodes.Lambda(variable.name, item.node)))
    return evaluated_once(term, lambda value: _cast_struct(value, kind, cast))


def _cast_struct(term: Term, kind: pa.DataType, cast: Callable[[Term, pa.DataType], Term]) -> Term:
    fields = [
        cast(build(f"struct_extract({{0}}, {quote_text(field.name)})", field.type, term), own.type)
        for field, own in zip(term.type, kind, strict=True)
    ]
    packed = ", ".join(f"{quote_text(own.name)}: {{{place}}}" for place, own in enumerate(kind, 1))
    return combine(f"CASE WHEN {{0}} IS NOT NULL THEN {{{packed}}} END", kind, term, *fields, is_lazy=True)
