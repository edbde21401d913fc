"""FORMAT_STRING and PRINTF: values written by a literal format of Java's `Formatter`."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from rejoinder.kernels.duckdb.functions.text.printf_formats import BLANK, LINE, PERCENT
from rejoinder.sql.functions.scalar_function import ScalarFunction
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import cast
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, refuse

_SPECIFIER = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_MOST_DIGITS = 10
"""After the point: beyond, DuckDB would write digits that a DOUBLE does not have."""
_WIDEST = 10_000


def compile_format(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile FORMAT_STRING: the options alternate between plain text and a specifier with the place of its value."""
    if not node.expressions:
        raise mismatch(node, f"`{node.name}` needs a format")
    written, *values = node.expressions
    pattern, terms = compiler.compile(written), [compiler.compile(value) for value in values]
    if pattern.is_null:
        return constant(None, spark_types.STRING)
    if not pattern.literal or pattern.type != spark_types.STRING:
        raise refuse(node, f"`{node.name.lower()}` takes a literal format only", "such as '%s has %d'")
    options: list[int | str] = []
    used: list[Term] = []
    position = following = 0
    for match in _SPECIFIER.finditer(pattern.value):
        _plain(pattern.value[position : match.start()], options, node)
        position = match.end()
        index, flags, width, precision, kind = match.groups()
        if "#" in flags or "<" in flags or int(width or 0) > _WIDEST:
            raise refuse(node, f"`{match[0]}` in a format is not supported")
        if kind in ("%", "n"):
            if flags or width or precision:
                raise refuse(node, f"`{match[0]}` in a format is not supported")
            options.append(PERCENT if kind == "%" else LINE)
            continue
        if index is None:
            following += 1
        place = int(index) if index else following
        if not 1 <= place <= len(terms):
            raise mismatch(node, f"there is no value for `{match[0]}`", "give a value for each specifier")
        used.append(_value(terms[place - 1], kind, precision, flags, match[0], node))
        options += [match[0], len(used) - 1, flags, int(width or 0), 6 if precision is None else int(precision), kind]
    _plain(pattern.value[position:], options, node)
    return call(
        "format_string", spark_types.STRING, *used, options=tuple(options), evaluation="all", nulls="never",
        can_fail=any(kind == "f" for kind in options),
    )  # fmt: skip


def _plain(text: str, options: list[int | str], node: exp.Expr) -> None:
    if "%" in text:
        raise mismatch(node, f"the format has `%` without a specifier in '{text}'", "write %% for a percent sign")
    if text:
        options += [BLANK, text]


def _value(term: Term, kind: str, precision: str | None, flags: str, written: str, node: exp.Expr) -> Term:
    """The value of a specifier, of a type that the specifier takes."""
    if kind == "s" and precision is None and not set(flags) - {"-"}:
        return _text(term, node)
    is_integer = spark_types.is_integer(term.type) or term.is_null
    allowed = {"d": "-+ 0,(", "x": "-0", "X": "-0", "o": "-0", "c": "-", "b": "-", "f": "-+ 0,("}.get(kind)
    if allowed is None or set(flags) - set(allowed) or (precision is not None and kind != "f"):
        raise refuse(node, f"`{written}` in a format is not supported", "use %s, %d, %x, %o, %c, %b or %.2f")
    if kind == "b":
        return cast(term, spark_types.BOOLEAN, node) if term.is_null else _required(term, spark_types.BOOLEAN, node)
    if kind == "f":
        if int(precision or 0) > _MOST_DIGITS:
            raise refuse(node, f"`{written}` has more than {_MOST_DIGITS} digits after the point")
        if term.type not in (spark_types.FLOAT, spark_types.DOUBLE) and not term.is_null:
            name = spark_types.spark_name(term.type)
            raise mismatch(node, f"`{written}` takes a DOUBLE, not {name}", "CAST it to DOUBLE")
        return cast(term, spark_types.DOUBLE, node)
    if not is_integer:
        name = spark_types.spark_name(term.type)
        raise mismatch(node, f"`{written}` takes an integer, not {name}", "CAST it, or use %s")
    return cast(term, spark_types.INT, node) if term.is_null else term


def _required(term: Term, kind: pa.DataType, node: exp.Expr) -> Term:
    if term.type != kind:
        raise refuse(node, f"%b of {spark_types.spark_name(term.type)} is not supported", "compare it with NULL")
    return term


def _text(term: Term, node: exp.Expr) -> Term:
    """The text of a value. Spark writes dates and times as their numbers."""
    kind = term.type
    if kind == spark_types.DATE:
        term = call("unix_date", spark_types.INT, term)
    elif pa.types.is_timestamp(kind):
        term = call("unix_micros", spark_types.BIGINT, term)
    elif spark_types.is_nested(kind) or kind == spark_types.BINARY:
        raise refuse(node, f"%s of {spark_types.spark_name(kind)} is not supported", "write its parts")
    return cast(term, spark_types.STRING, node)


FUNCTIONS = (
    ScalarFunction(
        "format_string(format, x)",
        "Values written by a literal format of Java: %s, %5d, %05d, %,d, %x, %o, %c, %b, %.2f.",
        "format_string('%s-%03d', 'a', 7) = 'a-007'", aliases=("printf",), form=compile_format,
    ),
)  # fmt: skip
