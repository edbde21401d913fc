"""Arithmetic with Spark's result types: overflow and division by zero fail, decimals follow Spark's precision."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.monotone import Step
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.sql.functions.wide_arithmetic import exact, wide_product, wide_sum
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.interval_literals import add_days, interval_of, shift
from rejoinder.sql.types.literals import number
from rejoinder.sql.types.terms import Compiler, Term, build, failing, mismatch, once, only, refuse, rising

_DIVISION_BY_ZERO = failing("division by zero")


def compile_negation(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile unary minus. The smallest BIGINT is one literal, not the negation of a larger one."""
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(node.this.this, node, negative=True)
    term = compiler.compile(node.this)
    if spark_types.is_integer(term.type):
        return build(f"(CAST(0 AS {duckdb_type(term.type)}) - {{0}})", term.type, term, can_fail=True)
    if spark_types.is_numeric(term.type):
        return build(f"CAST(-{{0}} AS {duckdb_type(term.type)})", term.type, term)
    raise mismatch(node, f"`-` needs a number, not {spark_types.spark_name(term.type)}")


def compile_addition(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `+`, of numbers, of a date and days, or of a time and an interval."""
    only(node, "this", "expression")
    for time, amount in ((node.this, node.expression), (node.expression, node.this)):
        interval = interval_of(amount)
        if interval is not None:
            return shift(compiler.compile(time), interval, node)
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if spark_types.DATE in (left.type, right.type) and not (left.is_null or right.is_null):
        return add_days(left, right, node) if left.type == spark_types.DATE else add_days(right, left, node)
    return _calculated("+", left, right, _sum, node)


def compile_subtraction(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `-`, likewise."""
    only(node, "this", "expression")
    interval = interval_of(node.expression)
    if interval is not None:
        return shift(compiler.compile(node.this), -interval, node)
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    if spark_types.is_datetime(left.type) and (spark_types.is_datetime(right.type) or right.type == spark_types.STRING):
        raise refuse(
            node,
            "the difference of two times is an interval, which no column can hold",
            "move one of the two before comparing, as in a <= b + INTERVAL 1 HOUR; or use datediff or timestampdiff",
        )
    if left.type == spark_types.DATE:
        if not spark_types.is_integer(right.type):
            raise mismatch(node, f"{spark_types.spark_name(right.type)} cannot be taken from a date")
        made = add_days(left, build("(CAST(0 AS INTEGER) - {0})", right.type, right, can_fail=True), node)
        return _moved(made, left, right, "-")
    return _calculated("-", left, right, _sum, node)


def compile_multiplication(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `*`."""
    only(node, "this", "expression")
    return _calculated("*", compiler.compile(node.this), compiler.compile(node.expression), _product, node)


def _calculated(
    sign: str,
    left: Term,
    right: Term,
    on_decimals: Callable[[str, Term, Term, exp.Expr], Term],
    node: exp.Expr,
) -> Term:
    left, right = _numbers(left, right, node)
    if spark_types.is_decimal(left.type):
        return on_decimals(sign, left, right, node)
    can_fail = spark_types.is_integer(left.type)
    made = build(f"({{0}} {sign} {{1}})", left.type, left, right, name=sign, can_fail=can_fail, makes_null=False)
    return _moved(made, left, right, sign) if spark_types.is_integer(made.type) and sign != "*" else made


def _moved(made: Term, left: Term, right: Term, sign: str) -> Term:
    """The sum of a time, counted in integers or days, and a constant rises with the time."""
    if right.literal and right.value is not None:
        return rising(made, left, Step(right.value if sign == "+" else -right.value))
    if left.literal and left.value is not None and sign == "+":
        return rising(made, right, Step(left.value))
    return made


def compile_division(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `/`: DOUBLE, or DECIMAL if a side is DECIMAL and none is inexact."""
    only(node, "this", "expression", "safe", "typed")
    left, right = compiler.compile(node.this), compiler.compile(node.expression)
    untyped = left.is_null
    left, right = _numbers(left, right, node)
    if spark_types.is_decimal(left.type) and not untyped:
        return _quotient(left, right)
    left, right = coerce(left, spark_types.DOUBLE, node), coerce(right, spark_types.DOUBLE, node)
    return build(_unless_zero("{0} / {1}"), spark_types.DOUBLE, left, right, can_fail=True, right_first=True)


def compile_modulo(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `%`, whose result has the sign of the left side."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    digits = _common_digits(left.type, right.type)
    if digits > spark_types.MAX_PRECISION:
        kind = _rest_type(left.type, right.type)
        return build(_unless_zero(exact("%", kind)), kind, left, right, can_fail=True, right_first=True)
    left, right, kind = _modulo_operands(left, right, node)
    return build(_unless_zero(_rest(kind)), kind, left, right, can_fail=True, right_first=True)


def positive_modulo(compiler: Compiler, dividend: exp.Expr, divisor: exp.Expr, node: exp.Expr) -> Term:
    """Compile PMOD: a negative rest is brought up by the divisor, once."""
    left, right = _numbers(compiler.compile(dividend), compiler.compile(divisor), node)
    digits = _common_digits(left.type, right.type)
    if digits > spark_types.MAX_PRECISION:
        raise _too_wide(digits, node)
    left, right, kind = _modulo_operands(left, right, node)
    rest = _rest(kind)
    target = duckdb_type(kind)
    if spark_types.is_integer(kind):
        # The sum of rest and divisor can leave the type, its rest cannot.
        wide = f"CAST((CAST({rest} AS HUGEINT) + {{1}}) % {{1}} AS {target})"
    else:
        wide = f"CAST(({rest} + {{1}}) % {{1}} AS {target})"
    raised = f"CASE WHEN {rest} < 0 THEN {wide} ELSE {rest} END"
    return build(_unless_zero(raised), kind, left, right, can_fail=True, right_first=True)


def _modulo_operands(left: Term, right: Term, node: exp.Expr) -> tuple[Term, Term, pa.DataType]:
    if not spark_types.is_decimal(left.type):
        return left, right, left.type
    wide = pa.decimal128(_common_digits(left.type, right.type), max(left.type.scale, right.type.scale))
    return coerce(left, wide, node), coerce(right, wide, node), _rest_type(left.type, right.type)


def _common_digits(left: pa.DataType, right: pa.DataType) -> int:
    """How many digits a decimal needs that holds the values of two others; 0 if they are none."""
    if not spark_types.is_decimal(left):
        return 0
    return int(max(kind.precision - kind.scale for kind in (left, right)) + max(left.scale, right.scale))


def _rest_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return pa.decimal128(max(min(kind.precision - kind.scale for kind in (left, right)) + scale, 1), scale)


def _rest(kind: pa.DataType) -> str:
    if spark_types.is_decimal(kind):
        return f"CAST({{0}} % {{1}} AS {duckdb_type(kind)})"
    if spark_types.is_integer(kind):
        # The smallest integer modulo -1 is 0, and DuckDB calls it an overflow.
        return "CASE WHEN {1} = -1 THEN {0} - {0} ELSE {0} % {1} END"
    return "{0} % {1}"


def compile_integer_division(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile `div`, which is a BIGINT for all integers."""
    only(node, "this", "expression")
    left, right = _numbers(compiler.compile(node.this), compiler.compile(node.expression), node)
    if not spark_types.is_integer(left.type):
        raise refuse(node, "`div` takes integers only", "CAST both sides to BIGINT, or use `/` and FLOOR")
    width = right.value
    left, right = coerce(left, spark_types.BIGINT, node), coerce(right, spark_types.BIGINT, node)
    made = build(_unless_zero("{0} // {1}"), spark_types.BIGINT, left, right, can_fail=True, right_first=True)
    # it goes towards zero: of negative numbers it is more than rounding down gives
    return rising(made, left, Step(width=width), more=1) if isinstance(width, int) and width > 0 else made


def _numbers(left: Term, right: Term, node: exp.Expr) -> tuple[Term, Term]:
    """Bring two operands to the same number type; two exact ones become decimals of their own precision."""
    for one, other in ((left, right), (right, left)):
        if not spark_types.is_numeric(one.type) and not (
            spark_types.is_numeric(other.type) and (one.is_null or one.type == spark_types.STRING)
        ):
            names = f"{spark_types.spark_name(left.type)} and {spark_types.spark_name(right.type)}"
            is_time = any(spark_types.is_datetime(term.type) for term in (left, right))
            hint = "add an interval, as in ts + INTERVAL 5 SECONDS" if is_time else "CAST to a number"
            raise mismatch(node, f"arithmetic on {names}", hint)
    if left.is_null or right.is_null:
        kind = right.type if left.is_null else left.type
        return coerce(left, kind, node), coerce(right, kind, node)
    exact = all(spark_types.is_integer(term.type) or spark_types.is_decimal(term.type) for term in (left, right))
    if exact and (spark_types.is_decimal(left.type) or spark_types.is_decimal(right.type)):
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
    if term.literal and spark_types.is_integer(term.type):
        return pa.decimal128(len(str(abs(term.value))), 0)
    return spark_types.decimal_for(term.type)


def _sum(sign: str, left: Term, right: Term, node: exp.Expr) -> Term:
    one, two = left.type, right.type
    scale = max(one.scale, two.scale)
    precision = max(one.precision - one.scale, two.precision - two.scale) + scale + 1
    kind = spark_types.adjusted_decimal(precision, scale)
    if precision > spark_types.MAX_PRECISION:
        return wide_sum(sign, left, right, kind)
    left, right = coerce(left, kind, node), coerce(right, kind, node)
    return build(f"CAST({{0}} {sign} {{1}} AS {duckdb_type(kind)})", kind, left, right)


def _product(sign: str, left: Term, right: Term, node: exp.Expr) -> Term:
    one, two = left.type, right.type
    precision, scale = one.precision + two.precision + 1, one.scale + two.scale
    kind = spark_types.adjusted_decimal(precision, scale)
    if precision > spark_types.MAX_PRECISION:
        return wide_product(left, right, kind)
    # DuckDB multiplies 18 digits at most as 64-bit numbers, and fails if the product is larger.
    wide = one if precision <= 19 else pa.decimal128(max(one.precision, 19), one.scale)
    return build(f"CAST({{0}} {sign} {{1}} AS {duckdb_type(kind)})", kind, coerce(left, wide, node), right)


def _quotient(left: Term, right: Term) -> Term:
    """Divide decimals as whole numbers: DuckDB would go through DOUBLE."""
    one, two = left.type, right.type
    scale = max(6, one.scale + two.precision + 1)
    kind = spark_types.adjusted_decimal(one.precision - one.scale + two.scale + scale, scale)
    shift = kind.scale - one.scale + two.scale
    if shift < 0 or one.precision + shift > spark_types.MAX_PRECISION:
        return build(_unless_zero(exact("/", kind)), kind, left, right, can_fail=True, right_first=True)
    small = one.precision + shift <= 18 and two.precision <= 18 and kind.precision <= 18
    integer = "BIGINT" if small else "HUGEINT"
    whole, with_whole = once(f"(abs({_unscaled('{0}', one, integer)}) * CAST({10**shift} AS {integer}))")
    by, with_by = once(f"abs({_unscaled('{1}', two, integer)})")
    rest, with_rest = once(f"({whole} % {by})")
    # Half is rounded away from zero.
    half = f"{rest} >= {by} - {rest}"
    rounded = with_whole(with_by(with_rest(f"({whole} // {by} + CASE WHEN {half} THEN 1 ELSE 0 END)")))
    signed = "CASE WHEN ({0} < 0) = ({1} < 0) THEN 1 ELSE -1 END"
    unscaled = f"CAST(({rounded}) * {signed} AS DECIMAL({18 if small else 38},0))"
    quotient = f"CAST({unscaled} * {_power(-kind.scale)} AS {duckdb_type(kind)})"
    return build(_unless_zero(quotient), kind, left, right, can_fail=True, right_first=True)


def average(total: Term, count: Term, kind: pa.DataType) -> Term:
    """Divide a sum of decimals by a count, which is not zero unless the sum is NULL, as Spark's AVG does."""
    shift = kind.scale - total.type.scale
    whole, with_whole = once(f"abs({_unscaled('{0}', total.type, 'HUGEINT')})")
    by, with_by = once("CAST({1} AS HUGEINT)")
    rest, with_rest = once(f"(({whole} % {by}) * CAST({10**shift} AS HUGEINT))")
    half = f"{rest} % {by} >= {by} - {rest} % {by}"
    digits = f"{whole} // {by} * CAST({10**shift} AS HUGEINT) + {rest} // {by} + CASE WHEN {half} THEN 1 ELSE 0 END"
    rounded = with_whole(with_by(with_rest(f"({digits})")))
    unscaled = f"CAST(({rounded}) * CASE WHEN {{0}} < 0 THEN -1 ELSE 1 END AS DECIMAL(38,0))"
    quotient = f"CAST({unscaled} * {_power(-kind.scale)} AS {duckdb_type(kind)})"
    return build(f"CASE WHEN {{1}} > 0 THEN {quotient} END", kind, total, count, can_fail=True)


def _unscaled(text: str, kind: pa.DataType, integer: str) -> str:
    """Write the digits of a decimal as a whole number."""
    if kind.scale == 0:
        return f"CAST({text} AS {integer})"
    if kind.precision + kind.scale + 1 <= spark_types.MAX_PRECISION:
        width = kind.precision if kind.precision + kind.scale + 1 <= 18 else max(19, kind.precision)
        return f"CAST(CAST({text} AS DECIMAL({width},{kind.scale})) * {_power(kind.scale)} AS {integer})"
    return f"CAST(replace(CAST({text} AS VARCHAR), '.', '') AS {integer})"


def _power(exponent: int) -> str:
    if exponent < 0:
        return f"CAST('0.{'1'.rjust(-exponent, '0')}' AS DECIMAL({-exponent},{-exponent}))"
    return f"CAST({10**exponent} AS DECIMAL({exponent + 1},0))"


def _too_wide(precision: int, node: exp.Expr) -> errors.Unsupported:
    return refuse(
        node,
        f"this needs {precision} decimal digits, and there are {spark_types.MAX_PRECISION}",
        "CAST the operands to narrower decimals, or to DOUBLE",
    )


def _unless_zero(quotient: str) -> str:
    """Fail the row if the divisor is zero; NULL divided by zero is NULL."""
    return f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {_DIVISION_BY_ZERO} ELSE {quotient} END"
