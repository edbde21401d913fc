"""The name of an output column that has no alias: what Spark would generate, where that is certain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.names.expression_names import SUBQUERY, ExpressionNames, NotCertainError, is_cast
from rejoinder.sql.functions.window_names import with_converted_distances
from rejoinder.sql.parse.clauses import text_of


def output_name(
    node: exp.Expr,
    type_of: Callable[[exp.Expr], pa.DataType | None] | None = None,
    is_column: Callable[[exp.Column], bool] | None = None,
) -> str:
    """Give the alias, or the name that Spark would generate. Raises `Unsupported` where that name is not certain.

    `type_of` gives the type of an operand, None if it has none: Spark names sums of dates and timestamps, and frames
    with converted distances, otherwise.
    `is_column` says whether a name with dots is a column, and not a field of a struct. Without them, such names are not
    certain.
    """
    if isinstance(node, exp.Alias):
        return node.output_name
    bare = node.unnest()
    if _is_path(bare):
        return str(bare.expression.name if isinstance(bare, exp.Dot) else bare.output_name)
    value = bare.this.unnest() if is_cast(bare) else None
    if isinstance(value, exp.Column) and _is_path(value) and (not value.table or (is_column or _unknown_column)(value)):
        return value.output_name  # Spark names a cast after its column, unless it is part of something larger
    try:
        if type_of is None and node.find(exp.WindowSpec):
            raise NotCertainError
        named = node if type_of is None else with_converted_distances(node, type_of)
        return ExpressionNames(type_of or _unknown, is_column or _unknown_column).name(named)
    except (NotCertainError, errors.PlanningError):
        raise errors.Unsupported(
            f"`{text_of(node)}` needs a name",
            detail="the name that Spark would generate for it is not supported",
            hint=f"write `{text_of(node)} AS name`",
        ) from None


def subquery_name(form: str, values: Sequence[exp.Expr], outer: Sequence[str]) -> str | None:
    """Give Spark's name of a subquery in one of its forms; None where it has none.

    `outer` are the columns of the outer query that it reads, each as often as it is written.
    """
    read = f"({', '.join(outer)})"
    if form == "scalar":
        return f"scalarsubquery{read}"
    if form == "exists":
        return f"exists{read}"
    if form != "in":
        return None
    try:
        names = [ExpressionNames(_unknown, _unknown_column).name(value) for value in values]
    except (NotCertainError, errors.PlanningError):
        return None
    if len(names) == 1:
        return f"({names[0]} IN (listquery{read}))"
    fields = (
        f"'{value.name if isinstance(value, exp.Column) else f'col{place}'}', {name}"
        for place, (value, name) in enumerate(zip(values, names, strict=True), 1)
    )
    return f"(named_struct({', '.join(fields)}) IN (listquery{read}))"


def _unknown(node: exp.Expr) -> None:
    return None


def _unknown_column(node: exp.Column) -> bool:
    return False


def _is_path(node: exp.Expr) -> bool:
    """Whether a node is a column, or a field of one."""
    if isinstance(node, exp.Dot):
        return isinstance(node.expression, exp.Identifier) and _is_path(node.this.unnest())
    return isinstance(node, exp.Column) and SUBQUERY not in node.meta
