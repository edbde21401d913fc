"""Bits of integers, and integers as text of another base."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.numbers.arithmetic import number_argument
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import whole_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only


def _whole(term: Term, node: exp.Expr) -> Term:
    if not spark_types.is_integer(term.type):
        raise mismatch(node, f"an integer is needed, not {spark_types.spark_name(term.type)}", "CAST it to BIGINT")
    return term


def _compile_bitwise(name: str) -> NodeCompiler:
    """Make the compiler of `&`, `|` or `^`, of two integers of their common type."""

    def compile_bitwise(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this", "expression")
        operands = [_whole(compiler.compile(part), node) for part in (node.this, node.expression)]
        terms, kind = together(operands, node)
        return call(name, kind, *terms, nulls="propagated")

    return compile_bitwise


def compile_not(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `~`."""
    only(node, "this")
    term = _whole(compiler.compile(node.this), node)
    return call("~", term.type, term, nulls="propagated")


def _compile_shift(name: str) -> NodeCompiler:
    """Make the compiler of a shift of an INT or BIGINT; Java takes the count modulo the number of bits."""

    def compile_shift(compiler: Compiler, node: exp.Expr) -> Term:
        parts = arguments(node, 2) if isinstance(node, exp.Anonymous) else (node.this, node.expression)
        value = number_argument(compiler, parts[0], node)
        value = value if value.type == spark_types.BIGINT else coerce(value, spark_types.INT, node)
        return call(name, value.type, value, whole_argument(compiler, parts[1], node), nulls="propagated")

    return compile_shift


def integer_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a BIGINT; a fraction is cut."""
    term = compiler.compile(node)
    if spark_types.is_nested(term.type) or spark_types.is_datetime(term.type) or pa.types.is_binary(term.type):
        raise mismatch(parent, f"a number is needed, not {spark_types.spark_name(term.type)}")
    return coerce(term, spark_types.BIGINT, parent)


FUNCTIONS = (
    ScalarFunction(
        "x & y", "The bits that both integers have.", "6 & 3 = 2", operator="&", parsed=exp.BitwiseAnd,
        form=_compile_bitwise("&"),
    ),
    ScalarFunction(
        "x | y", "The bits that one of two integers has.", "(6 | 3) = 7", operator="|", parsed=exp.BitwiseOr,
        form=_compile_bitwise("|"),
    ),
    ScalarFunction(
        "x ^ y", "The bits in which two integers differ.", "(6 ^ 3) = 5", operator="^", parsed=exp.BitwiseXor,
        form=_compile_bitwise("^"),
    ),
    ScalarFunction(
        "~x", "The bits that an integer has not.", "~0 = -1", operator="~", parsed=exp.BitwiseNot, form=compile_not
    ),
    ScalarFunction(
        "bin(n)", "A BIGINT in binary, negative ones with 64 digits.", "bin(5) = '101'", (integer_argument,),
        spark_types.STRING, nulls="propagated",
    ),
    ScalarFunction(
        "bit_get(x, n)",
        "A bit of an integer, from 0 for the lowest; a position outside of it fails.",
        "bit_get(5, 2) = 1",
        (lambda compiler, node, parent: _whole(compiler.compile(node), parent), whole_argument),
        spark_types.TINYINT,
        aliases=("getbit",),
        can_fail=True,
        nulls="propagated",
    ),
    ScalarFunction(
        "x << n", "The bits, moved to the left.", "1 << 3 = 8", operator="<<", parsed=exp.BitwiseLeftShift,
        form=_compile_shift("shiftleft"),
    ),
    ScalarFunction(
        "x >> n", "The bits, moved to the right, with the sign.", "-8 >> 1 = -4", operator=">>",
        parsed=exp.BitwiseRightShift, form=_compile_shift("shiftright"),
    ),
    ScalarFunction(
        "shiftleft(x, n)", "The bits, moved to the left.", "shiftleft(1, 3) = 8", form=_compile_shift("shiftleft")
    ),
    ScalarFunction(
        "shiftright(x, n)", "The bits, moved to the right, with the sign.", "shiftright(-8, 1) = -4",
        form=_compile_shift("shiftright"),
    ),
    ScalarFunction(
        "shiftrightunsigned(x, n)", "The bits, moved to the right, with zeros before them.",
        "shiftrightunsigned(-1, 31) = 1", form=_compile_shift("shiftrightunsigned"),
    ),
)  # fmt: skip
