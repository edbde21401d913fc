"""Aggregates of values in order, over groups in which equal values are counted.

    SELECT k, percentile(x, 0.5) FROM t GROUP BY k

becomes

    SELECT k, <the value in the middle of x, each n times>
    FROM (SELECT k, x, COUNT(*) AS n FROM t GROUP BY k, x) GROUP BY k

so that a row that many others equal changes one count, and no position among them is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rejoinder.ir.aggregate_calls import Call, ValueOrder
from rejoinder.ir.expressions import operators
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.nodes import Literal
from rejoinder.ir.identities import column_part
from rejoinder.ir.logical import Aggregate, Node
from rejoinder.ir.window_calls import SortColumn
from rejoinder.sql.functions.aggregates.aggregate_function import CountedValues
from rejoinder.sql.types import spark_types


def count_values(
    root: Node,
    keys: Sequence[tuple[str, Expression]],
    values: CountedValues,
    calls: Sequence[tuple[str, Call]],
    own: str,
) -> Aggregate:
    """The results of calls on the same values, by key; `own` begins the identifiers of the counts."""
    inner_keys = [(column_part(i, "counted"), e) for i, e in keys]
    expressions = list(dict.fromkeys((*(each.value for each in values.order), values.present)))
    named = {e: column_part(own, f"value{at}") for at, e in enumerate(expressions)}
    number = column_part(own, "number")
    inner = Aggregate(
        root,
        (*inner_keys, *((named[e], e) for e in expressions)),
        ((number, Call("count", None, spark_types.BIGINT)),),
    )

    def counted(expression: Expression) -> Expression:
        return replace(column(named[expression], expression.type), text=expression.text)

    times = Literal(1, spark_types.BIGINT) if values.is_distinct else column(number, spark_types.BIGINT).node
    weight = Expression(operators.when(operators.is_not_null(counted(values.present).node), times), "count(*)")
    order = [(counted(each.value), SortColumn("", each.descending, each.nulls_first).text) for each in values.order]
    if values.most_frequent_first:
        order.insert(0, (weight, SortColumn("", descending=True, nulls_first=False).text))
    outer = tuple((i, column(inner_id, e.type)) for (i, e), (inner_id, _) in zip(keys, inner_keys, strict=True))
    made = tuple(
        (i, replace(call, argument=weight if call.argument is None else counted(call.argument))) for i, call in calls
    )
    return Aggregate(inner, outer, made, order=ValueOrder(tuple(order), weight))
