"""Numbers rounded to the nearest even digit, in another base, and as text with separators."""

from __future__ import annotations

import math
import string

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.numbers.math_functions import RENDERINGS as MATH
from rejoinder.kernels.duckdb.functions.parts.decimal_text import decimal_digits
from rejoinder.kernels.duckdb.functions.parts.wide_arithmetic import power
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

_DIGITS = string.digits + string.ascii_uppercase
_WORD = 1 << 64


def _unscaled(decimal: str) -> str:
    return f"CAST(replace(CAST({decimal} AS VARCHAR), '.', '') AS HUGEINT)"


def _half_even(decimal: str, scale: int, digits: int) -> str:
    """The unscaled value of a decimal of a scale, rounded to fewer digits."""
    if digits >= scale:
        return f"({_unscaled(decimal)} * {10 ** (digits - scale)}::HUGEINT)"
    unit = f"{10 ** (scale - digits)}::HUGEINT"
    number, with_number = bound(_unscaled(decimal))
    twice = f"(abs({number} % {unit}) * 2)"
    is_up = f"{twice} > {unit} OR ({twice} = {unit} AND ({number} // {unit}) % 2 <> 0)"
    return with_number(f"({number} // {unit} + CASE WHEN {is_up} THEN sign({number}) ELSE 0 END)")


def _bround(call: Call) -> str:
    digits, source, kind = int(call.operation.options[0]), call.parts[0].type, call.type
    if pa.types.is_decimal(source):
        rounded = _half_even("{0}", source.scale, kind.scale)
        return f"CAST(CAST({rounded} AS DECIMAL({38 - kind.scale},0)) * {power(-kind.scale)} AS {duckdb_type(kind)})"
    # Only a number whose shortest text ends with a 5 at the next digit is rounded otherwise than by ROUND.
    exact, with_exact = bound(decimal_digits("CAST({0} AS DOUBLE)", pa.decimal128(38, digits + 1)))
    half = f"CAST(CAST({exact} AS VARCHAR) AS {duckdb_type(kind)}) = {{0}} AND {_unscaled(exact)} % 10 IN (5, -5)"
    even = f"CAST(CAST({_half_even(exact, digits + 1, digits)} AS DOUBLE) / {10**digits} AS {duckdb_type(kind)})"
    round_ = MATH["round"]
    assert callable(round_)
    is_small = f"isfinite({{0}}) AND abs({{0}}) < 1e{min(15, 17 - digits)}"
    return with_exact(f"CASE WHEN {is_small} AND {half} THEN {even} ELSE {round_(call)} END")


def _format(call: Call) -> str:
    digits, kind = int(call.operation.options[0]), call.parts[0].type
    zeros = f" || '.{'0' * digits}'" if digits else ""
    if pa.types.is_integer(kind):
        return f"({_commas('CAST({0} AS HUGEINT)')}{zeros})"
    if pa.types.is_decimal(kind):
        rounded, with_rounded = bound(f"abs({_half_even('{0}', kind.scale, digits)})")
        unit = f"{10**digits}::HUGEINT"
        rest = f" || '.' || lpad(CAST({rounded} % {unit} AS VARCHAR), {digits}, '0')" if digits else ""
        sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
        return with_rounded(f"({sign} || {_commas(f'{rounded} // {unit}')}{rest})")
    large = failing("FORMAT_NUMBER supports numbers of at most 15 digits")
    return (
        "CASE WHEN isnan({0}) THEN 'NaN' WHEN isinf({0}) THEN CASE WHEN {0} < 0 THEN '-∞' ELSE '∞' END "
        f"WHEN abs({{0}}) >= 1e{15 - digits} THEN {large} ELSE {_written(digits)} END"
    )


def _commas(number: str) -> str:
    return f"format(chr(123) || ':,' || chr(125), {number})"


def _written(digits: int) -> str:
    return f"format(chr(123) || ':,.{digits}f' || chr(125), CAST({{0}} AS DOUBLE))"


def _conv(call: Call) -> str:
    source, target = (int(base) for base in call.operation.options)
    known = _DIGITS[:source]
    text, with_text = bound("upper(trim({0}, ' '))")
    digits, with_digits = bound(f"ltrim(regexp_extract({text}, '^-?([{known}]*)', 1), '0')")
    most = math.ceil(64 / math.log2(source))
    places = f"list_transform(string_split({digits}, ''), lambda digit: CAST(instr('{known}', digit) - 1 AS HUGEINT))"
    number, with_number = bound(
        f"CASE WHEN {digits} = '' THEN 0::HUGEINT WHEN length({digits}) > {most} THEN {_WORD}::HUGEINT "
        f"ELSE list_reduce({places}, lambda total, digit: total * {source} + digit) END"
    )
    is_negative, is_high = f"starts_with({text}, '-')", f"{number} >= {_WORD // 2}::HUGEINT"
    opposite = f"({_WORD}::HUGEINT - {number}) % {_WORD}::HUGEINT"
    if target > 0:
        value = (
            f"CASE WHEN NOT {is_negative} THEN {number} WHEN {is_high} THEN {_WORD - 1}::HUGEINT ELSE {opposite} END"
        )
        result = _in_base(value, target)
    else:
        sign = f"CASE WHEN {is_negative} OR {is_high} THEN '-' ELSE '' END"
        result = f"({sign} || {_in_base(f'CASE WHEN {is_high} THEN {opposite} ELSE {number} END', -target)})"
    large = failing("the number of CONV does not fit 64 bits")
    checked = f"CASE WHEN {number} >= {_WORD}::HUGEINT THEN {large} ELSE {result} END"
    return with_text(f"CASE WHEN {text} <> '' THEN {with_digits(with_number(checked))} END")


def _in_base(number: str, base: int) -> str:
    if base == 10:
        return f"CAST({number} AS VARCHAR)"
    value, with_value = bound(number)
    powers = ", ".join(f"{base**place}::HUGEINT" for place in reversed(range(math.ceil(64 / math.log2(base)))))
    digit = f"substring({text_literal(_DIGITS)}, CAST(({value} // power) % {base} AS BIGINT) + 1, 1)"
    listed = f"ltrim(array_to_string(list_transform([{powers}], lambda power: {digit}), ''), '0')"
    return with_value(f"CASE WHEN {value} = 0 THEN '0' ELSE {listed} END")


RENDERINGS: dict[str, Rendering] = {"bround": _bround, "conv": _conv, "format_number": _format}
