"""Literals: numbers with Spark's types, strings, dates and timestamps, TRUE, FALSE and NULL."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, only, quote_text, refuse

_EPOCH = datetime(1970, 1, 1)


def number(text: str, node: exp.Expr, *, negative: bool = False) -> Term:
    """Type a number as Spark does: INT, BIGINT or DECIMAL by size, DECIMAL with a point, DOUBLE with an exponent."""
    signed = f"-{text}" if negative else text
    if "e" in text.lower():
        return constant(float(signed), spark_types.DOUBLE)
    value = Decimal(signed)
    if "." not in text:
        for kind in (spark_types.INT, spark_types.BIGINT):
            if -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1):
                return constant(int(value), kind)
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    if precision > spark_types.MAX_PRECISION:
        raise refuse(node, f"a number of {precision} digits does not fit in a DECIMAL")
    return constant(value, pa.decimal128(precision, scale))


def constant(value: Any, kind: pa.DataType) -> Term:
    """Make a literal term of a type from a Python value."""
    if kind == spark_types.BOOLEAN:
        text = "TRUE" if value else "FALSE"
    elif spark_types.is_integer(kind):
        text = str(value)
    elif spark_types.is_decimal(kind):
        text = f"'{value:f}'"
    else:
        text = quote_text(str(value))
    sql = f"CAST({text} AS {duckdb_type(kind)})"
    if kind in (spark_types.TIMESTAMP, spark_types.TIMESTAMP_NTZ):
        since = value - _EPOCH
        sql = f"make_timestamp({(since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds})"
    return Term(sql, kind, literal=True, value=value)


def compile_literal(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile a string or an unsuffixed number."""
    if node.is_string:
        return constant(node.this, spark_types.STRING)
    return number(node.this, node)


def compile_raw_string(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile r'…', in which a backslash is a backslash."""
    return constant(node.this, spark_types.STRING)


def compile_boolean(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile TRUE and FALSE."""
    return constant(bool(node.this), spark_types.BOOLEAN)


def compile_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NULL, which takes its type from its neighbours."""
    return Term("NULL", spark_types.NULL, literal=True)


def compile_paren(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile what stands in parentheses."""
    only(node, "this")
    return compiler.compile(node.this)
