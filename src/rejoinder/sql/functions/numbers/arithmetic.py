"""Arithmetic with Spark's result types: overflow and division by zero fail, decimals follow Spark's precision."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.ir.expressions.monotone import Step
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument
from rejoinder.sql.functions.scalar_function import ScalarFunction, arguments
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.interval_literals import add_days, interval_of, shift
from rejoinder.sql.types.interval_values import calculate, difference, has_interval
from rejoinder.sql.types.literals import number
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only, refuse


def compile_negation(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile unary minus. The smallest BIGINT is one literal, not the negation of a larger one."""
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(node.this.this, node, negative=True)
    term = compiler.compile(node.this)
    if spark_types.is_numeric(term.type) or pa.types.is_duration(term.type):
        can_fail = spark_types.is_integer(term.type) or pa.types.is_duration(term.type)
        return call("negative", term.type, term, can_fail=can_fail)
    raise mismatch(node, f"`-` needs a number, not {spark_types.spark_name(term.type)}")


def compile_sign(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile NEGATIVE and POSITIVE, the functions of unary minus and plus."""
    (value,) = arguments(node, 1)
    term = number_argument(compiler, value, node)
    if node.name.lower() == "positive":
        return term
    return call("negative", term.type, term, can_fail=spark_types.is_integer(term.type))


def number_argument(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Compile an argument that Spark takes as a number; text and NULL become DOUBLE."""
    term = compiler.compile(node)
    if term.is_null or term.type == spark_types.STRING:
        return coerce(term, spark_types.DOUBLE, parent)
    if not spark_types.is_numeric(term.type):
        raise mismatch(parent, f"a number is needed, not {spark_types.spark_name(term.type)}")
    return term


def compile_addition(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `+`, of numbers, of a date and days, or of a time and an interval."""
    only(node, "this", "expression")
    for time, amount in ((node.this, node.expression), (node.expression, node.this)):
        interval = interval_of(amount)
        if interval is not None:
            return shift(compiler.compile(time), interval, node)
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if has_interval(left, right):
        return calculate("+", left, right, node)
    if spark_types.DATE in (left.type, right.type) and not (left.is_null or right.is_null):
        return add_days(left, right, node) if left.type == spark_types.DATE else add_days(right, left, node)
    return _calculated("+", left, right, node)


def compile_subtraction(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `-`, likewise."""
    only(node, "this", "expression")
    interval = interval_of(node.expression)
    if interval is not None:
        return shift(compiler.compile(node.this), -interval, node)
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if has_interval(left, right):
        return calculate("-", left, right, node)
    if pa.types.is_timestamp(left.type) and spark_types.is_datetime(right.type):
        return difference(left, right, node)
    if spark_types.is_datetime(left.type) and (spark_types.is_datetime(right.type) or right.type == spark_types.STRING):
        raise refuse(
            node,
            "the difference of two dates is an interval of days, which is not supported",
            "use datediff, which counts the days; or CAST one of the two to TIMESTAMP",
        )
    if left.type == spark_types.DATE:
        if not spark_types.is_integer(right.type):
            raise mismatch(node, f"{spark_types.spark_name(right.type)} cannot be taken from a date")
        return add_days(left, right, node, sign=-1)
    return _calculated("-", left, right, node)


def compile_multiplication(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `*`."""
    only(node, "this", "expression")
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    return calculate("*", left, right, node) if has_interval(left, right) else _calculated("*", left, right, node)


def _calculated(sign: str, left: Term, right: Term, node: exp.Expr) -> Term:
    left, right = _numbers(left, right, node)
    if spark_types.is_decimal(left.type):
        kind, can_fail = _product_type(left.type, right.type) if sign == "*" else _sum_type(left.type, right.type)
        return call(sign, kind, left, right, can_fail=can_fail)
    is_integer = spark_types.is_integer(left.type)
    monotone = _monotone_sum(sign, left, right) if is_integer and sign != "*" else None
    return call(sign, left.type, left, right, nulls="propagated", can_fail=is_integer, monotone=monotone)


def _monotone_sum(sign: str, left: Term, right: Term) -> MonotoneArgument | None:
    """The sum of an integer and a constant is monotone."""
    if right.value is not None:
        return MonotoneArgument(0, (Step(right.value if sign == "+" else -right.value),))
    return MonotoneArgument(1, (Step(left.value),)) if left.value is not None and sign == "+" else None


def compile_division(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `/`: DOUBLE, or DECIMAL if a side is DECIMAL and none is inexact."""
    only(node, "this", "expression", "safe", "typed")
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if has_interval(left, right):
        return calculate("/", left, right, node)
    untyped = left.is_null
    left, right = _numbers(left, right, node)
    if spark_types.is_decimal(left.type) and not untyped:
        return _divided("/", _quotient_type(left.type, right.type), left, right)
    return _divided(
        "/", spark_types.DOUBLE, coerce(left, spark_types.DOUBLE, node), coerce(right, spark_types.DOUBLE, node)
    )


def _divided(name: str, kind: pa.DataType, left: Term, right: Term, monotone: MonotoneArgument | None = None) -> Term:
    """A division, which fails if the divisor is zero. Spark evaluates the divisor first."""
    return call(name, kind, left, right, evaluation="from the right", can_fail=True, monotone=monotone)


def compile_modulo(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `%`, whose result has the sign of the left side."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    return _divided("%", _rest_type(left.type, right.type), left, right)


def compile_positive_modulo(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile PMOD, whose result is not negative unless the divisor is."""
    dividend, divisor = arguments(node, 2)
    left, right = _numbers(compiler.compile(dividend), compiler.compile(divisor), node)
    digits = _common_digits(left.type, right.type) if spark_types.is_decimal(left.type) else 0
    if digits > spark_types.MAX_PRECISION:
        raise refuse(
            node,
            f"this needs {digits} decimal digits, and there are {spark_types.MAX_PRECISION}",
            "CAST the operands to narrower decimals, or to DOUBLE",
        )
    return _divided("pmod", _rest_type(left.type, right.type), left, right)


def compile_integer_division(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `div`, which is a BIGINT for all integers."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    if not spark_types.is_integer(left.type):
        raise refuse(node, "`div` takes integers only", "CAST both sides to BIGINT, or use `/` and FLOOR")
    width = right.value
    left, right = coerce(left, spark_types.BIGINT, node), coerce(right, spark_types.BIGINT, node)
    # it goes towards zero: of negative numbers it is more than rounding down gives
    is_monotone = isinstance(width, int) and width > 0
    monotone = MonotoneArgument(0, (Step(width=width),), more=1) if is_monotone else None
    return _divided("div", spark_types.BIGINT, left, right, monotone)


def _numbers(left: Term, right: Term, node: exp.Expr) -> tuple[Term, Term]:
    """Bring two operands to the same number type; two exact ones become decimals of their own precision."""
    for term, other in ((left, right), (right, left)):
        is_read = term.is_null or term.type == spark_types.STRING
        if not spark_types.is_numeric(term.type) and not (spark_types.is_numeric(other.type) and is_read):
            names = f"{spark_types.spark_name(left.type)} and {spark_types.spark_name(right.type)}"
            is_time = any(spark_types.is_datetime(side.type) for side in (left, right))
            hint = "add an interval, as in ts + INTERVAL 5 SECONDS" if is_time else "CAST to a number"
            raise mismatch(node, f"arithmetic on {names}", hint)
    if left.is_null or right.is_null:
        kind = right.type if left.is_null else left.type
        return coerce(left, kind, node), coerce(right, kind, node)
    is_exact = all(spark_types.is_integer(term.type) or spark_types.is_decimal(term.type) for term in (left, right))
    if is_exact and (spark_types.is_decimal(left.type) or spark_types.is_decimal(right.type)):
        return coerce(left, _own_decimal(left, node), node), coerce(right, _own_decimal(right, node), node)
    kind = spark_types.common_type(left.type, right.type)
    return coerce(left, kind, node), coerce(right, kind, node)


def _own_decimal(term: Term, node: exp.Expr) -> pa.DataType:
    """Spark gives an integer literal beside a decimal just the digits that it has."""
    if term.suffixed and spark_types.is_integer(term.type):
        raise refuse(
            node,
            "a number with a suffix beside a DECIMAL is not supported",
            "write it without the suffix, or CAST(… AS …)",
        )
    if term.literal and term.value is not None and spark_types.is_integer(term.type):
        return pa.decimal128(len(str(abs(term.value))), 0)
    return spark_types.decimal_for(term.type)


def _sum_type(left: pa.DataType, right: pa.DataType) -> tuple[pa.DataType, bool]:
    """The type of a sum of decimals, and whether it may overflow."""
    precision, scale = _common_digits(left, right) + 1, max(left.scale, right.scale)
    return spark_types.adjusted_decimal(precision, scale), precision > spark_types.MAX_PRECISION


def _product_type(left: pa.DataType, right: pa.DataType) -> tuple[pa.DataType, bool]:
    precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    return spark_types.adjusted_decimal(precision, scale), precision > spark_types.MAX_PRECISION


def _quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(6, left.scale + right.precision + 1)
    return spark_types.adjusted_decimal(left.precision - left.scale + right.scale + scale, scale)


def _rest_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if not spark_types.is_decimal(left):
        return left
    scale = max(left.scale, right.scale)
    return pa.decimal128(max(min(kind.precision - kind.scale for kind in (left, right)) + scale, 1), scale)


def _common_digits(left: pa.DataType, right: pa.DataType) -> int:
    """How many digits a decimal needs that holds the values of two others."""
    return int(max(kind.precision - kind.scale for kind in (left, right)) + max(left.scale, right.scale))


FUNCTIONS = (
    ScalarFunction(
        "x + y",
        "The sum of numbers, of a date and days, or of a time and an interval.",
        "(1 + 2 = 3) AND (DATE '2024-02-28' + INTERVAL 2 DAYS = DATE '2024-03-01')",
        operator="+",
        parsed=exp.Add,
        form=compile_addition,
    ),
    ScalarFunction(
        "x - y",
        "The difference of numbers, of a date and days, or of a time and an interval; also `-x`.",
        "1 - 2 = -1",
        operator="-",
        parsed=exp.Sub,
        form=compile_subtraction,
    ),
    ScalarFunction("-x", "The negative number.", "-(-1) = 1", operator="-x", parsed=exp.Neg, form=compile_negation),
    ScalarFunction("x * y", "The product.", "2 * 3 = 6", operator="*", parsed=exp.Mul, form=compile_multiplication),
    ScalarFunction(
        "x / y",
        "The quotient: a DECIMAL if a side is one and none is inexact, else a DOUBLE. A divisor of zero fails.",
        "3 / 2 = 1.5",
        operator="/",
        parsed=exp.Div,
        form=compile_division,
    ),
    ScalarFunction(
        "x % y",
        "The rest of a division, with the sign of `x`.",
        "-7 % 3 = -1",
        operator="%",
        parsed=exp.Mod,
        form=compile_modulo,
    ),
    ScalarFunction(
        "x div y",
        "The whole part of the quotient of integers.",
        "7 div 2 = 3",
        operator="div",
        parsed=exp.IntDiv,
        form=compile_integer_division,
    ),
    ScalarFunction(
        "positive(x)",
        "The number; with negative, `-x`.",
        "negative(positive(1)) = -1",
        aliases=("negative",),
        form=compile_sign,
    ),
    ScalarFunction(
        "pmod(x, y)",
        "The rest of a division, not negative unless `y` is.",
        "pmod(-7, 3) = 2",
        form=compile_positive_modulo,
    ),
)
