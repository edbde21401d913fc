"""TO_CHAR and TO_NUMBER: numbers as text by a literal pattern, and back."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from rejoinder.kernels.duckdb.functions.numbers.number_patterns import NumberPattern
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.functions.time.datetime_patterns import compile_date_format
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_PATTERN = re.compile(r"(MI|S)?([$])?([09,G]*)([.D]?)([09]*)(PR|MI|S)?")


def _read(pattern: str, node: exp.Expr) -> NumberPattern:
    match = _PATTERN.fullmatch(pattern.upper())
    if match is None or not re.search("[09]", pattern):
        form = "[MI|S] [$] digits 0 and 9 with commas [. digits] [PR|MI|S]"
        raise mismatch(node, f"'{pattern}' is not the format of a number", f"write it as {form}: '$9,999.00'")
    before, currency, groups, point, fraction, after = (part or "" for part in match.groups())
    groups = groups.replace("G", ",")
    if groups and not re.fullmatch(r"[09]+(?:,[09]+)*", groups):
        raise mismatch(node, f"in the format '{pattern}', a comma has no digits on both sides", "such as '9,999'")
    if (before and after) or (currency and after == "PR"):
        raise refuse(node, f"two of the signs in the format '{pattern}' do not go together", "leave one out")
    if len(groups.replace(",", "")) + len(fraction) > spark_types.MAX_PRECISION:
        raise mismatch(node, f"the format '{pattern}' has more than {spark_types.MAX_PRECISION} digits")
    return NumberPattern(before, currency, groups, point and ".", fraction, after)


def _literal(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> str | None:
    term = compiler.compile(node)
    if term.is_null:
        return None
    if not term.literal or term.type != spark_types.STRING:
        raise refuse(parent, f"`{parent.name.lower()}` takes a literal format only", "such as '9,999.00'")
    return str(term.value)


def compile_to_char(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TO_CHAR of a number; of a date or timestamp, it is DATE_FORMAT."""
    value, format_ = arguments(node, 2)
    term = compiler.compile(value)
    if spark_types.is_datetime(term.type):
        return compile_date_format(compiler, node)
    if spark_types.is_integer(term.type):
        term = cast(term, spark_types.decimal_for(term.type), node)
    if not spark_types.is_decimal(term.type):
        name = spark_types.spark_name(term.type)
        raise refuse(node, f"`{node.name.lower()}` of {name} is not supported", "CAST it to a DECIMAL")
    pattern = _literal(compiler, format_, node)
    if pattern is None:
        return constant(None, spark_types.STRING)
    return call("to_char", spark_types.STRING, term, options=_read(pattern, node).options, nulls="propagated")


def _compile_to_number(name: str) -> NodeCompiler:
    def compile_to_number(compiler: Compiler, node: exp.Expr) -> Term:
        value, format_ = arguments(node, 2)
        text, written = text_argument(compiler, value, node), _literal(compiler, format_, node)
        if written is None:
            raise refuse(node, f"`{name}` with the format NULL has no type", "write a format, such as '9,999.00'")
        pattern = _read(written, node)
        scale = len(pattern.fraction)
        kind = pa.decimal128(pattern.whole_digits + scale, scale)
        return call(name, kind, text, options=pattern.options, can_fail=True)

    return compile_to_number


FUNCTIONS = (
    ScalarFunction(
        "to_char(x, format)", "A number by a format of 0, 9, comma, point, `$`, S, MI and PR; a time by a pattern.",
        "to_char(1234.5, '$9,999.00') = '$1,234.50'", aliases=("to_varchar",), form=compile_to_char,
    ),
    ScalarFunction(
        "to_number(text, format)", "The number that a text has by a format; another text fails.",
        "to_number('$1,234.50', '$9,999.00') = 1234.50", form=_compile_to_number("to_number"),
    ),
    ScalarFunction(
        "try_to_number(text, format)", "As `to_number`; NULL if the text does not match the format.",
        "try_to_number('abc', '999') IS NULL", form=_compile_to_number("try_to_number"),
    ),
)  # fmt: skip
