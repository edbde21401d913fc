"""Plan a `JoinCondition` as a query of the engine with EMIT FINAL; its postpone times become bounds."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.core.join_condition import JoinCondition
from rejoinder.core.running_query import ARRIVAL, RunningQuery, stream
from rejoinder.ir.expressions.expression import Expression, column, literal, renamed
from rejoinder.ir.expressions.monotone import shift
from rejoinder.ir.expressions.operators import compared
from rejoinder.ir.identities import SourceRows, column_text
from rejoinder.ir.logical import Bound, Emission, Join, JoinKind, Predicate, Query, Scan

SIDES = ("left", "right")
ARRIVALS = ("__arrival_left", "__arrival_right")
"""Result columns with the arrival numbers of the rows of both sides; NULL in padding."""


def running_join(join: JoinCondition, *, is_capped: bool) -> RunningQuery:
    """Plan a join. The result has the columns of both sides, and the arrival numbers of their rows (`ARRIVALS`)."""
    arrival = pa.field(ARRIVAL, pa.int64())
    sources = [stream(SIDES[n], join.schemas[n].append(arrival), list(join.times[n])) for n in (0, 1)]
    scans = [
        Scan(
            SourceRows(source.name), tuple((column_text(n, name), name) for name in source.schema.names), source.schema
        )
        for n, source in enumerate(sources)
    ]
    left, right = reversed(scans) if join.preserved == {1} else scans
    kind: JoinKind = "full" if len(join.preserved) == 2 else "left" if join.preserved else "inner"
    outputs = [
        (f.name, column(column_text(n, f.name), f.type)) for n, schema in enumerate(join.schemas) for f in schema
    ]
    outputs += [(ARRIVALS[n], column(column_text(n, ARRIVAL), pa.int64())) for n in (0, 1)]
    root = Join(left, right, _predicates(join), kind)
    return RunningQuery(sources, Query(root, tuple(outputs), emission=Emission("final")), is_capped=is_capped)


def _predicates(join: JoinCondition) -> tuple[Predicate, ...]:
    """Return the conditions of a join; the first one has the bounds."""
    names = {f.name: column_text(n, f.name) for n, schema in enumerate(join.schemas) for f in schema}
    bounds = []
    for given, to in join.postpone.items():
        for limited, minus in to.items():
            later, earlier = (_time(join, key) for key in (limited, given))
            bounds.append(Bound(later, earlier, shift(-int(minus))))
    condition = literal(True, pa.bool_()) if join.condition is None else renamed(join.condition, names)
    result = [Predicate(condition, bounds=tuple(bounds))]
    for pair in join.on:
        sides = tuple(column(column_text(n, name), join.schemas[n].field(name).type) for n, name in enumerate(pair))
        whole = Expression(compared(sides[0].node, "=", sides[1].node))
        result.append(Predicate(whole, equality=(sides[0], sides[1])))
    return (*result, *(Predicate(renamed(single, names)) for single in join.single.values()))


def _time(join: JoinCondition, key: int) -> Expression:
    side, name = join.side_of(key), join.column_of(key)
    return column(column_text(side, name), join.schemas[side].field(name).type)
