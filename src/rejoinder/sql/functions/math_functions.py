"""Functions on numbers.

EXP, LN, LOG, POWER and the trigonometric functions are not here: for some numbers Java's last digit is not DuckDB's.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir import operators
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.sql.functions.arithmetic import positive_modulo
from rejoinder.sql.functions.logic import choose, equal, together
from rejoinder.sql.functions.scalar_function import (
    NodeCompiler,
    ScalarFunction,
    arguments,
    first_type,
    parsed_as_nodes,
)
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce, decimal_digits
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.terms import NULL, Compiler, Term, build, combine, listed, mismatch, only, refuse

_LEAST, _MOST = -(2**63), 2**63 - 1


def number_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a number; text and NULL become DOUBLE."""
    term = compiler.compile(node)
    if term.is_null or term.type == spark_types.STRING:
        return coerce(term, spark_types.DOUBLE, parent)
    if not spark_types.is_numeric(term.type):
        raise mismatch(parent, f"a number is needed, not {spark_types.spark_name(term.type)}")
    return term


def double_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a DOUBLE."""
    return coerce(number_argument(compiler, node, parent), spark_types.DOUBLE, parent)


def inexact_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a FLOAT or DOUBLE."""
    term = number_argument(compiler, node, parent)
    return term if term.type == spark_types.FLOAT else coerce(term, spark_types.DOUBLE, parent)


def _compile_cut(verb: str) -> NodeCompiler:
    """Make the compiler of FLOOR or CEIL: BIGINT, or a DECIMAL without fraction."""

    def compile_cut(compiler: Compiler, node: exp.Expr) -> Term:
        only(node, "this")
        term = number_argument(compiler, node.this, node)
        if spark_types.is_integer(term.type):
            return coerce(term, spark_types.BIGINT, node)
        if spark_types.is_decimal(term.type):
            if term.type.scale == 0:
                return term
            kind = spark_types.bounded_decimal(term.type.precision - term.type.scale + 1, 0)
            return build(f"CAST({verb}({{0}}) AS {duckdb_type(kind)})", kind, term)
        # Java's conversion stops at the ends, and makes 0 of NaN.
        cut = (
            f"CASE WHEN isnan({{0}}) THEN 0 WHEN {{0}} >= 9223372036854775807 THEN {_MOST} "
            f"WHEN {{0}} <= -9223372036854775808 THEN {_LEAST} ELSE CAST({verb}({{0}}) AS BIGINT) END"
        )
        return build(cut, spark_types.BIGINT, coerce(term, spark_types.DOUBLE, node))

    return compile_cut


