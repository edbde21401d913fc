"""Structs, arrays and maps: fields, elements, and making them."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only, refuse


def compile_field(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `value.field`."""
    only(node, "this", "expression")
    return field_of(compiler.compile(node.this), node.expression.name, node)


def field_of(term: Term, name: str, node: exp.Expr) -> Term:
    """Take a field out of a struct; names compare without case."""
    if not pa.types.is_struct(term.type):
        raise mismatch(node, f"`{name}` is taken from {spark_types.spark_name(term.type)}, which has no fields")
    fields = [field for field in term.type if field.name.lower() == name.lower()]
    if len(fields) != 1:
        names = [field.name for field in term.type]
        raise errors.UnknownName(
            f"there is no one field `{name}`",
            detail=f"fields: {', '.join(names)}",
            hint=errors.near_misses(name, names),
        )
    if term.bounds is not None:
        return term.bounds.start if fields[0].name == "start" else term.bounds.end
    return call("field", fields[0].type, term, options=(fields[0].name,))


def compile_bracket(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `array[i]` and `map[key]`, and ELEMENT_AT, which counts from 1 and from the end."""
    only(node, "this", "expressions", "offset", "safe")
    if len(node.expressions) != 1:
        raise refuse(node, "a slice is not supported")
    term, key = compiler.compile(node.this), compiler.compile(node.expressions[0])
    if pa.types.is_map(term.type):
        return call("map_value", term.type.item_type, term, coerce(key, term.type.key_type, node))
    if not pa.types.is_list(term.type):
        raise mismatch(node, f"{spark_types.spark_name(term.type)} has no elements")
    if not spark_types.is_integer(key.type):
        raise mismatch(node, f"an index must be an integer, not {spark_types.spark_name(key.type)}")
    index = coerce(key, spark_types.INT, node)
    return call(
        "element_at" if node.args.get("offset") else "element", term.type.value_type, term, index, can_fail=True
    )


def compile_size(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SIZE of an array or a map; of NULL it is NULL."""
    only(node, "this")
    return size_of(compiler.compile(node.this), node)


def size_of(term: Term, node: exp.Expr) -> Term:
    """The number of elements of an array or a map."""
    if pa.types.is_list(term.type) or pa.types.is_map(term.type):
        return call("size", spark_types.INT, term)
    raise mismatch(node, f"{spark_types.spark_name(term.type)} has no size")


def compile_array(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY(…)."""
    only(node, "expressions")
    if not node.expressions:
        raise refuse(node, "an empty array has no type", "CAST it in the source")
    terms, kind = together([compiler.compile(part) for part in node.expressions], node)
    if pa.types.is_null(kind):
        raise refuse(node, "an array of nothing but NULL has no type", "CAST an element")
    return call("array", spark_types.array_of(kind), *terms, evaluation="all", nulls="never")


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
    kind = pa.struct([pa.field(name, term.type) for name, term in zip(names, terms, strict=True)])
    return call("struct", kind, *terms, evaluation="all", nulls="never")


def compile_array_contains(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY_CONTAINS: NULL if it is not found and the array has a NULL."""
    only(node, "this", "expression", "ensure_variant", "check_null")
    array, value = compiler.compile(node.this), compiler.compile(node.expression)
    if not pa.types.is_list(array.type) or array.type.value_type != value.type or spark_types.is_nested(value.type):
        raise refuse(node, "ARRAY_CONTAINS takes a value of the elements' type", "CAST the value")
    return call("array_contains", spark_types.BOOLEAN, array, value)


FUNCTIONS = (
    ScalarFunction(
        "value.field",
        "A field of a struct.",
        "named_struct('a', 1).a = 1",
        operator=".",
        parsed=exp.Dot,
        form=compile_field,
    ),
    ScalarFunction(
        "array[i]",
        "An element of an array, from 0, or of a map; with element_at from 1, or from the end if negative.",
        "(array(1, 2)[0] = 1) AND (element_at(array(1, 2), -1) = 2)",
        operator="[]",
        aliases=("element_at(list, i)",),
        parsed=exp.Bracket,
        form=compile_bracket,
    ),
    ScalarFunction(
        "array(x, y)",
        "An array of values.",
        "size(array(1, 2)) = 2",
        parsed=exp.Array,
        form=compile_array,
    ),
    ScalarFunction(
        "array_contains(list, x)",
        "Whether an array contains a value; NULL if it does not and has a NULL.",
        "array_contains(array(1, 2), 2)",
        parsed=exp.ArrayContains,
        form=compile_array_contains,
    ),
    ScalarFunction(
        "size(list)",
        "The number of elements of an array or a map; NULL for NULL.",
        "size(array(1, 2)) = 2",
        aliases=("array_size",),
        parsed=exp.ArraySize,
        form=compile_size,
    ),
    ScalarFunction(
        "struct(x, y)",
        "A struct of columns or named values.",
        "struct(1 AS a).a = 1",
        aliases=("named_struct('name', x)",),
        parsed=exp.Struct,
        form=compile_struct,
    ),
)
