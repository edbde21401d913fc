"""Literals: numbers with Spark's types, strings, dates and timestamps, TRUE, FALSE and NULL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions import nodes
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import NULL, Compiler, Term, only, refuse


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
    return Term(nodes.Literal(value, kind))


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
    return NULL


def compile_paren(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile what stands in parentheses."""
    only(node, "this")
    return compiler.compile(node.this)
