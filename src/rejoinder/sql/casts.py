"""CAST and TRY_CAST as Spark's ANSI mode does them, and the implicit ones."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql import types
from rejoinder.sql.terms import Compiler, Term, build, duckdb_type, failing, mismatch, only, refuse, relabel

# Spark trims blanks and control characters before it reads a number.
_BLANK = r"[\x00-\x20\x7f]*"
_INTEGER_TEXT = rf"^{_BLANK}([+-]?[0-9]+){_BLANK}$"


def coerce(term: Term, kind: pa.DataType, node: exp.Expression) -> Term:
    """Cast implicitly, to a type that Spark's rules chose."""
    return cast(term, kind, node)


def cast(term: Term, kind: pa.DataType, node: exp.Expression, *, safe: bool = False) -> Term:
    """Cast explicitly; `safe` gives NULL where the cast fails. Raises `Unsupported` for pairs that are not proven equal."""
    source = term.type
    if source == kind:
        return term
    if term.is_null:
        return Term(f"CAST(NULL AS {duckdb_type(kind)})", kind)
    if types.is_numeric(source) and types.is_numeric(kind):
        return _between_numbers(term, kind, safe=safe)
    if source == types.STRING and types.is_integer(kind):
        digits = f"regexp_extract({term.sql}, '{_INTEGER_TEXT}', 1)"
        return _guarded(digits, f"{digits} = ''", term, kind, safe=safe)
    if kind == types.STRING and (types.is_integer(source) or source in (types.BOOLEAN, types.DATE)):
        return build("CAST({0} AS VARCHAR)", kind, term)
    if types.is_datetime(source) and types.is_datetime(kind):
        return _between_datetimes(term, kind)
    raise refuse(
        node,
        f"a cast from {types.spark_name(source)} to {types.spark_name(kind)} is not offered",
        "prepare the column in the source",
    )


def compile_cast(compiler: Compiler, node: exp.Expression) -> Term:
    """Compile CAST, `::`, TRY_CAST and the functions named after types."""
    only(node, "this", "to", "safe")
    target = node.args["to"]
    return cast(compiler.compile(node.this), types.arrow_type(target), node, safe=bool(node.args.get("safe")))


def _between_numbers(term: Term, kind: pa.DataType, *, safe: bool) -> Term:
    source, target = term.type, duckdb_type(kind)
    verb = "TRY_CAST" if safe else "CAST"
    if types.is_integer(kind):
        if types.is_integer(source):
            narrower = source.bit_width > kind.bit_width
            return build(f"{verb}({{0}} AS {target})", kind, term, throws=narrower and not safe)
        # DuckDB rounds, Spark cuts.
        return build(f"{verb}(trunc({{0}}) AS {target})", kind, term, throws=not safe)
    if types.is_decimal(kind):
        if source in (types.FLOAT, types.DOUBLE):
            # Spark goes through the shortest decimal text of the number.
            return build(f"{verb}(CAST({{0}} AS VARCHAR) AS {target})", kind, term, throws=not safe)
        exact = types.decimal_for(source)
        fits = exact.precision - exact.scale <= kind.precision - kind.scale
        return build(f"{verb}({{0}} AS {target})", kind, term, throws=not (fits or safe))
    if types.is_decimal(source):
        # Spark reads the decimal's text, which gives the nearest double; DuckDB divides.
        return build(f"CAST(CAST({{0}} AS VARCHAR) AS {target})", kind, term)
    return build(f"CAST({{0}} AS {target})", kind, term)


def _guarded(text: str, wrong: str, term: Term, kind: pa.DataType, *, safe: bool) -> Term:
    target = duckdb_type(kind)
    if safe:
        return Term(f"TRY_CAST({text} AS {target})", kind, term.columns, throws=term.throws)
    message = failing(f"a string is not a valid {types.spark_name(kind)}")
    return Term(f"CASE WHEN {wrong} THEN {message} ELSE CAST({text} AS {target}) END", kind, term.columns, throws=True)


def _between_datetimes(term: Term, kind: pa.DataType) -> Term:
    if kind == types.DATE:
        return build("CAST({0} AS DATE)", kind, term)
    if term.type == types.DATE:
        return build("CAST({0} AS TIMESTAMP)", kind, term, throws=True)
    return relabel(term, kind)


def cast_failures_refused(node: exp.Expression, source: pa.DataType, kind: pa.DataType) -> None:
    """Refuse the casts that Spark refuses as well."""
    if source == types.BOOLEAN and types.is_datetime(kind):
        raise mismatch(node, f"{types.spark_name(source)} cannot be cast to {types.spark_name(kind)}")
