"""Exponential, logarithmic and trigonometric functions of DOUBLE.

Java allows them an error in the last digits, and so does this list: a result may differ from Spark's in the last bits.
Arguments for which a function is not defined give NaN, or NULL for logarithms, as in Spark.
"""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.numbers.math_functions import double_argument
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call


def _real(name: str, doc: str, example: str, *, outside: bool = False, aliases: tuple[str, ...] = ()) -> ScalarFunction:
    """A function of one number."""
    rule, kind = (double_argument,), spark_types.DOUBLE
    return ScalarFunction(
        f"{name}(x)", doc, example, rule, kind, outside_duckdb=outside, nulls="propagated", aliases=aliases
    )


def compile_log(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile LOG(x), which is LN, and LOG(base, x)."""
    terms = [double_argument(compiler, part, node) for part in arguments(node, 1, 2)]
    return call("ln" if len(terms) == 1 else "log", spark_types.DOUBLE, *terms)


FUNCTIONS = (
    _real("acos", "The inverse cosine.", "acos(1) = 0"),
    _real("acosh", "The inverse hyperbolic cosine.", "acosh(1) = 0"),
    _real("asin", "The inverse sine.", "asin(0) = 0"),
    _real("asinh", "The inverse hyperbolic sine.", "asinh(0) = 0"),
    _real("atan", "The inverse tangent.", "atan(0) = 0"),
    ScalarFunction(
        "atan2(y, x)",
        "The angle of a point.",
        "atan2(0, 1) = 0",
        (double_argument, double_argument),
        spark_types.DOUBLE,
        nulls="propagated",
    ),
    _real("atanh", "The inverse hyperbolic tangent.", "atanh(0) = 0", outside=True),
    _real("cbrt", "The cube root.", "round(cbrt(27), 9) = 3"),
    _real("cos", "The cosine.", "cos(0) = 1"),
    _real("cosh", "The hyperbolic cosine.", "cosh(0) = 1"),
    _real("cot", "The cotangent.", "round(cot(1), 6) = 0.642093"),
    _real("csc", "The cosecant.", "round(csc(1), 6) = 1.188395"),
    _real("degrees", "Radians as degrees.", "degrees(pi()) = 180"),
    ScalarFunction("e()", "Euler's number.", "round(e(), 4) = 2.7183", (), spark_types.DOUBLE, nulls="never"),
    _real("exp", "e to the power of the number.", "exp(0) = 1"),
    _real("expm1", "e to the power of the number, minus 1.", "expm1(0) = 0", outside=True),
    ScalarFunction(
        "hypot(x, y)",
        "The length of the hypotenuse.",
        "hypot(3, 4) = 5",
        (double_argument, double_argument),
        spark_types.DOUBLE,
        nulls="propagated",
        outside_duckdb=True,
    ),
    ScalarFunction(
        "ln(x)",
        "The natural logarithm; NULL unless the number is positive.",
        "ln(1) = 0",
        (double_argument,),
        spark_types.DOUBLE,
    ),
    ScalarFunction(
        "log(base, x)",
        "The logarithm to a base, or the natural one; NULL unless both numbers are positive.",
        "round(log(2, 8), 9) = 3",
        form=compile_log,
    ),
    ScalarFunction(
        "log10(x)",
        "The decimal logarithm; NULL unless the number is positive.",
        "log10(1000) = 3",
        (double_argument,),
        spark_types.DOUBLE,
    ),
    ScalarFunction(
        "log1p(x)",
        "The natural logarithm of 1 + x; NULL unless x is more than -1.",
        "log1p(0) = 0",
        (double_argument,),
        spark_types.DOUBLE,
        outside_duckdb=True,
    ),
    ScalarFunction(
        "log2(x)",
        "The binary logarithm; NULL unless the number is positive.",
        "round(log2(8), 9) = 3",
        (double_argument,),
        spark_types.DOUBLE,
    ),
    ScalarFunction("pi()", "The number pi.", "round(pi(), 4) = 3.1416", (), spark_types.DOUBLE, nulls="never"),
    ScalarFunction(
        "power(x, y)",
        "`x` to the power of `y`.",
        "power(2, 3) = 8",
        (double_argument, double_argument),
        spark_types.DOUBLE,
        aliases=("pow",),
        nulls="propagated",
    ),
    _real("radians", "Degrees as radians.", "radians(180) = pi()"),
    _real("rint", "The nearest whole number, the even one of two.", "rint(2.5) = 2"),
    _real("sec", "The secant.", "sec(0) = 1"),
    _real("sin", "The sine.", "sin(0) = 0"),
    _real("sinh", "The hyperbolic sine.", "sinh(0) = 0"),
    _real("tan", "The tangent.", "tan(0) = 0"),
    _real("tanh", "The hyperbolic tangent.", "tanh(0) = 0"),
)
