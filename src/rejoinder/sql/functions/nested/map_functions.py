"""Functions on maps. A key is never NULL and has one entry; to make a map with another fails."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.nested.array_functions import array_argument
from rejoinder.sql.functions.nested.nested_functions import size_of
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse


def map_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that must be a map."""
    term = compiler.compile(node)
    if not pa.types.is_map(term.type):
        raise mismatch(parent, f"a map is needed, not {spark_types.spark_name(term.type)}")
    return term


def _entry(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])


def compile_map(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP of keys and values in turn."""
    compiled = [compiler.compile(part) for part in node.expressions]
    if len(compiled) % 2 or not compiled:
        raise mismatch(node, "map takes keys and values in turn", "write map(key, value, key, value)")
    keys, key = together(compiled[::2], node)
    values, value = together(compiled[1::2], node)
    if pa.types.is_null(key) or pa.types.is_null(value) or spark_types.is_nested(key):
        raise refuse(node, "keys and values need a type, and keys that are plain values", "CAST them")
    parts = [part for pair in zip(keys, values, strict=True) for part in pair]
    return call("map", pa.map_(key, value), *parts, evaluation="all", nulls="never", can_fail=True)


def compile_contains_key(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP_CONTAINS_KEY."""
    first, second = arguments(node, 2)
    map_ = map_argument(compiler, first, node)
    return call(
        "map_contains_key", spark_types.BOOLEAN, map_, coerce(compiler.compile(second), map_.type.key_type, node)
    )


def compile_concat(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP_CONCAT of maps of one type."""
    terms = [map_argument(compiler, part, node) for part in node.expressions]
    if not terms or len({str(term.type) for term in terms}) > 1:
        raise refuse(node, "map_concat takes maps of one type", "CAST the values")
    return call("map_concat", terms[0].type, *terms, evaluation="all", can_fail=True)


def compile_from_arrays(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP_FROM_ARRAYS."""
    keys, values = (array_argument(compiler, part, node) for part in arguments(node, 2))
    kind = pa.map_(keys.type.value_type, values.type.value_type)
    return call("map_from_arrays", kind, keys, values, can_fail=True)


def compile_from_entries(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile MAP_FROM_ENTRIES, of an array of structs with two fields."""
    (value,) = arguments(node, 1)
    term = array_argument(compiler, value, node)
    entry = term.type.value_type
    if not pa.types.is_struct(entry) or entry.num_fields != 2:
        raise mismatch(node, f"an array of pairs is needed, not {spark_types.spark_name(term.type)}")
    kind = pa.map_(entry.field(0).type, entry.field(1).type)
    names = (entry.field(0).name, entry.field(1).name)
    return call("map_from_entries", kind, term, options=names, can_fail=True)


def compile_from_text(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile STR_TO_MAP with literal delimiters, which are plain texts here."""
    text, *rest = arguments(node, 1, 2, 3)
    delimiters = [compiler.compile(part) for part in rest]
    for term in delimiters:
        is_text = term.literal and term.type == spark_types.STRING
        if not is_text or not re.fullmatch(r"[^\\^$.|?*+()\[\]{}]+", term.value):
            raise refuse(node, "str_to_map takes literal delimiters without regular expressions only")
    options = (*(term.value for term in delimiters), *(",", ":")[len(delimiters) :])
    kind = pa.map_(spark_types.STRING, spark_types.STRING)
    return call("str_to_map", kind, text_argument(compiler, text, node), options=options, can_fail=True)


def compile_cardinality(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CARDINALITY, the other name of SIZE."""
    (value,) = arguments(node, 1)
    return size_of(compiler.compile(value), node)


def compile_try_element(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRY_ELEMENT_AT: NULL where there is no such element or key."""
    first, second = arguments(node, 2)
    term, key = compiler.compile(first), compiler.compile(second)
    if pa.types.is_map(term.type):
        return call("map_value", term.type.item_type, term, coerce(key, term.type.key_type, node))
    array = array_argument(compiler, first, node)
    index = coerce(key, spark_types.INT, node)
    return call("try_element_at", array.type.value_type, array, index, can_fail=True)


def _keys(terms: Sequence[Term]) -> pa.DataType:
    return spark_types.array_of(terms[0].type.key_type)


def _values(terms: Sequence[Term]) -> pa.DataType:
    return spark_types.array_of(terms[0].type.item_type)


def _entries(terms: Sequence[Term]) -> pa.DataType:
    return spark_types.array_of(_entry(terms[0].type))


FUNCTIONS = (
    ScalarFunction(
        "cardinality(list)", "The number of elements of an array or a map; like size.", "cardinality(array(1, 2)) = 2",
        form=compile_cardinality,
    ),
    ScalarFunction("map(k, v)", "A map of keys and values.", "map('a', 1)['a'] = 1", form=compile_map),
    ScalarFunction(
        "map_concat(map, other)", "The entries of all maps.", "size(map_concat(map('a', 1), map('b', 2))) = 2",
        form=compile_concat,
    ),
    ScalarFunction(
        "map_contains_key(map, k)", "Whether a map has a key.", "map_contains_key(map('a', 1), 'a')",
        form=compile_contains_key,
    ),
    ScalarFunction(
        "map_entries(map)", "The entries as an array of structs with key and value.",
        "map_entries(map('a', 1))[0].value = 1", (map_argument,), _entries,
    ),
    ScalarFunction(
        "map_from_arrays(list, other)", "A map of an array of keys and one of values.",
        "map_from_arrays(array('a'), array(1))['a'] = 1", form=compile_from_arrays,
    ),
    ScalarFunction(
        "map_from_entries(entries)", "A map of an array of structs with two fields.",
        "map_from_entries(array(struct('a' AS k, 1 AS v)))['a'] = 1", form=compile_from_entries,
    ),
    ScalarFunction("map_keys(map)", "The keys.", "map_keys(map('a', 1)) = array('a')", (map_argument,), _keys),
    ScalarFunction("map_values(map)", "The values.", "map_values(map('a', 1)) = array(1)", (map_argument,), _values),
    ScalarFunction(
        "str_to_map(text, separator, other)", "A map of a text such as `a:1,b:2`.", "str_to_map('a:1,b:2')['b'] = '2'",
        form=compile_from_text,
    ),
    ScalarFunction(
        "try_element_at(list, i)", "An element, from 1, or from the end if negative; NULL if there is none.",
        "try_element_at(array(1), 5) IS NULL", form=compile_try_element,
    ),
)  # fmt: skip
