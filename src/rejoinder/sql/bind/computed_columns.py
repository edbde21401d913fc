"""Computed columns of a source, `ts AS TO_TIMESTAMP(text)`: expressions over the columns of its records.

They are evaluated when a record is read, before watermarks, so a computed column can have a watermark. The catalog
stores their text; like the queries of views, it is bound whenever the flow is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import InvalidSql, PlanningError, Unsupported
from rejoinder.ir.catalog import UTC, Source
from rejoinder.ir.evolution.former_definition import former_source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import refuse_subqueries
from rejoinder.sql.types.flow_zone import bound_in
from rejoinder.sql.types.spark_types import spark_name


def computed_expression(
    source: str, name: str, text: str, recorded: Sequence[pa.Field], time_zone: str = UTC
) -> Expression:
    """Bind the expression of a computed column, in the zone of the flow. Raises a `PlanningError` that names it."""
    from rejoinder.sql.bind.query_parser import parse_query

    scope = Scope.of([Column(source, field.name, field.name, field.type) for field in recorded])
    try:
        node = parse_query(f"SELECT {text} AS `{name}` FROM `{source}`").selects[0].unalias()
        refuse_subqueries(node)
        with bound_in(time_zone):
            expression = compile_expression(node, scope)
    except PlanningError as failure:
        raise type(failure)(
            failure.fact,
            detail=f"computed column `{name}` of `{source}`: {text}",
            hint=failure.hint,
        ) from failure
    if expression.repeats:
        raise Unsupported(
            f"computed column `{name}` of `{source}` would repeat rows",
            detail=text,
            hint="use HOP in the view that reads the source",
        )
    if pa.types.is_null(expression.type):
        raise InvalidSql(f"computed column `{name}` of `{source}` has no type", detail=text, hint="CAST it to a type")
    return expression


def constant_value(source: str, name: str, text: str, kind: pa.DataType, time_zone: str) -> Expression:
    """Bind the default of a column, cast to its type. Raises a `PlanningError` that names it, also if it reads rows."""
    from rejoinder.sql.bind.query_parser import parse_query

    try:
        node = parse_query(f"SELECT CAST({text} AS {spark_name(kind)})").selects[0].unalias()
        refuse_subqueries(node)
        with bound_in(time_zone):
            return compile_expression(node, Scope.of([]))
    except PlanningError as failure:
        raise type(failure)(
            failure.fact, detail=f"default of column `{name}` of `{source}`: {text}", hint=failure.hint
        ) from failure


def reads_columns(source: Source, column: str) -> Iterator[str]:
    """Yield the computed columns of a source that read a column."""
    for name, expression in with_expressions(source, UTC).outputs:
        if column in expression.columns:
            yield name


def with_expressions(source: Source, time_zone: str) -> Source:
    """Return the source with its computed columns bound and the zone of the flow, for the tasks that read it."""
    history = tuple(
        replace(former, outputs=_outputs(former_source(source, number), time_zone))
        for number, former in enumerate(source.history)
    )
    return replace(source, outputs=_outputs(source, time_zone), time_zone=time_zone, history=history)


def _outputs(source: Source, time_zone: str) -> tuple[tuple[str, Expression], ...]:
    recorded = list(source.recorded.schema)
    return tuple(
        (name, computed_expression(source.name, name, text, recorded, time_zone)) for name, text in source.computed
    )
