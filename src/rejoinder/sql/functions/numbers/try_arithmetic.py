"""Arithmetic that gives NULL where the operator would fail, and other functions of numbers that are NULL at times."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.numbers.math_functions import double_argument, inexact_argument
from rejoinder.sql.functions.scalar_function import NodeCompiler, ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import whole_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.terms import Compiler, Term, call, refuse


def _compile_try(name: str) -> NodeCompiler:
    """Make the compiler of TRY_ADD and its like, for integers and inexact numbers."""

    def compile_try(compiler: Compiler, node: exp.Expr) -> Term:
        terms = [compiler.compile(part) for part in arguments(node, 2)]
        if any(not spark_types.is_numeric(term.type) and not term.is_null for term in terms):
            raise refuse(node, f"`{name}` is supported for numbers only", "CAST both sides to a number")
        terms, kind = together(terms, node)
        if pa.types.is_decimal(kind):
            hint = "use the operator, or CAST both sides to DOUBLE"
            raise refuse(node, f"`{name}` of decimals is not supported", hint)
        if name == "try_divide":
            kind = spark_types.DOUBLE
            terms = [coerce(term, kind, node) for term in terms]
        return call(name, kind, *terms)

    return compile_try


def compile_nan_value(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NANVL."""
    terms, kind = together([inexact_argument(compiler, part, node) for part in arguments(node, 2)], node)
    return call("nanvl", kind, *terms, evaluation="lazy")


def _long_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    return coerce(compiler.compile(node), spark_types.BIGINT, parent)


FUNCTIONS = (
    ScalarFunction(
        "factorial(n)", "The factorial of an INT; NULL unless it is between 0 and 20.", "factorial(5) = 120",
        (whole_argument,), spark_types.BIGINT,
    ),
    ScalarFunction(
        "nanvl(x, y)", "`x`, or `y` if it is NaN.", "nanvl(CAST('NaN' AS DOUBLE), 1D) = 1", form=compile_nan_value
    ),
    ScalarFunction(
        "try_add(x, y)", "The sum; NULL if it is out of range.", "try_add(2147483647, 1) IS NULL",
        form=_compile_try("try_add"),
    ),
    ScalarFunction(
        "try_divide(x, y)", "The quotient as a DOUBLE; NULL if the divisor is zero.", "try_divide(1, 0) IS NULL",
        form=_compile_try("try_divide"),
    ),
    ScalarFunction(
        "try_mod(x, y)", "The rest of a division; NULL if the divisor is zero.", "try_mod(1, 0) IS NULL",
        form=_compile_try("try_mod"),
    ),
    ScalarFunction(
        "try_multiply(x, y)", "The product; NULL if it is out of range.", "try_multiply(2147483647, 2) IS NULL",
        form=_compile_try("try_multiply"),
    ),
    ScalarFunction(
        "try_subtract(x, y)", "The difference; NULL if it is out of range.", "try_subtract(-2147483648, 1) IS NULL",
        form=_compile_try("try_subtract"),
    ),
    ScalarFunction(
        "width_bucket(x, low, high, n)",
        "The number of the bucket of `n` equal ones between two bounds, 0 before and n + 1 after them.",
        "width_bucket(5, 0, 10, 5) = 3",
        (double_argument, double_argument, double_argument, _long_argument),
        spark_types.BIGINT,
    ),
)  # fmt: skip
