"""All aggregates, by name and by the class that sqlglot parses a call to."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.aggregates import (
    collected_aggregates,
    ordered_aggregates,
    plain_aggregates,
    sketches,
    statistics,
)
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateFunction
from rejoinder.sql.functions.aggregates.user_aggregates import user_aggregate
from rejoinder.sql.functions.user_calls import user_function
from rejoinder.sql.types.terms import refuse

AGGREGATES: tuple[AggregateFunction, ...] = (
    *plain_aggregates.AGGREGATES,
    *statistics.AGGREGATES,
    *ordered_aggregates.AGGREGATES,
    *collected_aggregates.AGGREGATES,
    *sketches.AGGREGATES,
)

BY_CLASS: dict[type[exp.Expr], AggregateFunction] = {
    aggregate.parsed: aggregate for aggregate in AGGREGATES if aggregate.parsed is not None
}
BY_NAME: dict[str, AggregateFunction] = {name: aggregate for aggregate in AGGREGATES for name in aggregate.signatures}


def aggregate_of(node: exp.Expr) -> AggregateFunction | None:
    """The aggregate that a node calls."""
    if isinstance(node, exp.Any):  # the aggregate `any`, unless a comparison with ANY is meant
        return BY_NAME["any"] if isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Binary) else None
    declared = user_function(node, "aggregate")
    if declared is not None:
        return user_aggregate(declared)
    return BY_NAME.get(node.name.lower()) if isinstance(node, exp.Anonymous) else BY_CLASS.get(type(node))


def argument_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call of an aggregate; of the estimate from a sketch, also those of the sketch.

    Raises `Unsupported` for an estimate from something else.
    """
    aggregate = aggregate_of(node)
    if aggregate is not None and aggregate.sketch:
        return [*sketch_node(node, aggregate).expressions, *node.expressions[1:]]
    if isinstance(node, exp.Any):
        return [node.this.this]
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("expression")]
    rest = [] if isinstance(node, exp.Anonymous) else node.expressions
    return [part for part in (*parts, *rest) if part is not None]


def sketch_node(node: exp.Expr, aggregate: AggregateFunction) -> exp.Expr:
    """The call that makes the sketch of an estimate. Raises `Unsupported` for something else."""
    sketch = node.expressions[0] if node.expressions else None
    if isinstance(sketch, exp.Anonymous) and sketch.name.lower() == aggregate.sketch:
        return sketch
    raise refuse(
        node, f"`{aggregate.name}` is supported of a call of {aggregate.sketch} only", f"write {aggregate.signature}"
    )
