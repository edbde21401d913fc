"""All aggregates, by name and by the class that sqlglot parses a call to."""

from __future__ import annotations

from sqlglot import exp

from rejoinder.sql.functions.aggregates import ordered_aggregates, plain_aggregates, statistics
from rejoinder.sql.functions.aggregates.aggregate_function import AggregateFunction

AGGREGATES: tuple[AggregateFunction, ...] = (
    *plain_aggregates.AGGREGATES,
    *statistics.AGGREGATES,
    *ordered_aggregates.AGGREGATES,
)

BY_CLASS: dict[type[exp.Expr], AggregateFunction] = {
    aggregate.parsed: aggregate for aggregate in AGGREGATES if aggregate.parsed is not None
}
BY_NAME: dict[str, AggregateFunction] = {name: aggregate for aggregate in AGGREGATES for name in aggregate.signatures}


def aggregate_of(node: exp.Expr) -> AggregateFunction | None:
    """The aggregate that a node calls."""
    if isinstance(node, exp.Any):  # the aggregate `any`, unless a comparison with ANY is meant
        return BY_NAME["any"] if isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Binary) else None
    return BY_NAME.get(node.name.lower()) if isinstance(node, exp.Anonymous) else BY_CLASS.get(type(node))


def argument_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call of an aggregate."""
    if isinstance(node, exp.Any):
        return [node.this.this]
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("expression")]
    rest = [] if isinstance(node, exp.Anonymous) else node.expressions
    return [part for part in (*parts, *rest) if part is not None]
