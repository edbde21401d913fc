"""CAST and TRY_CAST as Spark's ANSI mode does them, and the implicit casts of its coercion rules.

Where a value does not fit, CAST fails the row and TRY_CAST gives NULL. Both are built from one text that gives NULL.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir import nodes
from rejoinder.ir.monotone import Step
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.sql.types import datetime_text, spark_types
from rejoinder.sql.types.datetime_text import BLANK
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.nested_casts import cast_nested, is_nested_cast
from rejoinder.sql.types.terms import (
    Compiler,
    Term,
    build,
    failing,
    mismatch,
    once,
    only,
    quote_text,
    refuse,
    relabel,
    rising,
)

_INTEGER = rf"^{BLANK}([+-]?[0-9]+){BLANK}$"
_DECIMAL = rf"^{BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?){BLANK}$"
_FLOAT = rf"^{BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?{BLANK}$"
_SPECIAL = rf"^{BLANK}([+-]?(?i:inf|infinity)|(?i:nan)){BLANK}$"
_TRUE = rf"^{BLANK}(?i:t|true|y|yes|1){BLANK}$"
_FALSE = rf"^{BLANK}(?i:f|false|n|no|0){BLANK}$"
_LARGEST = "9223372036854775807"
_DAY = 86_400_000_000


def coerce(term: Term, kind: pa.DataType, node: exp.Expr) -> Term:
    """Cast implicitly, to a type that Spark's rules chose. A literal string is read right here."""
    if term.literal and term.type == spark_types.STRING and spark_types.is_datetime(kind):
        return read_literal(term.value, kind, node)
    return cast(term, kind, node)


def read_literal(text: str, kind: pa.DataType, node: exp.Expr) -> Term:
    """Read the text of a date or timestamp literal. Raises `InvalidSql` where Spark fails."""
    value = (
        datetime_text.parse_date(text)
        if kind == spark_types.DATE
        else datetime_text.parse_timestamp(text, zoned=kind == spark_types.TIMESTAMP)
    )
    if value is None:
        raise errors.InvalidSql(
            f"'{text}' is not a {spark_types.spark_name(kind)} that can be read",
            detail=f"in `{node.sql(dialect='spark')}`",
            hint="write it as yyyy-MM-dd, for a timestamp with HH:mm:ss after it",
        )
    return constant(value, kind)


def compile_cast(compiler: Compiler, node: exp.Expr) -> Term:
    """Compile CAST, `::`, TRY_CAST, typed literals such as DATE '…', and the functions named after types."""
    only(node, "this", "to", "safe")
    kind, safe = spark_types.arrow_type(node.args["to"]), bool(node.args.get("safe"))
    term = compiler.compile(node.this)
    if isinstance(node.this, exp.Literal):
        if node.this.is_string and spark_types.is_datetime(kind) and not safe:
            return read_literal(node.this.this, kind, node)
        # sqlglot reads `1L` as `1::BIGINT`; CAST(1 AS BIGINT) has more arguments.
        if spark_types.is_numeric(kind) and "format" not in node.args:
            return replace(cast(term, kind, node), suffixed=True)
    return cast(term, kind, node, safe=safe)


def cast(term: Term, kind: pa.DataType, node: exp.Expr, *, safe: bool = False) -> Term:
    """Cast explicitly; `safe` gives NULL where the cast fails. Raises `PlanningError` for pairs not supported."""
    if term.type == kind:
        return term
    if term.is_null:
        return Term(nodes.Literal(None, kind))
    made = _cast(term, kind, node, safe=safe)
    if spark_types.is_integer(term.type) and spark_types.is_integer(kind):
        return made if safe and kind.bit_width < term.type.bit_width else rising(made, term)  # NULL rises with nothing
    if not (spark_types.is_datetime(term.type) and spark_types.is_datetime(kind)):
        return made
    days = (
        Step(width=_DAY) if kind == spark_types.DATE else Step(unit=_DAY) if term.type == spark_types.DATE else Step()
    )
    return rising(made, term, days)


