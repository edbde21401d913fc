"""Functions on texts in JSON."""

from __future__ import annotations

import re

from sqlglot import exp

from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

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
)  # fmt: skip
