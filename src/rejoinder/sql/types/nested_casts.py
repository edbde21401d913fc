"""Casts of ARRAY and STRUCT: element by element, field by field in their order, as Spark does."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.ir.expressions import nodes, operators
from rejoinder.sql.types.terms import Term, call, evaluated_once


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
        function = Term(nodes.Lambda((variable,), item.node))
        return call("array_transform", kind, term, function, evaluation="all")
    return evaluated_once(term, lambda value: _cast_struct(value, kind, cast))


def _cast_struct(term: Term, kind: pa.DataType, cast: Callable[[Term, pa.DataType], Term]) -> Term:
    fields = [
        cast(call("field", field.type, term, options=(field.name,)), own.type)
        for field, own in zip(term.type, kind, strict=True)
    ]
    struct = call("struct", kind, *fields, evaluation="all", nulls="never")
    return Term(operators.when(operators.is_not_null(term.node), struct.node))
