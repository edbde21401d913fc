"""Numbers rounded to the nearest even digit, in another base, and as text with separators."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.numbers.arithmetic import number_argument
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.functions.text.text_functions import text_argument
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Compiler, Term, call, refuse

_MOST_DIGITS = 10
"""Of a format: beyond, DuckDB would write digits that a DOUBLE does not have."""


def _literal(compiler: Compiler, node: exp.Expr, parent: exp.Expr, what: str) -> int:
    term = compiler.compile(node)
    if not term.literal or not spark_types.is_integer(term.type):
        raise refuse(parent, f"`{parent.name.lower()}` takes {what} as a literal integer only")
    return int(term.value)


def compile_half_even(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile BROUND to a literal number of digits after the point; half goes to the even digit."""
    value, *rest = arguments(node, 1, 2)
    digits = _literal(compiler, rest[0], node, "the number of digits") if rest else 0
    term = number_argument(compiler, value, node)
    if digits < 0 or digits > 17:
        raise refuse(node, "BROUND is supported for 0 to 17 digits after the point")
    if spark_types.is_integer(term.type):
        return term
    kind = term.type
    if spark_types.is_decimal(kind):
        scale = min(kind.scale, digits)
        kind = spark_types.bounded_decimal(kind.precision - kind.scale + 1 + scale, scale)
        if kind.precision + scale > spark_types.MAX_PRECISION:
            raise refuse(node, f"BROUND to {spark_types.spark_name(kind)} is not supported", "CAST to fewer digits")
    return call("bround", kind, term, options=(digits,))


def compile_format(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile FORMAT_NUMBER with a literal number of digits."""
    value, size = arguments(node, 2)
    digits = _literal(compiler, size, node, "the number of digits")
    if not 0 <= digits <= _MOST_DIGITS:
        raise refuse(node, f"FORMAT_NUMBER is supported for 0 to {_MOST_DIGITS} digits after the point")
    term = number_argument(compiler, value, node)
    can_fail = spark_types.is_fractional(term.type) and not spark_types.is_decimal(term.type)
    return call("format_number", spark_types.STRING, term, options=(digits,), nulls="propagated", can_fail=can_fail)


def compile_conv(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CONV between literal bases; a negative one to which makes a number with a sign."""
    text, source, target = arguments(node, 3)
    bases = tuple(_literal(compiler, part, node, "a base") for part in (source, target))
    if not (2 <= bases[0] <= 36 and 2 <= abs(bases[1]) <= 36):
        raise refuse(node, "CONV is supported for the bases 2 to 36")
    return call("conv", spark_types.STRING, text_argument(compiler, text, node), options=bases, can_fail=True)


FUNCTIONS = (
    ScalarFunction(
        "bround(x, digits)", "The number rounded to digits after the point; half goes to the even digit.",
        "bround(2.5, 0) = 2", form=compile_half_even,
    ),
    ScalarFunction(
        "conv(text, base, other)", "A number in one base, from 2 to 36, in another one.", "conv('255', 10, 16) = 'FF'",
        form=compile_conv,
    ),
    ScalarFunction(
        "format_number(x, digits)", "A number with commas, and so many digits after the point.",
        "format_number(12345.678, 1) = '12,345.7'", form=compile_format,
    ),
)  # fmt: skip