def _cast(term: Term, kind: pa.DataType, node: exp.Expr, *, safe: bool) -> Term:
    source = term.type
    if term.literal and spark_types.is_integer(source) and _holds(kind, term.value):
        return constant(Decimal(term.value) if spark_types.is_decimal(kind) else term.value, kind)
    if spark_types.is_numeric(source) and spark_types.is_numeric(kind):
        return _between_numbers(term, kind, safe=safe)
    if source == spark_types.STRING:
        return _from_text(term, kind, node, safe=safe)
    if kind == spark_types.STRING:
        return _to_text(term, node)
    if spark_types.is_datetime(source) and spark_types.is_datetime(kind):
        return _between_datetimes(term, kind)
    if source == spark_types.BOOLEAN and spark_types.is_numeric(kind):
        return cast(build("CAST({0} AS TINYINT)", spark_types.TINYINT, term), kind, node, safe=safe)
    if kind == spark_types.BOOLEAN and spark_types.is_numeric(source):
        return build("({0} <> 0)", kind, term)
    if source == spark_types.TIMESTAMP and spark_types.is_numeric(kind):
        return _to_seconds(term, kind, node, safe=safe)
    if kind == spark_types.TIMESTAMP and spark_types.is_integer(source):
        return _from_seconds(term, kind, node, safe=safe)
    if is_nested_cast(source, kind) and not safe:
        return cast_nested(term, kind, lambda inner, into: cast(inner, into, node))
    raise _no_such_cast(term, kind, node)


def _holds(kind: pa.DataType, value: int) -> bool:
    if spark_types.is_integer(kind):
        return bool(-(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1))
    return (
        bool(spark_types.is_decimal(kind) and abs(value) < 10 ** (kind.precision - kind.scale))
        or kind == spark_types.DOUBLE
    )


def _between_numbers(term: Term, kind: pa.DataType, *, safe: bool) -> Term:
    source, target = term.type, duckdb_type(kind)
    attempt = f"TRY_CAST({{0}} AS {target})"
    if spark_types.is_integer(kind):
        if spark_types.is_integer(source):
            return _checked(attempt, term, kind, safe=safe, total=source.bit_width <= kind.bit_width)
        # DuckDB rounds, Spark cuts.
        attempt = f"TRY_CAST(trunc({{0}}) AS {target})"
        if kind == spark_types.BIGINT and not spark_types.is_decimal(source):
            # The nearest double to the largest BIGINT is one more, and Spark lets it through.
            attempt = f"CASE WHEN {{0}} = 9223372036854775808 THEN {_LARGEST} ELSE {attempt} END"
        return _checked(attempt, term, kind, safe=safe, total=False)
    if spark_types.is_decimal(kind):
        if source in (spark_types.FLOAT, spark_types.DOUBLE):
            return _from_double(term, kind, safe=safe)
        exact = spark_types.decimal_for(source)
        fits = exact.precision - exact.scale < kind.precision - kind.scale or (
            exact.precision - exact.scale == kind.precision - kind.scale and exact.scale <= kind.scale
        )
        return _checked(attempt, term, kind, safe=safe, total=fits)
    if spark_types.is_decimal(source) and source.precision > 15:
        # DuckDB divides by a power of ten, which rounds twice.
        return build(f"CAST(CAST({{0}} AS VARCHAR) AS {target})", kind, term)
    if kind == spark_types.FLOAT:
        # Beyond the range of FLOAT, DuckDB fails and Spark goes to infinity.
        return build("CAST(CAST({0} AS VARCHAR) AS FLOAT)", kind, term)
    return build(f"CAST({{0}} AS {target})", kind, term)


