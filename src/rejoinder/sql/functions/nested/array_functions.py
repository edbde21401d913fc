"""Functions on arrays. Elements are equal if both are NULL, and NaN equals NaN, as in Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder.host.caps import caps
from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.scalar_function import Argument, NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument, whole_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_INT = spark_types.INT


def array_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that must be an array."""
    return require_array(compiler.compile(node), parent)


def require_array(term: Term, node: exp.Expr) -> Term:
    """Refuse what is not an array."""
    if not pa.types.is_list(term.type):
        raise mismatch(node, f"an array is needed, not {spark_types.spark_name(term.type)}")
    return term


def _plain_array(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an array whose elements can be compared and ordered."""
    term = array_argument(compiler, node, parent)
    if spark_types.is_nested(term.type.value_type):
        raise refuse(parent, f"not supported for {spark_types.spark_name(term.type)}")
    return term


def _nested_array(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    term = array_argument(compiler, node, parent)
    if not pa.types.is_list(term.type.value_type):
        raise mismatch(parent, f"an array of arrays is needed, not {spark_types.spark_name(term.type)}")
    return term


def _text_array(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return coerce(array_argument(compiler, node, parent), spark_types.array_of(spark_types.STRING), parent)


def _like_array(terms: Sequence[Term]) -> pa.DataType:
    return terms[0].type


def _element(terms: Sequence[Term]) -> pa.DataType:
    return terms[0].type.value_type


def _with_element(name: str, result: pa.DataType | None = None, *, is_plain: bool = False) -> NodeCompiler:
    """Make the compiler of a function of an array and a value of the type of its elements."""

    def compile_with_element(compiler: Compiler, node: exp.Expr) -> Term:
        first, second = arguments(node, 2)
        array, value = array_argument(compiler, first, node), compiler.compile(second)
        if is_plain and spark_types.is_nested(array.type.value_type):
            raise refuse(node, f"not supported for {spark_types.spark_name(array.type)}")
        element = Term(constant(None, array.type.value_type).node)
        (_, value), kind = together([element, value], node)
        array = coerce(array, spark_types.array_of(kind), node)
        return call(name, result or array.type, array, value, evaluation="all")

    return compile_with_element


def _two_arrays(name: str, result: pa.DataType | None = None) -> NodeCompiler:
    """Make the compiler of a function of two arrays of a common type."""

    def compile_two(compiler: Compiler, node: exp.Expr) -> Term:
        compiled = [_plain_array(compiler, part, node) for part in arguments(node, 2)]
        terms, kind = together(compiled, node)
        return call(name, result or kind, *terms)

    return compile_two


def compile_insert(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY_INSERT; a place beyond an end is reached with NULLs."""
    first, place, value = arguments(node, 3)
    array, element = array_argument(compiler, first, node), compiler.compile(value)
    if not element.is_null and element.type != array.type.value_type:
        given, needed = spark_types.spark_name(element.type), spark_types.spark_name(array.type)
        raise mismatch(node, f"{given} cannot be an element of {needed}", "CAST it")
    terms = array, whole_argument(compiler, place, node), coerce(element, array.type.value_type, node)
    options = (caps().max_value_length,)
    return call("array_insert", array.type, *terms, options=options, evaluation="all", can_fail=True)


def compile_zip(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAYS_ZIP: structs of the elements, named by columns, or by place from 0."""
    parts = node.expressions
    if not parts:
        raise mismatch(node, "arrays_zip takes one array or more")
    terms = [array_argument(compiler, part, node) for part in parts]
    names = [part.name if isinstance(part, exp.Column) else str(place) for place, part in enumerate(parts)]
    if len({name.lower() for name in names}) < len(names):
        raise refuse(node, "arrays_zip of two arrays of one name is not supported", "use zip_with(x, y, (a, b) -> …)")
    entry = pa.struct([(name, term.type.value_type) for name, term in zip(names, terms, strict=True)])
    return call("arrays_zip", spark_types.array_of(entry), *terms, options=tuple(names), evaluation="all")


def compile_join(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY_JOIN; NULLs are left out unless there is a text for them."""
    array, *texts = arguments(node, 2, 3)
    terms = [text_argument(compiler, part, node) for part in texts]
    return call("array_join", spark_types.STRING, _text_array(compiler, array, node), *terms)


def compile_repeat(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ARRAY_REPEAT."""
    value, times = arguments(node, 2)
    term, count = compiler.compile(value), whole_argument(compiler, times, node)
    if term.is_null:
        raise refuse(node, "an array of nothing but NULL has no type", "CAST it")
    options, kind = (caps().max_value_length,), spark_types.array_of(term.type)
    return call("array_repeat", kind, term, count, options=options, evaluation="all", can_fail=True)


def compile_sequence(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SEQUENCE of integers; without a step it is 1, or -1."""
    compiled = [compiler.compile(part) for part in arguments(node, 2, 3)]
    if not all(spark_types.is_integer(term.type) for term in compiled):
        raise refuse(node, "sequence is supported for integers only", "CAST them to BIGINT")
    terms, kind = together(compiled, node)
    options = (caps().max_value_length,)
    return call("sequence", spark_types.array_of(kind), *terms, options=options, can_fail=True)


def compile_sort(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SORT_ARRAY with a literal order, and ARRAY_SORT without a comparison."""
    is_plain = node.name.lower() == "array_sort"
    if is_plain and len(node.expressions) == 2:
        raise refuse(
            node, "array_sort with a comparison is not supported", "transform the elements into what is ordered"
        )
    array, *order = arguments(node, 1) if is_plain else arguments(node, 1, 2)
    term = _plain_array(compiler, array, node)
    direction = compiler.compile(order[0]) if order else constant(True, spark_types.BOOLEAN)
    if not direction.literal or not isinstance(direction.value, bool):
        raise refuse(node, "sort_array takes a literal TRUE or FALSE only")
    places = "NULLS LAST" if is_plain or not direction.value else "NULLS FIRST"
    return call("sort_array", term.type, term, options=("ASC" if direction.value else "DESC", places))


def _array(
    name: str, rest: str, doc: str, example: str, rules: tuple[Argument, ...], *, can_fail: bool = False
) -> ScalarFunction:
    """A function whose result is an array of the same type."""
    return ScalarFunction(f"{name}({rest})", doc, example, rules, _like_array, can_fail=can_fail)


FUNCTIONS = (
    ScalarFunction(
        "array_append(list, x)", "The array with an element at its end.", "size(array_append(array(1), 2)) = 2",
        form=_with_element("array_append"),
    ),
    _array(
        "array_compact", "list", "The array without NULLs.", "size(array_compact(array(1, NULL))) = 1",
        (array_argument,),
    ),
    _array(
        "array_distinct", "list", "Each element once, in the order of the array.",
        "array_distinct(array(2, 1, 2)) = array(2, 1)", (_plain_array,),
    ),
    ScalarFunction(
        "array_except(list, other)", "The elements that another array has not, each once.",
        "array_except(array(1, 2), array(2)) = array(1)", form=_two_arrays("array_except"),
    ),
    ScalarFunction(
        "array_insert(list, i, x)", "The array with an element at a place, from 1, or from the end if negative.",
        "array_insert(array(1, 3), 2, 2) = array(1, 2, 3)", form=compile_insert,
    ),
    ScalarFunction(
        "array_intersect(list, other)", "The elements that another array has too, each once.",
        "array_intersect(array(1, 2), array(2)) = array(2)", form=_two_arrays("array_intersect"),
    ),
    ScalarFunction(
        "array_join(list, separator)", "The elements as one text; a third argument stands for NULL.",
        "array_join(array('a', NULL, 'b'), '-') = 'a-b'", form=compile_join,
    ),
    ScalarFunction(
        "array_max(list)", "The largest element.", "array_max(array(1, 3, 2)) = 3", (_plain_array,), _element
    ),
    ScalarFunction(
        "array_min(list)", "The smallest element.", "array_min(array(2, 1, 3)) = 1", (_plain_array,), _element
    ),
    ScalarFunction(
        "array_position(list, x)", "The first place of a value, from 1; 0 if there is none.",
        "array_position(array('a', 'b'), 'b') = 2",
        form=_with_element("array_position", spark_types.BIGINT, is_plain=True),
    ),
    ScalarFunction(
        "array_prepend(list, x)", "The array with an element at its start.",
        "array_prepend(array(2), 1) = array(1, 2)", form=_with_element("array_prepend"),
    ),
    ScalarFunction(
        "array_remove(list, x)", "The array without a value.", "array_remove(array(1, 2, 1), 1) = array(2)",
        form=_with_element("array_remove", is_plain=True),
    ),
    ScalarFunction(
        "array_repeat(x, n)", "A value, `n` times.", "array_repeat(1, 2) = array(1, 1)", form=compile_repeat
    ),
    ScalarFunction(
        "array_union(list, other)", "The elements of both arrays, each once.",
        "array_union(array(1, 2), array(2, 3)) = array(1, 2, 3)", form=_two_arrays("array_union"),
    ),
    ScalarFunction(
        "arrays_overlap(list, other)", "Whether two arrays have an element in common.",
        "arrays_overlap(array(1, 2), array(2))", form=_two_arrays("arrays_overlap", spark_types.BOOLEAN),
    ),
    ScalarFunction(
        "arrays_zip(list, other)", "An array of structs with the elements of each place.",
        "size(arrays_zip(array(1, 2), array('a'))) = 2", form=compile_zip,
    ),
    ScalarFunction(
        "flatten(lists)", "The elements of all arrays of an array; NULL if one of them is NULL.",
        "flatten(array(array(1), array(2))) = array(1, 2)", (_nested_array,), _element,
    ),
    ScalarFunction(
        "get(list, i)", "An element, from 0; NULL if there is none.", "get(array(1, 2), 5) IS NULL",
        (array_argument, whole_argument), _element,
    ),
    ScalarFunction(
        "sequence(start, stop, step)", "All integers from one to another.", "sequence(1, 3) = array(1, 2, 3)",
        form=compile_sequence,
    ),
    _array(
        "slice", "list, start, n", "`n` elements from `start`, which counts from 1, or from the end if negative.",
        "slice(array(1, 2, 3), -2, 2) = array(2, 3)", (array_argument, whole_argument, whole_argument), can_fail=True,
    ),
    ScalarFunction(
        "sort_array(list, ascending)", "The elements in order, NULL as the smallest; with array_sort, as the largest.",
        "sort_array(array(2, 1)) = array(1, 2)", aliases=("array_sort(list)",), form=compile_sort,
    ),
)  # fmt: skip
