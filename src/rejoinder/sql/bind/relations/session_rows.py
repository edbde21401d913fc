"""SESSION over a relation: its rows with the start and the end of the session of each.

FROM SESSION(TABLE clicks PARTITION BY page, DESCRIPTOR(ts), gap)
→  rows AS (<clicks with the start of the session of ts, by page, as `start`>)
   FROM rows JOIN (SELECT page, start, max(ts) + gap AS end FROM rows GROUP BY page, start) USING (page, start)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import is_not_null
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Filter, Join, Node, Predicate, Project, Session
from rejoinder.sql.bind.groups.distinct_aggregates import aggregate_of
from rejoinder.sql.bind.groups.session_groups import moved_by
from rejoinder.sql.bind.predicates import same_value
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.functions.aggregates.aggregate_function import Primitive
from rejoinder.sql.functions.expression_compiler import compile_expression, compile_session


def with_sessions(
    root: Node, scope: Scope, session: exp.Anonymous, partition: Sequence[exp.Expr], numbers: Iterator[int]
) -> tuple[Node, Expression, Expression]:
    """The rows of a scope whose time is known, and start and end of the session of each. Raises a `PlanningError`.

    `session` is a call of SESSION with a time and a gap.
    """
    number = next(numbers)
    time, gap = compile_session(session, scope)
    row_time, start, end = (column_text(number, name) for name in ("time", "start", "end"))
    outputs = {i: column(i, kind) for i, kind in scope.carried().items()}
    keys = {column_text(number, f"k{at}"): compile_expression(part, scope) for at, part in enumerate(partition)}
    outputs |= keys | {row_time: time}
    known = Predicate(Expression(is_not_null(time.node), f"{time.text} IS NOT NULL"))
    rows = Project(Filter(root, (known,)), tuple(outputs.items()))
    columns = tuple((i, e.type) for i, e in outputs.items())
    sessions = Session(rows, columns, tuple(keys), row_time, gap, start)
    own = next(numbers)
    grouped = {i: column(i, e.type) for i, e in keys.items()} | {start: column(start, time.type)}
    by = tuple((column_text(own, f"g{at}"), e) for at, e in enumerate(grouped.values()))
    last = Primitive(Call("max", column(row_time, time.type), time.type))
    groups = replace(aggregate_of(sessions, by, [(end, last)], own), session=(end, gap))
    same = tuple(same_value(e, column(i, e.type)) for i, e in by)
    return Join(sessions, groups, same), column(start, time.type), moved_by(column(end, time.type), gap)