def compile_round(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ROUND to a literal number of digits after the point; half goes away from zero."""
    only(node, "this", "decimals")
    digits = _digits(compiler, node)
    term = number_argument(compiler, node.this, node)
    if spark_types.is_integer(term.type):
        return term
    if spark_types.is_decimal(term.type):
        scale = min(term.type.scale, digits)
        kind = spark_types.bounded_decimal(term.type.precision - term.type.scale + 1 + scale, scale)
        return build(f"CAST({{0}} AS {duckdb_type(kind)})", kind, term)
    if digits > 18:
        raise refuse(node, "ROUND to more than 18 digits is not supported")
    # Spark rounds the number's shortest text. From 2^52 on there is no fraction to round.
    target, wide = duckdb_type(term.type), "CAST({0} AS DOUBLE)"
    rounded = f"CAST(CAST({decimal_digits(wide, pa.decimal128(38, digits))} AS VARCHAR) AS {target})"
    if term.type == spark_types.DOUBLE and digits < 15:
        # With 15 digits, the way back from the decimal is exact, and needs no text.
        short = f"CAST({decimal_digits(wide, pa.decimal128(18, digits))} AS DOUBLE)"
        rounded = f"CASE WHEN abs({{0}}) < 1e{15 - digits} THEN {short} ELSE {rounded} END"
    kept = "NOT isfinite({0}) OR abs({0}) >= 4503599627370496"
    return build(f"CASE WHEN {kept} THEN {{0}} ELSE {rounded} END", term.type, term)


def _digits(compiler: Compiler, node: exp.Expr) -> int:
    if node.args.get("decimals") is None:
        return 0
    term = compiler.compile(node.args["decimals"])
    if not term.literal or not spark_types.is_integer(term.type) or term.value < 0:
        raise refuse(node, "ROUND takes a literal number of digits, 0 or more")
    return int(term.value)


def compile_positive_modulo(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile PMOD."""
    left, right = arguments(node, 2)
    return positive_modulo(compiler, left, right, node)


def compile_extreme(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile GREATEST and LEAST, which leave NULLs out; NaN is the greatest."""
    only(node, "this", "expressions", "ignore_nulls")
    compiled = [compiler.compile(part) for part in (node.this, *node.expressions)]
    if len(compiled) < 2:
        raise mismatch(node, "at least two values are needed")
    if len({term.type == spark_types.STRING for term in compiled if not term.is_null}) > 1:
        raise mismatch(node, "strings and other types cannot be ordered", "CAST to one type")
    terms, kind = together(compiled, node)
    if spark_types.is_nested(kind) or pa.types.is_null(kind):
        raise refuse(node, f"not supported for {spark_types.spark_name(kind)}")
    verb = "greatest" if isinstance(node, exp.Greatest) else "least"
    return combine(listed(verb, len(terms)), kind, *terms)


def compile_null_if(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NULLIF: the type is that of the first value."""
    only(node, "this", "expression")
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if left.is_null:
        return left
    return choose([equal(left, right, node)], [NULL, left], node)


def compile_if_not_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NVL2."""
    only(node, "this", "true", "false")
    tested = Term(operators.is_not_null(compiler.compile(node.this).node))
    return choose([tested], [compiler.compile(node.args[name]) for name in ("true", "false")], node)


def compile_is_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ISNULL."""
    (value,) = arguments(node, 1)
    return Term(operators.is_null(compiler.compile(value).node))


def compile_is_not_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ISNOTNULL."""
    (value,) = arguments(node, 1)
    return Term(operators.is_not_null(compiler.compile(value).node))


def compile_zero_if_null(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile ZEROIFNULL."""
    (value,) = arguments(node, 1)
    terms, _ = together([compiler.compile(value), constant(0, spark_types.INT)], node)
    return Term(operators.coalesce([term.node for term in terms]))


FUNCTIONS = (
    ScalarFunction(
        "abs(x)",
        (number_argument,),
        first_type,
        "abs({0})",
        "The number without its sign; the smallest integer has none, and fails.",
        parsed=exp.Abs,
        can_fail=lambda terms: spark_types.is_integer(terms[0].type),
    ),
    ScalarFunction(
        "sign(x)",
        (double_argument,),
        spark_types.DOUBLE,
        "CASE WHEN {0} = 0 OR isnan({0}) THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END",
        "-1, 0 or 1; NaN and the sign of zero stay.",
        parsed=exp.Sign,
        aliases=("signum",),
    ),
    ScalarFunction(
        "sqrt(x)",
        (double_argument,),
        spark_types.DOUBLE,
        "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END",
        "The square root; of a negative number it is NaN.",
        parsed=exp.Sqrt,
    ),
    ScalarFunction(
        "isnan(x)",
        (inexact_argument,),
        spark_types.BOOLEAN,
        "COALESCE(isnan({0}), FALSE)",
        "Whether the number is NaN; FALSE for NULL.",
        parsed=exp.IsNan,
    ),
)

NODES: dict[type[exp.Expr], NodeCompiler] = {
    **parsed_as_nodes(FUNCTIONS),
    exp.Floor: _compile_cut("floor"),
    exp.Ceil: _compile_cut("ceil"),
    exp.Round: compile_round,
    exp.Greatest: compile_extreme,
    exp.Least: compile_extreme,
    exp.Nullif: compile_null_if,
    exp.Nvl2: compile_if_not_null,
}

NAMED: dict[str, NodeCompiler] = {
    "pmod": compile_positive_modulo,
    "isnull": compile_is_null,
    "isnotnull": compile_is_not_null,
    "zeroifnull": compile_zero_if_null,
}
