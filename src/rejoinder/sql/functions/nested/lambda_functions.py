"""Functions that take a lambda: `transform(list, x -> x + 1)`. Of arrays and maps.

A lambda is compiled with its variables as terms. Its body may use columns of the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions import nodes
from rejoinder.sql.functions.logic import truth
from rejoinder.sql.functions.nested.array_functions import array_argument
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, evaluated_once, mismatch, refuse


def _lambda(compiler: Compiler, node: exp.Expr, parent: exp.Expr, *counts: int) -> tuple[exp.Lambda, list[str]]:
    """The lambda of a call, and the names of its variables."""
    if not isinstance(node, exp.Lambda):
        raise mismatch(parent, f"`{node.sql()}` is not a lambda", "write x -> …")
    names = [part.name for part in node.expressions]
    if len(names) not in counts:
        raise mismatch(parent, f"a lambda of {' or '.join(map(str, counts))} variables is needed, not of {len(names)}")
    return node, names


def _body(compiler: Compiler, function: exp.Lambda, terms: dict[str, Term]) -> Term:
    body = compiler.with_variables(terms).compile(function.this)
    if body.is_null:
        raise refuse(function, "a lambda whose result is nothing but NULL has no type", "CAST it")
    return body


def _variable(name: str, kind: pa.DataType, compiler: Compiler) -> nodes.Variable:
    return nodes.Variable(f"lambda_{compiler.depth}_{name.lower()}", kind)


def _element_lambda(
    compiler: Compiler, array: Term, node: exp.Expr, parent: exp.Expr
) -> tuple[list[nodes.Variable], Term]:
    """Compile `x -> …` or `(x, i) -> …` over the elements of an array; `i` counts from 0."""
    function, names = _lambda(compiler, node, parent, 1, 2)
    variables = [_variable(names[0], array.type.value_type, compiler)]
    terms = {names[0].lower(): Term(variables[0])}
    if len(names) == 2:
        variables.append(_variable(names[1], spark_types.BIGINT, compiler))
        terms[names[1].lower()] = call("place", spark_types.INT, Term(variables[1]), nulls="never")
    return variables, _body(compiler, function, terms)


def compile_transform(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRANSFORM."""
    first, second = _two(node)
    array = array_argument(compiler, first, node)
    variables, body = _element_lambda(compiler, array, second, node)
    function = Term(nodes.Lambda(variables, body.node))
    return call("array_transform", spark_types.array_of(body.type), array, function, evaluation="all")


def _two(node: exp.Expr) -> Sequence[exp.Expr]:
    return (node.this, node.expression) if isinstance(node, exp.Transform) else arguments(node, 2)


def _compile_condition(name: str, result: pa.DataType | None) -> NodeCompiler:
    """Make the compiler of FILTER, EXISTS or FORALL."""

    def compile_condition(compiler: Compiler, node: exp.Expr) -> Term:
        first, second = _two(node)
        array = array_argument(compiler, first, node)
        variables, body = _element_lambda(compiler, array, second, node)
        if result is not None and len(variables) > 1:
            raise mismatch(node, f"`{name}` takes a lambda of one variable")
        function = Term(nodes.Lambda(variables, truth(body, node).node))
        return call(name, result or array.type, array, function, evaluation="all")

    return compile_condition


