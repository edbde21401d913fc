"""CAST and TRY_CAST by Spark's ANSI rules, and the implicit casts of its coercion rules."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes
from rejoinder.sql.types import flow_zone, spark_types
from rejoinder.sql.types.datetime_literals import parse_date, parse_time, parse_timestamp
from rejoinder.sql.types.literals import constant
from rejoinder.sql.types.nested_casts import cast_nested, is_nested_cast
from rejoinder.sql.types.terms import Term, mismatch, refuse

_HINT = "prepare the column in the source"


def coerce(term: Term, kind: pa.DataType, node: exp.Expr) -> Term:
    """Cast implicitly, to a type that Spark's rules chose. A literal string is read right here."""
    if term.literal and term.type == spark_types.STRING and spark_types.is_datetime(kind):
        return read_literal(term.value, kind, node)
    return cast(term, kind, node)


def read_literal(text: str, kind: pa.DataType, node: exp.Expr) -> Term:
    """Read the text of a date or timestamp literal. Raises `InvalidSql` where Spark fails."""
    if kind == spark_types.TIME:
        value: object = parse_time(text)
    elif kind == spark_types.DATE:
        value = parse_date(text)
    else:
        value = parse_timestamp(text, zoned=kind == spark_types.TIMESTAMP, zone=flow_zone.flow_zone())
    if value is None:
        raise errors.InvalidSql(
            f"'{text}' is not a {spark_types.spark_name(kind)} that can be read",
            detail=f"in `{node.sql(dialect='spark')}`",
            hint="write it as yyyy-MM-dd, for a timestamp with HH:mm:ss after it",
        )
    return constant(value, kind)


def cast(term: Term, kind: pa.DataType, node: exp.Expr, *, is_try: bool = False) -> Term:
    """Cast explicitly. Raises a `PlanningError` for types between which there is no cast."""
    source = term.type
    if source == kind:
        return term
    if term.is_null:
        if isinstance(term.node, nodes.Call):  # it fails, and takes any type
            return Term(nodes.Call(term.node.operation, term.node.parts, kind))
        return Term(nodes.Literal(None, kind))
    if isinstance(term.value, int) and spark_types.is_integer(source) and _holds(kind, term.value):
        return constant(Decimal(term.value) if spark_types.is_decimal(kind) else term.value, kind)
    if is_nested_cast(source, kind) and not is_try:
        return cast_nested(term, kind, lambda inner, into: cast(inner, into, node))
    _check(source, kind, node, is_try=is_try)
    if source == spark_types.BOOLEAN and spark_types.is_numeric(kind) and kind != spark_types.TINYINT:
        return cast(cast(term, spark_types.TINYINT, node), kind, node, is_try=is_try)
    if flow_zone.is_local() and spark_types.TIMESTAMP in (source, kind) and not _is_number(source, kind):
        return _cast_in_zone(term, kind, node, is_try=is_try)
    if isinstance(term.node, nodes.Column) and pa.types.is_timestamp(source) and pa.types.is_timestamp(kind):
        return Term(nodes.Column(term.node.name, kind))  # the zone is only a label
    return Term(nodes.Cast(term.node, kind, is_try=is_try))


def _is_number(source: pa.DataType, kind: pa.DataType) -> bool:
    return spark_types.is_numeric(source) or spark_types.is_numeric(kind)


def _cast_in_zone(term: Term, kind: pa.DataType, node: exp.Expr, *, is_try: bool) -> Term:
    """Cast from or to TIMESTAMP through the local time of the flow's zone."""
    if term.type == spark_types.TIMESTAMP:
        return cast(flow_zone.local(term), kind, node, is_try=is_try)
    if term.type == spark_types.STRING:
        return flow_zone.read_text(term, is_try=is_try)
    return flow_zone.instant(cast(term, spark_types.TIMESTAMP_NTZ, node, is_try=is_try))


def _holds(kind: pa.DataType, value: int) -> bool:
    if spark_types.is_integer(kind):
        return bool(-(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1))
    if spark_types.is_decimal(kind):
        return bool(abs(value) < 10 ** (kind.precision - kind.scale))
    return bool(kind == spark_types.DOUBLE)


def _check(source: pa.DataType, kind: pa.DataType, node: exp.Expr, *, is_try: bool) -> None:
    if kind == spark_types.STRING and source in (spark_types.FLOAT, spark_types.DOUBLE):
        why = "the text of a floating-point number is Java's, and is not supported"
        raise refuse(node, why, "CAST it to a DECIMAL before")
    if is_try and (source, kind) == (spark_types.BIGINT, spark_types.TIMESTAMP):
        raise refuse(node, "TRY_CAST from bigint to timestamp is not supported", "use CAST")
    if _is_supported(source, kind):
        return
    make = refuse if _is_known_to_spark(source, kind) else mismatch
    names = f"from {spark_types.spark_name(source)} to {spark_types.spark_name(kind)}"
    raise make(node, f"there is no cast {names}", _HINT)


def _is_supported(source: pa.DataType, kind: pa.DataType) -> bool:
    if spark_types.is_interval(source):
        return bool(kind == spark_types.STRING)
    if spark_types.STRING in (source, kind):
        other = source if kind == spark_types.STRING else kind
        if other == spark_types.TIME:
            return True
        is_binary = other == spark_types.BINARY and source == spark_types.STRING
        return is_binary or other == spark_types.BOOLEAN or _is_number_or_time(other)
    if spark_types.BOOLEAN in (source, kind):
        return spark_types.is_numeric(source) or spark_types.is_numeric(kind)
    if spark_types.is_numeric(source) and spark_types.is_numeric(kind):
        return True
    if source == spark_types.TIMESTAMP and spark_types.is_numeric(kind):
        return spark_types.is_integer(kind) or kind == spark_types.DOUBLE
    if kind == spark_types.TIMESTAMP and spark_types.is_integer(source):
        return True
    return spark_types.is_datetime(source) and spark_types.is_datetime(kind)


def _is_number_or_time(kind: pa.DataType) -> bool:
    return spark_types.is_numeric(kind) or spark_types.is_datetime(kind)


def _is_known_to_spark(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Spark has a cast that is not supported here."""
    return (
        kind == spark_types.STRING
        or (kind == spark_types.TIMESTAMP and spark_types.is_numeric(source))
        or (source == spark_types.TIMESTAMP and spark_types.is_numeric(kind))
        or (spark_types.is_nested(kind) and spark_types.is_nested(source))
    )