def _from_double(term: Term, kind: pa.DataType, *, safe: bool) -> Term:
    """Cast a floating-point number to a decimal through its text. What is not finite becomes NULL without an error.

    From 10^16 on, Java before 19 writes some numbers with a digit too many; such a row fails.
    """
    number, wrap = once("CAST({0} AS DOUBLE)")
    mantissa = (
        f"length(regexp_replace(regexp_extract(CAST({number} AS VARCHAR), '^-?([0-9.]*)', 1), '[.]|0+$', '', 'g'))"
    )
    message = failing("a floating-point number of 16 digits or more has no certain decimal")
    certain = f"WHEN abs({number}) >= 1e16 AND abs({number}) < 1e38 AND {mantissa} > 15 THEN {message} "
    checked = certain if kind.precision - kind.scale > 16 else ""
    finite, with_finite = once(f"CASE {checked}WHEN isfinite({number}) THEN {number} END")
    attempt = decimal_digits(finite, kind)
    if not safe:
        attempt = f"CASE WHEN {finite} IS NOT NULL THEN COALESCE({attempt}, {_no_fit(term, kind)}) END"
    return build(wrap(with_finite(attempt)), kind, term, can_fail=bool(checked) or not safe)


def _from_text(term: Term, kind: pa.DataType, node: exp.Expr, *, safe: bool) -> Term:
    text = "{0}"
    if spark_types.is_integer(kind):
        attempt = f"TRY_CAST({_found(text, _INTEGER)} AS {duckdb_type(kind)})"
    elif spark_types.is_decimal(kind):
        attempt = _decimal_text(_found(text, _DECIMAL), kind)
    elif spark_types.is_numeric(kind):
        number, wrap = once(_found(text, _FLOAT))
        either = f"CASE WHEN {number} <> '' THEN {number} ELSE {_found(text, _SPECIAL)} END"
        attempt = wrap(f"TRY_CAST({either} AS {duckdb_type(kind)})")
    elif kind == spark_types.BOOLEAN:
        attempt = f"CASE WHEN {_matches(text, _TRUE)} THEN TRUE WHEN {_matches(text, _FALSE)} THEN FALSE END"
    elif kind == spark_types.DATE:
        attempt = datetime_text.read_date(text)
    elif spark_types.is_datetime(kind):
        attempt = datetime_text.read_timestamp(text, zoned=kind == spark_types.TIMESTAMP)
    elif kind == spark_types.BINARY:
        return build("encode({0})", kind, term)
    else:
        raise _no_such_cast(term, kind, node)
    return _checked(attempt, term, kind, safe=safe, total=False)


def decimal_digits(number: str, kind: pa.DataType) -> str:
    """Write the decimal of a finite DOUBLE, through its shortest text as Spark does; NULL if it does not fit."""
    return _decimal_text(f"CAST({number} AS VARCHAR)", kind)


def _decimal_text(text: str, kind: pa.DataType) -> str:
    """Read a decimal. DuckDB needs a digit before the point, and DuckDB 1 rounds wrongly after a negative exponent."""
    room = min(kind.precision + (kind.precision == kind.scale), spark_types.MAX_PRECISION)
    wider = pa.decimal128(room, kind.scale)
    number, with_number = once(text)
    found = f"regexp_extract({number}, '^[+-]?0*([0-9]*)[.]?([0-9]*)[eE]-([0-9]+)$', ['a', 'b', 'e'])"
    parts, with_parts = once(found)
    digits, shift = f"({parts}.a || {parts}.b)", f"least(TRY_CAST({parts}.e AS HUGEINT), 400)"
    point = f"CAST(length({parts}.a) - {shift} AS BIGINT)"
    size = (
        f"CASE WHEN {point} <= 0 THEN '0.' || repeat('0', -{point}) || {digits} "
        f"ELSE left({digits}, {point}) || '.' || substring({digits}, {point} + 1) END"
    )
    sign = f"CASE WHEN starts_with({number}, '-') THEN '-' ELSE '' END"
    tiny = with_parts(f"CASE WHEN {parts}.e = '' THEN {number} ELSE {sign} || {size} END")
    plain = f"CASE WHEN contains({number}, 'e-') OR contains({number}, 'E-') THEN {tiny} ELSE {number} END"
    read = f"TRY_CAST({plain} AS {duckdb_type(wider)})"
    return with_number(read if wider == kind else f"TRY_CAST({read} AS {duckdb_type(kind)})")