def compile_aggregate(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile AGGREGATE and REDUCE: a value that each element changes, and what is made of it at the end."""
    parts = arguments(node, 3, 4)
    array, start = array_argument(compiler, parts[0], node), compiler.compile(parts[1])
    function, names = _lambda(compiler, parts[2], node, 2)
    kinds = (start.type, array.type.value_type)
    variables = [_variable(name, kind, compiler) for name, kind in zip(names, kinds, strict=True)]
    body = _body(
        compiler, function, {v: Term(variable) for v, variable in zip(map(str.lower, names), variables, strict=True)}
    )
    if body.type != start.type:
        given, needed = spark_types.spark_name(body.type), spark_types.spark_name(start.type)
        raise refuse(node, f"the lambda makes {given} of {needed}", f"CAST the start to {given.upper()}")
    merged = Term(nodes.Lambda(variables, body.node))
    total = call("aggregate", start.type, array, start, merged, evaluation="all")
    if len(parts) == 3:
        return total
    finish, (name,) = _lambda(compiler, parts[3], node, 1)
    return evaluated_once(total, lambda value: _body(compiler, finish, {name.lower(): value}))


def compile_zip_with(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ZIP_WITH; the shorter array is filled up with NULL."""
    first, second, third = arguments(node, 3)
    left, right = (array_argument(compiler, part, node) for part in (first, second))
    function, names = _lambda(compiler, third, node, 2)
    pair = pa.struct([("a", left.type.value_type), ("b", right.type.value_type)])
    variable = _variable("_".join(names), pair, compiler)
    terms = {
        name.lower(): call("zipped", field.type, Term(variable), options=(place,))
        for place, (name, field) in enumerate(zip(names, pair, strict=True), 1)
    }
    body = _body(compiler, function, terms)
    merged = Term(nodes.Lambda([variable], body.node))
    return call("zip_with", spark_types.array_of(body.type), left, right, merged, evaluation="all")


def compile_map_zip(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP_ZIP_WITH: a lambda over all keys of two maps; a value that is missing is NULL."""
    first, second, third = arguments(node, 3)
    maps = [compiler.compile(part) for part in (first, second)]
    if not all(pa.types.is_map(map_.type) for map_ in maps):
        given = " and ".join(spark_types.spark_name(map_.type) for map_ in maps)
        raise mismatch(node, f"two maps are needed, not {given}")
    key = maps[0].type.key_type
    if key != maps[1].type.key_type:
        raise refuse(node, "the keys of two maps must have one type", "CAST one of the maps")
    function, names = _lambda(compiler, third, node, 3)
    kind = pa.struct([("key", key), ("first", maps[0].type.item_type), ("second", maps[1].type.item_type)])
    variable = _variable("_".join(names), kind, compiler)
    terms = {
        name.lower(): call("field", field.type, Term(variable), options=(field.name,))
        for name, field in zip(names, kind, strict=True)
    }
    body = _body(compiler, function, terms)
    merged = Term(nodes.Lambda([variable], body.node))
    return call("map_zip_with", pa.map_(key, body.type), *maps, merged, evaluation="all")


def _entry_lambda(compiler: Compiler, map_: Term, node: exp.Expr, parent: exp.Expr) -> tuple[nodes.Variable, Term]:
    """Compile `(k, v) -> …` over the entries of a map."""
    function, names = _lambda(compiler, node, parent, 2)
    kind = pa.struct([("key", map_.type.key_type), ("value", map_.type.item_type)])
    variable = _variable("_".join(names), kind, compiler)
    terms = {
        name.lower(): call("field", field.type, Term(variable), options=(field.name,))
        for name, field in zip(names, kind, strict=True)
    }
    return variable, _body(compiler, function, terms)


def _compile_entries(name: str) -> NodeCompiler:
    """Make the compiler of MAP_FILTER, TRANSFORM_KEYS or TRANSFORM_VALUES."""

    def compile_entries(compiler: Compiler, node: exp.Expr) -> Term:
        first, second = arguments(node, 2)
        map_ = compiler.compile(first)
        if not pa.types.is_map(map_.type):
            raise mismatch(node, f"a map is needed, not {spark_types.spark_name(map_.type)}")
        variable, body = _entry_lambda(compiler, map_, second, node)
        kinds = {
            "map_filter": map_.type,
            "transform_keys": pa.map_(body.type, map_.type.item_type),
            "transform_values": pa.map_(map_.type.key_type, body.type),
        }
        body = truth(body, node) if name == "map_filter" else body
        function = Term(nodes.Lambda([variable], body.node))
        return call(name, kinds[name], map_, function, evaluation="all", can_fail=name == "transform_keys")

    return compile_entries


FUNCTIONS = (
    ScalarFunction(
        "aggregate(list, start, (total, x) -> total + x)",
        "A value that each element changes in turn; a second lambda makes the result of the last one.",
        "aggregate(array(1, 2), 0, (total, x) -> total + x) = 3",
        aliases=("reduce",), form=compile_aggregate,
    ),
    ScalarFunction(
        "exists(list, x -> condition)", "Whether a condition is TRUE for an element.",
        "exists(array(1, 2), x -> x > 1)",
        form=_compile_condition("exists", spark_types.BOOLEAN),
    ),
    ScalarFunction(
        "filter(list, x -> condition)", "The elements for which a condition is TRUE; `(x, i)` has the place, from 0.",
        "filter(array(1, 2), x -> x > 1) = array(2)", form=_compile_condition("filter", None),
    ),
    ScalarFunction(
        "forall(list, x -> condition)", "Whether a condition is TRUE for all elements.",
        "forall(array(1, 2), x -> x > 0)", form=_compile_condition("forall", spark_types.BOOLEAN),
    ),
    ScalarFunction(
        "map_filter(map, (k, v) -> condition)", "The entries of a map for which a condition is TRUE.",
        "size(map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)) = 1", form=_compile_entries("map_filter"),
    ),
    ScalarFunction(
        "map_zip_with(map, other, (k, x, y) -> z)", "What a lambda makes of the values of each key of two maps.",
        "map_zip_with(map('a', 1), map('a', 2), (k, x, y) -> x + y)['a'] = 3", form=compile_map_zip,
    ),
    ScalarFunction(
        "transform(list, x -> y)", "What a lambda makes of each element; `(x, i)` has the place, from 0.",
        "transform(array(1, 2), x -> x + 1) = array(2, 3)", parsed=exp.Transform, form=compile_transform,
    ),
    ScalarFunction(
        "transform_keys(map, (k, v) -> key)", "The map with other keys; equal ones fail.",
        "transform_keys(map('a', 1), (k, v) -> upper(k))['A'] = 1", form=_compile_entries("transform_keys"),
    ),
    ScalarFunction(
        "transform_values(map, (k, v) -> value)", "The map with other values.",
        "transform_values(map('a', 1), (k, v) -> v + 1)['a'] = 2", form=_compile_entries("transform_values"),
    ),
    ScalarFunction(
        "zip_with(list, other, (x, y) -> z)", "What a lambda makes of each pair of elements.",
        "zip_with(array(1), array(2), (x, y) -> x + y) = array(3)", form=compile_zip_with,
    ),
)  # fmt: skip
