"""Functions on texts in JSON."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_STEP = re.compile(r"\[(?P<index>[0-9]{1,9})\]|\['(?P<quoted>[^'?]*)'\]|\.(?P<name>[^.\[]+)")


def compile_get_object(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile GET_JSON_OBJECT with a literal path. A path that is none to Spark finds nothing."""
    text, written = arguments(node, 2)
    value, path = text_argument(compiler, text, node), compiler.compile(written)
    if not path.literal or path.type != spark_types.STRING:
        raise refuse(node, "get_json_object takes a literal path only", "such as '$.a.b[0]'")
    if "*" in path.value:
        raise refuse(node, f"`*` in the path '{path.value}' is not supported", "name the elements by their index: [0]")
    steps = _steps(path.value)
    if steps is None:
        return call("get_json_object", spark_types.STRING, value)
    if any(isinstance(step, str) and re.search(r'["\\{}]', step) for step in steps):
        raise refuse(node, f"a name in the path '{path.value}' has quotes, braces or a backslash")
    return call("get_json_object", spark_types.STRING, value, options=(path.value, *steps))


def compile_to_json(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_JSON of a struct, an array or a map, without options."""
    (value,) = arguments(node, 1)
    term = compiler.compile(value)
    if not spark_types.is_nested(term.type):
        raise mismatch(node, f"a struct, an array or a map is needed, not {spark_types.spark_name(term.type)}")
    kind = _unwritable(term.type)
    if kind is not None:
        raise refuse(
            node, f"to_json of {spark_types.spark_name(kind)} is not supported", "CAST it to STRING or DECIMAL"
        )
    return call("to_json", spark_types.STRING, term, nulls="propagated")


def _unwritable(kind: pa.DataType) -> pa.DataType | None:
    """The first type in a type that has no certain text in JSON: Java writes floating-point numbers in its own way."""
    if pa.types.is_struct(kind):
        return next((found for field in kind if (found := _unwritable(field.type)) is not None), None)
    if pa.types.is_list(kind):
        return _unwritable(kind.value_type)
    if pa.types.is_map(kind):
        return _unwritable(kind.item_type) if kind.key_type == spark_types.STRING else kind
    is_plain = spark_types.is_integer(kind) or spark_types.is_decimal(kind)
    others = (spark_types.STRING, spark_types.BOOLEAN, spark_types.BINARY)
    return None if is_plain or kind in others else kind


def _steps(path: str) -> list[int | str] | None:
    """The names and indexes of a path; None if Spark does not take it for a path.

    >>> _steps("$.a['b c'][0]"), _steps("a")
    (['a', 'b c', 0], None)
    """
    if not path.startswith("$"):
        return None
    steps: list[int | str] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        steps.append(int(step["index"]) if step["index"] else step["name"] or step["quoted"])
        position = step.end()
    return steps


FUNCTIONS = (
    ScalarFunction(
        "get_json_object(text, path)", "What is at a literal path in a JSON text; NULL if there is nothing.",
        "get_json_object('{\"a\": [1, 2]}', '$.a[1]') = '2'", outside_duckdb=True, form=compile_get_object,
    ),
    ScalarFunction(
        "json_array_length(text)", "The length of a JSON array; NULL if the text is none.",
        "json_array_length('[1, 2]') = 2", (text_argument,), spark_types.INT, outside_duckdb=True,
    ),
    ScalarFunction(
        "json_object_keys(text)", "The names in a JSON object; NULL if the text is none.",
        "json_object_keys('{\"a\": 1}') = array('a')", (text_argument,), spark_types.array_of(spark_types.STRING),
        outside_duckdb=True,
    ),
    ScalarFunction(
        "to_json(x)", "A struct, an array or a map as JSON; fields that are NULL are left out.",
        "to_json(struct(1 AS a, 'x' AS b)) = '{\"a\":1,\"b\":\"x\"}'", form=compile_to_json,
    ),
)  # fmt: skip
