"""Structs, arrays and maps: fields, elements, and making them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.time import window_functions
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import (
    Compiler,
    Term,
    build,
    combine,
    failing,
    listed,
    mismatch,
    only,
    quote_text,
    refuse,
)

NodeCompiler = Callable[[Compiler, exp.Expr], Term]


def compile_field(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `value.field`."""
    only(node, "this", "expression")
    return field_of(compiler.compile(node.this), node.expression.name, node)


def field_of(term: Term, name: str, node: exp.Expr) -> Term:
    """Take a field out of a struct; names compare without case."""
    if not pa.types.is_struct(term.type):
        raise mismatch(node, f"`{name}` is taken from {spark_types.spark_name(term.type)}, which has no fields")
    found = [field for field in term.type if field.name.lower() == name.lower()]
    if len(found) != 1:
        known = [field.name for field in term.type]
        raise errors.UnknownName(
            f"there is no one field `{name}`",
            detail=f"fields: {', '.join(known)}",
            hint=errors.near_misses(name, known),
        )
    if term.bounds is not None:
        bounds = window_functions.bounds_of(term)
        return bounds.start if found[0].name == "start" else bounds.end
    return build(f"struct_extract({{0}}, {quote_text(found[0].name)})", found[0].type, term)


def compile_bracket(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `array[i]` and `map[key]`, and ELEMENT_AT, which counts from 1 and from the end."""
    only(node, "this", "expressions", "offset", "safe")
    if len(node.expressions) != 1:
        raise refuse(node, "a slice is not supported")
    term, key = compiler.compile(node.this), compiler.compile(node.expressions[0])
    if pa.types.is_map(term.type):
        kind = term.type.item_type
        return build("{0}[{1}]", kind, term, coerce(key, term.type.key_type, node))
    if not pa.types.is_list(term.type):
        raise mismatch(node, f"{spark_types.spark_name(term.type)} has no elements")
    if not spark_types.is_integer(key.type):
        raise mismatch(node, f"an index must be an integer, not {spark_types.spark_name(key.type)}")
    index = coerce(key, spark_types.INT, node)
    outside = failing("an array index is out of bounds")
    if node.args.get("offset"):
        fits = "{1} <> 0 AND abs(CAST({1} AS BIGINT)) <= len({0})"
        taken = "{0}[{1}]"
    else:
        fits, taken = "{1} >= 0 AND {1} < len({0})", "{0}[CAST({1} AS BIGINT) + 1]"
    element = f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {fits} THEN {taken} ELSE {outside} END"
    return build(element, term.type.value_type, term, index, can_fail=True)


def compile_size(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SIZE of an array or a map; of NULL it is NULL."""
    only(node, "this")
    term = compiler.compile(node.this)
    if pa.types.is_list(term.type):
        return build("CAST(len({0}) AS INTEGER)", spark_types.INT, term)
    if pa.types.is_map(term.type):
        return build("CAST(cardinality({0}) AS INTEGER)", spark_types.INT, term)
    raise mismatch(node, f"{spark_types.spark_name(term.type)} has no size")


def compile_array(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY(…)."""
    only(node, "expressions")
    if not node.expressions:
        raise refuse(node, "an empty array has no type", "CAST it in the source")
    terms, kind = together([compiler.compile(part) for part in node.expressions], node)
    if pa.types.is_null(kind):
        raise refuse(node, "an array of nothing but NULL has no type", "CAST an element")
    return combine(listed("list_value", len(terms)), spark_types.array_of(kind), *terms)


def compile_struct(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NAMED_STRUCT, and STRUCT of columns or named values."""
    only(node, "expressions")
    names, terms = [], []
    for part in node.expressions:
        if not isinstance(part, exp.PropertyEQ) or not isinstance(part.this, exp.Identifier):
            raise refuse(node, "a field of a struct needs a name", "write STRUCT(value AS name)")
        names.append(part.this.name)
        terms.append(compiler.compile(part.expression))
    if any(term.is_null for term in terms) or not terms:
        raise refuse(node, "a field of nothing but NULL has no type", "CAST it")
    if len({name.lower() for name in names}) < len(names):
        raise refuse(node, "a struct with two fields of one name is not supported")
    packed = ", ".join(f"{quote_text(name)}: {{{place}}}" for place, name in enumerate(names))
    kind = pa.struct([pa.field(name, term.type) for name, term in zip(names, terms, strict=True)])
    return combine(f"{{{packed}}}", kind, *terms)


def compile_array_contains(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY_CONTAINS: NULL if it is not found and the array has a NULL."""
    only(node, "this", "expression", "ensure_variant", "check_null")
    array, value = compiler.compile(node.this), compiler.compile(node.expression)
    if not pa.types.is_list(array.type) or array.type.value_type != value.type or spark_types.is_nested(value.type):
        raise refuse(node, "ARRAY_CONTAINS takes a value of the elements' type", "CAST the value")
    found = "CASE WHEN list_contains({0}, {1}) THEN TRUE WHEN len({0}) > list_count({0}) THEN NULL ELSE FALSE END"
    return build(
        f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {found} END", spark_types.BOOLEAN, array, value
    )


NODES: dict[type[exp.Expr], NodeCompiler] = {
    exp.Dot: compile_field,
    exp.Bracket: compile_bracket,
    exp.ArraySize: compile_size,
    exp.Array: compile_array,
    exp.Struct: compile_struct,
    exp.ArrayContains: compile_array_contains,
}
