"""Arithmetic with Spark's result types: wrap-around and division by zero are errors, decimals follow Spark's precision rules."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql import types
from rejoinder.sql.casts import coerce
from rejoinder.sql.literals import number
from rejoinder.sql.terms import Compiler, Term, build, duckdb_type, failing, mismatch, only, refuse

_DIVISION_BY_ZERO = failing("division by zero")


def compile_negation(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile unary minus. The smallest BIGINT is one literal, not the negation of a larger one."""
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(node.this.this, node, negative=True)
    term = compiler.compile(node.this)
    if types.is_integer(term.type):
        return build(f"(CAST(0 AS {duckdb_type(term.type)}) - {{0}})", term.type, term, throws=True)
    if types.is_numeric(term.type):
        return build(f"CAST(-{{0}} AS {duckdb_type(term.type)})", term.type, term)
    raise mismatch(node, f"`-` needs a number, not {types.spark_name(term.type)}")


def compile_addition(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `+`."""
    return _compile(compiler, node, "+", _sum)


def compile_subtraction(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `-`."""
    return _compile(compiler, node, "-", _sum)


def compile_multiplication(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `*`."""
    return _compile(compiler, node, "*", _product)


def _compile(
    compiler: Compiler, node: exp.Expression, sign: str, on_decimals: Callable[[str, Term, Term, exp.Expression], Term]
) -> Term:
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    if types.is_decimal(left.type):
        return on_decimals(sign, left, right, node)
    return build(f"({{0}} {sign} {{1}})", left.type, left, right, throws=types.is_integer(left.type))


def compile_division(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `/`: DOUBLE, or DECIMAL if a side is DECIMAL and none is inexact."""
    only(node, "this", "expression", "safe", "typed")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    if types.is_decimal(left.type):
        return _quotient(left, right, node)
    left, right = coerce(left, types.DOUBLE, node), coerce(right, types.DOUBLE, node)
    return build(
        f"CASE WHEN {{1}} = 0 THEN {_DIVISION_BY_ZERO} ELSE {{0}} / {{1}} END", types.DOUBLE, left, right, throws=True
    )


def compile_modulo(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `%`, whose result has the sign of the left side."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    kind = left.type
    if types.is_decimal(kind):
        wide = types.common_type(left.type, right.type)
        whole = min(left.type.precision - left.type.scale, right.type.precision - right.type.scale)
        kind = types.adjusted_decimal(whole + wide.scale, wide.scale)
        left, right = coerce(left, wide, node), coerce(right, wide, node)
        rest = f"CAST({{0}} % {{1}} AS {duckdb_type(kind)})"
    elif types.is_integer(kind):
        # The smallest integer modulo -1 is 0, and DuckDB calls it an overflow.
        rest = "CASE WHEN {1} = -1 THEN {1} + 1 ELSE {0} % {1} END"
    else:
        rest = "{0} % {1}"
    return build(f"CASE WHEN {{1}} = 0 THEN {_DIVISION_BY_ZERO} ELSE {rest} END", kind, left, right, throws=True)


def compile_integer_division(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile `div`, which is a BIGINT for all integers."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    if not types.is_integer(left.type):
        raise refuse(node, "`div` is offered for integers only", "CAST both sides to BIGINT, or use `/` and FLOOR")
    left, right = coerce(left, types.BIGINT, node), coerce(right, types.BIGINT, node)
    quotient = f"CASE WHEN {{1}} = 0 THEN {_DIVISION_BY_ZERO} ELSE {{0}} // {{1}} END"
    return build(quotient, types.BIGINT, left, right, throws=True)


def _numbers(left: Term, right: Term, node: exp.Expression) -> tuple[Term, Term]:
    """Bring two operands to the same number type; two exact ones become decimals of their own precision."""
    for one, other in ((left, right), (right, left)):
        if not types.is_numeric(one.type) and not (
            types.is_numeric(other.type) and (one.is_null or one.type == types.STRING)
        ):
            names = f"{types.spark_name(left.type)} and {types.spark_name(right.type)}"
            raise mismatch(node, f"arithmetic on {names}", "CAST to a number")
    if left.is_null or right.is_null:
        kind = right.type if left.is_null else left.type
        return coerce(left, kind, node), coerce(right, kind, node)
    exact = all(types.is_integer(term.type) or types.is_decimal(term.type) for term in (left, right))
    if exact and (types.is_decimal(left.type) or types.is_decimal(right.type)):
        return coerce(left, _own_decimal(left), node), coerce(right, _own_decimal(right), node)
    kind = types.common_type(left.type, right.type)
    return coerce(left, kind, node), coerce(right, kind, node)


def _own_decimal(term: Term) -> pa.DataType:
    """Spark gives an integer literal beside a decimal just the digits that it has."""
    if term.literal and types.is_integer(term.type):
        return pa.decimal128(len(str(abs(term.value))), 0)
    return types.decimal_for(term.type)


def _sum(sign: str, left: Term, right: Term, node: exp.Expression) -> Term:
    one, two = left.type, right.type
    scale = max(one.scale, two.scale)
    precision = max(one.precision - one.scale, two.precision - two.scale) + scale + 1
    kind = _exact(precision, scale, node)
    target = duckdb_type(kind)
    return build(f"CAST({{0}} {sign} {{1}} AS {target})", kind, coerce(left, kind, node), coerce(right, kind, node))


def _product(sign: str, left: Term, right: Term, node: exp.Expression) -> Term:
    one, two = left.type, right.type
    kind = _exact(one.precision + two.precision + 1, one.scale + two.scale, node)
    # DuckDB multiplies 18 digits at most as 64-bit numbers, and fails if the product is larger.
    wide = one if kind.precision <= 19 else pa.decimal128(max(one.precision, 19), one.scale)
    return build(f"CAST({{0}} {sign} {{1}} AS {duckdb_type(kind)})", kind, coerce(left, wide, node), right)


def _quotient(left: Term, right: Term, node: exp.Expression) -> Term:
    raise refuse(node, "division of decimals is not offered", "CAST one side to DOUBLE")


def _exact(precision: int, scale: int, node: exp.Expression) -> pa.DataType:
    if precision > types.MAX_PRECISION:
        raise refuse(
            node,
            f"the result needs {precision} digits, and a DECIMAL has {types.MAX_PRECISION}",
            "CAST the operands to narrower decimals",
        )
    return pa.decimal128(precision, scale)
