"""Functions on numbers."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.numbers.arithmetic import number_argument
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, first_type
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only, refuse


def double_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a DOUBLE."""
    return coerce(number_argument(compiler, node, parent), spark_types.DOUBLE, parent)


def inexact_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a FLOAT or DOUBLE."""
    term = number_argument(compiler, node, parent)
    return term if term.type == spark_types.FLOAT else coerce(term, spark_types.DOUBLE, parent)


def bits_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument whose bits Spark takes: an integer or a boolean."""
    term = compiler.compile(node)
    if not (spark_types.is_integer(term.type) or term.type == spark_types.BOOLEAN):
        raise mismatch(parent, f"an integer or a boolean is needed, not {spark_types.spark_name(term.type)}")
    return term


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
            return call(verb, kind, term)
        return call(verb, spark_types.BIGINT, coerce(term, spark_types.DOUBLE, node))

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
        return call("round", kind, term, options=(digits,))
    if digits > 18:
        raise refuse(node, "ROUND to more than 18 digits is not supported")
    return call("round", term.type, term, options=(digits,))


def _digits(compiler: Compiler, node: exp.Expr) -> int:
    if node.args.get("decimals") is None:
        return 0
    term = compiler.compile(node.args["decimals"])
    if not term.literal or not spark_types.is_integer(term.type) or term.value < 0:
        raise refuse(node, "ROUND takes a literal number of digits, 0 or more")
    return int(term.value)


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
    return call("greatest" if isinstance(node, exp.Greatest) else "least", kind, *terms, evaluation="all")


FUNCTIONS = (
    ScalarFunction(
        "abs(x)",
        "The number without its sign; the smallest integer has none, and fails.",
        "abs(-2) = 2",
        (number_argument,),
        first_type,
        parsed=exp.Abs,
        can_fail=lambda terms: spark_types.is_integer(terms[0].type),
    ),
    ScalarFunction(
        "bit_count(x)",
        "The number of bits that are set, of an integer as a BIGINT.",
        "bit_count(7) = 3",
        (bits_argument,),
        spark_types.INT,
        parsed=exp.BitwiseCount,
        nulls="propagated",
    ),
    ScalarFunction(
        "ceil(x)",
        "The smallest whole number that is not less than the number.",
        "ceil(1.2) = 2",
        aliases=("ceiling",),
        parsed=exp.Ceil,
        form=_compile_cut("ceil"),
    ),
    ScalarFunction(
        "floor(x)",
        "The largest whole number that is not greater than the number.",
        "floor(-1.2) = -2",
        parsed=exp.Floor,
        form=_compile_cut("floor"),
    ),
    ScalarFunction(
        "greatest(x, y)",
        "The largest of the values that are not NULL; NaN is the largest.",
        "greatest(1, NULL, 3) = 3",
        parsed=exp.Greatest,
        form=compile_extreme,
    ),
    ScalarFunction(
        "isnan(x)",
        "Whether the number is NaN; FALSE for NULL.",
        "isnan(CAST('NaN' AS DOUBLE))",
        (inexact_argument,),
        spark_types.BOOLEAN,
        parsed=exp.IsNan,
    ),
    ScalarFunction(
        "least(x, y)",
        "The smallest of the values that are not NULL.",
        "least(1, NULL, 3) = 1",
        parsed=exp.Least,
        form=compile_extreme,
    ),
    ScalarFunction(
        "round(x, n)",
        "The number, rounded to `n` digits after the point; half is rounded away from zero.",
        "round(2.55, 1) = 2.6",
        parsed=exp.Round,
        form=compile_round,
    ),
    ScalarFunction(
        "sign(x)",
        "-1, 0 or 1; NaN and the sign of zero are kept.",
        "sign(-2.5) = -1",
        (double_argument,),
        spark_types.DOUBLE,
        parsed=exp.Sign,
        aliases=("signum",),
    ),
    ScalarFunction(
        "sqrt(x)",
        "The square root; NaN for a negative number.",
        "sqrt(9) = 3",
        (double_argument,),
        spark_types.DOUBLE,
        parsed=exp.Sqrt,
    ),
)
