"""CAST and TRY_CAST as Spark's ANSI mode does them, as templates.

Where a value does not fit, CAST fails the row and TRY_CAST gives NULL. Both are built from one text that gives NULL.
"""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.cast_rules import has_uncertain_digits, is_total
from rejoinder.ir.expressions.nodes import Cast
from rejoinder.ir.type_names import spark_name
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.parts.datetime_text import (
    BLANK,
    read_date,
    read_time,
    read_timestamp,
    write_date,
    write_timestamp,
)
from rejoinder.kernels.duckdb.functions.parts.decimal_text import decimal_digits, read_decimal
from rejoinder.kernels.duckdb.functions.parts.interval_text import write_interval
from rejoinder.kernels.duckdb.functions.templates import bound, failing

_INTEGER = rf"^{BLANK}([+-]?[0-9]+){BLANK}$"
_DECIMAL = rf"^{BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?){BLANK}$"
_FLOAT = rf"^{BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?{BLANK}$"
_SPECIAL = rf"^{BLANK}([+-]?(?i:inf|infinity)|(?i:nan)){BLANK}$"
_TRUE = rf"^{BLANK}(?i:t|true|y|yes|1){BLANK}$"
_FALSE = rf"^{BLANK}(?i:f|false|n|no|0){BLANK}$"
_LARGEST = "9223372036854775807"


def cast_template(cast: Cast) -> str:
    """The template of a cast between types that have one: the compiler has checked it."""
    source, target = cast.parts[0].type, cast.type
    if pa.types.is_floating(source) and pa.types.is_decimal(target):
        return _from_float(source, target, is_try=cast.is_try)
    if pa.types.is_timestamp(target) and not pa.types.is_string(source):
        return _to_timestamp(source)
    attempt = _from_text(target) if pa.types.is_string(source) else _converted(source, target)
    if cast.is_try or is_total(source, target):
        return attempt
    return f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({attempt}, {_no_fit(source, target)}) END"


def _no_fit(source: pa.DataType, target: pa.DataType) -> str:
    return failing(f"a value of type {spark_name(source)} cannot be cast to {spark_name(target)}")


def _converted(source: pa.DataType, target: pa.DataType) -> str:
    verb, name = "CAST" if is_total(source, target) else "TRY_CAST", duckdb_type(target)
    if pa.types.is_string(target):
        return _to_text(source)
    if pa.types.is_timestamp(source):
        return _from_timestamp(verb, target)
    if pa.types.is_boolean(target):
        return "({0} <> 0)"
    if pa.types.is_integer(target) and not (pa.types.is_integer(source) or pa.types.is_boolean(source)):
        # DuckDB rounds, Spark cuts.
        cut = f"TRY_CAST(trunc({{0}}) AS {name})"
        if pa.types.is_int64(target) and pa.types.is_floating(source):
            # The nearest double to the largest BIGINT is one more, and Spark lets it through.
            return f"CASE WHEN {{0}} = 9223372036854775808 THEN {_LARGEST} ELSE {cut} END"
        return cut
    is_wide = pa.types.is_decimal(source) and source.precision > 15
    if pa.types.is_floating(target) and (is_wide or pa.types.is_float32(target)):
        # DuckDB divides a decimal by a power of ten, which rounds twice. Beyond the range of FLOAT, DuckDB fails and
        # Spark goes to infinity.
        return f"CAST(CAST({{0}} AS VARCHAR) AS {name})"
    return f"{verb}({{0}} AS {name})"


def _from_float(source: pa.DataType, target: pa.DataType, *, is_try: bool) -> str:
    """Cast a floating-point number to a decimal through its text. What is not finite becomes NULL without an error.

    From 10^16 on, Java before 19 writes some numbers with a digit too many; such a row fails.
    """
    number, with_number = bound("CAST({0} AS DOUBLE)")
    mantissa = (
        f"length(regexp_replace(regexp_extract(CAST({number} AS VARCHAR), '^-?([0-9.]*)', 1), '[.]|0+$', '', 'g'))"
    )
    message = failing("a floating-point number of 16 digits or more has no certain decimal")
    certain = f"WHEN abs({number}) >= 1e16 AND abs({number}) < 1e38 AND {mantissa} > 15 THEN {message} "
    checked = certain if has_uncertain_digits(target) else ""
    finite, with_finite = bound(f"CASE {checked}WHEN isfinite({number}) THEN {number} END")
    attempt = decimal_digits(finite, target)
    if not is_try:
        attempt = f"CASE WHEN {finite} IS NOT NULL THEN COALESCE({attempt}, {_no_fit(source, target)}) END"
    return with_number(with_finite(attempt))


def _from_text(target: pa.DataType) -> str:
    """Read a value from a text; NULL if the text is none."""
    if pa.types.is_integer(target):
        return f"TRY_CAST({_found(_INTEGER)} AS {duckdb_type(target)})"
    if pa.types.is_decimal(target):
        return read_decimal(_found(_DECIMAL), target)
    if pa.types.is_floating(target):
        number, with_number = bound(_found(_FLOAT))
        either = f"CASE WHEN {number} <> '' THEN {number} ELSE {_found(_SPECIAL)} END"
        return with_number(f"TRY_CAST({either} AS {duckdb_type(target)})")
    if pa.types.is_boolean(target):
        return f"CASE WHEN {_matches(_TRUE)} THEN TRUE WHEN {_matches(_FALSE)} THEN FALSE END"
    if pa.types.is_timestamp(target):
        return read_timestamp("{0}", zoned=target.tz is not None)
    if pa.types.is_time(target):
        return read_time("{0}")
    return read_date("{0}") if pa.types.is_date(target) else "encode({0})"


def _found(pattern: str) -> str:
    return f"regexp_extract({{0}}, {text_literal(pattern)}, 1)"


def _matches(pattern: str) -> str:
    return f"regexp_matches({{0}}, {text_literal(pattern)})"


def _to_text(source: pa.DataType) -> str:
    if pa.types.is_date(source):
        return write_date("{0}")
    if pa.types.is_duration(source) or pa.types.is_interval(source):
        return write_interval(source)
    return write_timestamp("{0}") if pa.types.is_timestamp(source) else "CAST({0} AS VARCHAR)"


def _from_timestamp(verb: str, target: pa.DataType) -> str:
    """A timestamp as a date, or as seconds since 1970, rounded down."""
    if pa.types.is_date(target):
        return "CAST({0} AS DATE)"
    micros = "epoch_us({0})"
    if pa.types.is_floating(target):
        return f"(CAST({micros} AS DOUBLE) / 1000000)"
    seconds = f"(({micros} - ({micros} % 1000000 + 1000000) % 1000000) // 1000000)"
    return f"{verb}({seconds} AS {duckdb_type(target)})"


def _to_timestamp(source: pa.DataType) -> str:
    """A timestamp of a date, of seconds since 1970, or of the other timestamp type, whose DuckDB values are the same.

    Spark stops at the ends of its range, which DuckDB cannot hold: such a row fails.
    """
    if pa.types.is_timestamp(source):
        return "{0}"
    return "CAST({0} AS TIMESTAMP)" if pa.types.is_date(source) else "make_timestamp(CAST({0} AS BIGINT) * 1000000)"
