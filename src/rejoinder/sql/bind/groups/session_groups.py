"""GROUP BY with a session: rows get the start of their session, and groups by it get the end.

    SELECT k, session_window(ts, '5 minutes') AS w, sum(x) FROM t GROUP BY k, session_window(ts, '5 minutes')

    SELECT k, struct(start, max(ts) + INTERVAL 5 MINUTES) AS w, sum(x)
    FROM <t with the start of the session of ts, by k, as `start`>
    GROUP BY k, start

The rows are reduced to what the groups need before they are put into sessions, because they are kept.
"""

from __future__ import annotations

from dataclasses import replace

from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import is_not_null, shifted
from rejoinder.ir.identities import column_part
from rejoinder.ir.logical import Aggregate, Filter, Node, Predicate, Project, Session
from rejoinder.sql.bind.groups.distinct_aggregates import aggregate_of
from rejoinder.sql.functions.aggregates.aggregate_function import Primitive
from rejoinder.sql.functions.time.windows import ColumnBounds


def group_sessions(
    root: Node,
    keys: tuple[tuple[str, Expression], ...],
    calls: list[tuple[str, Primitive]],
    bounds: ColumnBounds,
    gap: int,
    number: int,
) -> Aggregate:
    """The groups by keys, of which one is the start of a session, with the largest time in the column of its end."""
    time = dict(keys)[bounds.start]
    read = [e for _, primitive in calls for e in primitive.arguments]
    outputs = {i: e for i, e in keys if i != bounds.start}
    row_time = column_part(bounds.start, "time")
    outputs[row_time] = time
    leaves = [node for e in read for node in nodes.walk(e.node) if isinstance(node, nodes.Column)]
    outputs |= {leaf.name: column(leaf.name, leaf.type) for leaf in leaves}
    known = Predicate(Expression(is_not_null(time.node), f"{time.text} IS NOT NULL"))
    rows = Project(Filter(root, (known,)), tuple(outputs.items()))
    partition = tuple(i for i, _ in keys if i != bounds.start)
    columns = tuple((i, e.type) for i, e in outputs.items())
    sessions = Session(rows, columns, partition, row_time, gap, bounds.start)
    last = Primitive(Call("max", replace(column(row_time, time.type), text=time.text), time.type))
    grouped = tuple((i, replace(column(i, e.type), text=e.text)) for i, e in keys)
    groups = aggregate_of(sessions, grouped, [(bounds.end, last), *calls], number)
    return replace(groups, session=(bounds.end, gap))


def moved_by(time: Expression, gap: int) -> Expression:
    """A time plus a gap, in the unit of the time."""
    return Expression(shifted(time.node, gap))
