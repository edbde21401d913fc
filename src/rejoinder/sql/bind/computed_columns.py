"""Computed columns of a source, `ts AS TO_TIMESTAMP(text)`: expressions over the columns of its records.

They are evaluated when a record is read, before watermarks, so a computed column can have a watermark. The catalog
stores their text; like the queries of views, it is bound whenever the flow is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import InvalidSql, PlanningError, Unsupported
from rejoinder.ir.catalog import UTC, Source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import refuse_subqueries
from rejoinder.sql.types.flow_zone import bound_in


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


def with_expressions(source: Source, time_zone: str) -> Source:
    """Return the source with its computed columns bound and the zone of the flow, for the tasks that read it."""
    recorded = list(source.recorded.schema)
    outputs = tuple(
        (name, computed_expression(source.name, name, text, recorded, time_zone)) for name, text in source.computed
    )
    return replace(source, outputs=outputs, time_zone=time_zone)