def _found(text: str, pattern: str) -> str:
    return f"regexp_extract({text}, {quote_text(pattern)}, 1)"


def _matches(text: str, pattern: str) -> str:
    return f"regexp_matches({text}, {quote_text(pattern)})"


def _to_text(term: Term, node: exp.Expr) -> Term:
    if spark_types.is_integer(term.type) or spark_types.is_decimal(term.type) or term.type == spark_types.BOOLEAN:
        return build("CAST({0} AS VARCHAR)", spark_types.STRING, term)
    if term.type == spark_types.DATE:
        return build(datetime_text.write_date("{0}"), spark_types.STRING, term)
    if spark_types.is_datetime(term.type):
        return build(datetime_text.write_timestamp("{0}"), spark_types.STRING, term)
    if term.type in (spark_types.FLOAT, spark_types.DOUBLE):
        raise refuse(
            node, "the text of a floating-point number is Java's, and is not supported", "CAST it to a DECIMAL before"
        )
    raise _no_such_cast(term, spark_types.STRING, node)


def _between_datetimes(term: Term, kind: pa.DataType) -> Term:
    if kind == spark_types.DATE:
        return build("CAST({0} AS DATE)", kind, term)
    if term.type == spark_types.DATE:
        return build("CAST({0} AS TIMESTAMP)", kind, term, can_fail=True)
    return relabel(term, kind)


def _to_seconds(term: Term, kind: pa.DataType, node: exp.Expr, *, safe: bool) -> Term:
    micros = "epoch_us({0})"
    if kind == spark_types.DOUBLE:
        return build("(CAST(epoch_us({0}) AS DOUBLE) / 1000000)", kind, term)
    if not spark_types.is_integer(kind):
        raise _no_such_cast(term, kind, node)
    seconds = f"(({micros} - ({micros} % 1000000 + 1000000) % 1000000) // 1000000)"
    return _checked(
        f"TRY_CAST({seconds} AS {duckdb_type(kind)})", term, kind, safe=safe, total=kind == spark_types.BIGINT
    )


def _from_seconds(term: Term, kind: pa.DataType, node: exp.Expr, *, safe: bool) -> Term:
    """Read seconds since 1970. Spark stops at the ends of its range, which DuckDB cannot hold: such a row fails."""
    wide = term.type == spark_types.BIGINT
    if wide and safe:
        raise refuse(node, "TRY_CAST from bigint to timestamp is not supported", "use CAST")
    return build("make_timestamp(CAST({0} AS BIGINT) * 1000000)", kind, term, can_fail=wide)


def _checked(attempt: str, term: Term, kind: pa.DataType, *, safe: bool, total: bool) -> Term:
    """Make a term of a template that is NULL where the cast fails; `total` says that it never does."""
    if total:
        return build(attempt.replace("TRY_CAST(", "CAST(", 1), kind, term, makes_null=False)
    if safe:
        return build(attempt, kind, term)
    strict = f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({attempt}, {_no_fit(term, kind)}) END"
    return build(strict, kind, term, can_fail=True, makes_null=False)


def _no_fit(term: Term, kind: pa.DataType) -> str:
    names = spark_types.spark_name(term.type), spark_types.spark_name(kind)
    return failing(f"a value of type {names[0]} cannot be cast to {names[1]}")


def _no_such_cast(term: Term, kind: pa.DataType, node: exp.Expr) -> errors.PlanningError:
    source, target = spark_types.spark_name(term.type), spark_types.spark_name(kind)
    spark_has_it = (
        kind == spark_types.STRING
        or (kind == spark_types.TIMESTAMP and spark_types.is_numeric(term.type))
        or (term.type == spark_types.TIMESTAMP and spark_types.is_numeric(kind))
        or (spark_types.is_nested(kind) and spark_types.is_nested(term.type))
    )
    make = refuse if spark_has_it else mismatch
    return make(node, f"there is no cast from {source} to {target}", "prepare the column in the source")
