"""FROM_JSON, SCHEMA_OF_JSON and SCHEMA_OF_CSV: texts read by a schema, and the schema of a literal text."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import PlanningError
from rejoinder.kernels.duckdb.outside.lenient_json import read_first
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST = 2**63 - 1
_CSV_TYPES = (
    (re.compile(r"-?[0-9]{1,9}"), "INT"),
    (re.compile(r"-?[0-9]{11,18}"), "BIGINT"),
    (re.compile(r"-?[0-9]{1,15}\.[0-9]{1,10}"), "DOUBLE"),
    (re.compile(r"(?i:true|false)"), "BOOLEAN"),
    (re.compile(r"[0-9]{4}-[01][0-9]-[0-2][0-9]"), "DATE"),
    (re.compile(r"[0-9]{4}-[01][0-9]-[0-2][0-9] [01][0-9]:[0-5][0-9]:[0-5][0-9]"), "TIMESTAMP"),
    (re.compile(r"(?!(?i:nan|inf|infinity|null)$)[A-Za-z][A-Za-z _]*|"), "STRING"),
)
"""Values whose types are certain."""


def _literal(compiler: Compiler, node: exp.Expr, parent: exp.Expr, what: str) -> str:
    term = compiler.compile(node)
    if not term.literal or term.type != spark_types.STRING or term.value is None:
        raise mismatch(parent, f"`{parent.name.lower()}` takes {what} as a literal text only")
    return str(term.value)


def compile_from_json(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile FROM_JSON by a literal schema of fields. A value that does not have the type of its field is NULL."""
    if len(node.expressions) == 3:
        raise refuse(node, "options of from_json are not supported", "leave them out")
    text, written = arguments(node, 2)
    schema = _literal(compiler, written, node, "a schema")
    kind = _schema(schema, node)
    unread = _unread(kind)
    if unread is not None:
        name = spark_types.spark_name(unread)
        raise refuse(node, f"from_json to {name} is not supported", "read it as STRING, and CAST it")
    return call("from_json", kind, text_argument(compiler, text, node), can_fail=True)


def _schema(text: str, node: exp.Expr) -> pa.DataType:
    """A schema as fields, `a INT, b STRING`, or as the type of a struct."""
    for type_text in (f"STRUCT<{text}>", text):
        try:
            kind = spark_types.parse_type(type_text)
        except PlanningError:
            continue
        if pa.types.is_struct(kind):
            return kind
    raise refuse(node, f"'{text}' is not a schema of fields that is supported", "such as 'a INT, b ARRAY<STRING>'")


def _unread(kind: pa.DataType) -> pa.DataType | None:
    """The first type in a type that is not read from JSON."""
    if pa.types.is_struct(kind):
        return next((found for field in kind if (found := _unread(field.type)) is not None), None)
    if pa.types.is_list(kind):
        return _unread(kind.value_type)
    read = (spark_types.STRING, spark_types.BOOLEAN, spark_types.DOUBLE)
    return None if kind in read or spark_types.is_integer(kind) else kind


def compile_json_schema(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SCHEMA_OF_JSON of a literal text: the names in order, the widest types."""
    (text,) = arguments(node, 1)
    value, is_known = read_first(_literal(compiler, text, node, "JSON"))
    if not is_known:
        raise mismatch(node, "the text is not JSON", "such as '{\"a\": 1}'")
    return constant(_type_text(_inferred(value)), spark_types.STRING)


_Inferred = str | tuple[str, Any] | dict[str, Any] | None
"""A type by name, `("ARRAY", element)`, the fields of a struct, or None of NULL."""


def _inferred(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return {name: _inferred(part) for name, part in value.items()}
    if isinstance(value, list):
        element: Any = None
        for part in value:
            element = _widest(element, _inferred(part))
        return ("ARRAY", element)
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        digits = len(str(abs(value)))
        fits = -_LARGEST - 1 <= value <= _LARGEST
        return "BIGINT" if fits else f"DECIMAL({digits},0)" if digits <= spark_types.MAX_PRECISION else "DOUBLE"
    return "DOUBLE" if isinstance(value, float) else "STRING"


def _widest(left: Any, right: Any) -> Any:
    if left is None or right is None or left == right:
        return right if left is None else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _widest(left.get(name), right.get(name)) for name in {**left, **right}}
    if isinstance(left, tuple) and isinstance(right, tuple):
        return ("ARRAY", _widest(left[1], right[1]))
    return "DOUBLE" if {left, right} == {"BIGINT", "DOUBLE"} else "STRING"


def _type_text(kind: Any) -> str:
    if isinstance(kind, tuple):
        return f"ARRAY<{_type_text(kind[1])}>"
    if isinstance(kind, dict):
        names = sorted(kind)
        fields = (f"{name if _PLAIN.fullmatch(name) else f'`{name}`'}: {_type_text(kind[name])}" for name in names)
        return f"STRUCT<{', '.join(fields)}>"
    return str(kind or "STRING")


def compile_csv_schema(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile SCHEMA_OF_CSV of a literal line, if the types of all its values are certain."""
    (text,) = arguments(node, 1)
    kinds = []
    for value in _literal(compiler, text, node, "a line").split(","):
        kind = next((name for pattern, name in _CSV_TYPES if pattern.fullmatch(value)), None)
        if kind is None:
            raise refuse(node, f"the type that Spark infers for {json.dumps(value)} is not certain", "write the schema")
        kinds.append(kind)
    fields = ", ".join(f"_c{place}: {kind}" for place, kind in enumerate(kinds))
    return constant(f"STRUCT<{fields}>", spark_types.STRING)


def compile_to_csv(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_CSV of a struct of plain values, without options."""
    if len(node.expressions) == 2:
        raise refuse(node, "options of to_csv are not supported", "leave them out")
    (value,) = arguments(node, 1)
    term = compiler.compile(value)
    if not pa.types.is_struct(term.type):
        raise mismatch(node, f"a struct is needed, not {spark_types.spark_name(term.type)}")
    for field in term.type:
        is_exact = spark_types.is_integer(field.type) or spark_types.is_decimal(field.type)
        if not is_exact and field.type not in (spark_types.STRING, spark_types.BOOLEAN):
            name = spark_types.spark_name(field.type)
            raise refuse(node, f"to_csv of {name} is not supported", "CAST the field to STRING or DECIMAL")
    return call("to_csv", spark_types.STRING, term)


FUNCTIONS = (
    ScalarFunction(
        "from_json(text, schema)", "The fields of a JSON object by a literal schema; a value of another type is NULL.",
        "from_json('{\"a\": 1}', 'a INT').a = 1", outside_duckdb=True, form=compile_from_json,
    ),
    ScalarFunction(
        "schema_of_csv(text)", "The schema of a literal line of CSV.",
        "schema_of_csv('1,abc') = 'STRUCT<_c0: INT, _c1: STRING>'", form=compile_csv_schema,
    ),
    ScalarFunction(
        "schema_of_json(text)", "The schema of a literal JSON text.",
        "schema_of_json('{\"a\": [1]}') = 'STRUCT<a: ARRAY<BIGINT>>'", form=compile_json_schema,
    ),
    ScalarFunction(
        "to_csv(x)", "The fields of a struct as a line of CSV.", "to_csv(struct(1 AS a, 'x,y' AS b)) = '1,\"x,y\"'",
        form=compile_to_csv,
    ),
)  # fmt: skip
