"""A join of two streams as a query of the engine: the bounds are its postpone times, and rows come out when final."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.core.join_condition import JoinCondition
from rejoinder.core.running_query import ARRIVAL, RunningQuery, stream
from rejoinder.ir.expression import Expression, column, literal, renamed
from rejoinder.ir.identities import SourceRows
from rejoinder.ir.logical import Bound, Emission, Join, JoinKind, Predicate, Query, Scan
from rejoinder.ir.monotone import shift
from rejoinder.ir.operators import compared

SIDES = ("left", "right")
ARRIVALS = ("__arrival_left", "__arrival_right")
"""The columns of the result that number the rows of both sides; NULL where a row is padded."""


def running_join(join: JoinCondition, *, is_capped: bool) -> RunningQuery:
    """Plan a join. The result has the columns of both sides, and which rows they are of (`ARRIVALS`)."""
    arrival = pa.field(ARRIVAL, pa.int64())
    sources = [stream(SIDES[at], join.schemas[at].append(arrival), list(join.times[at])) for at in (0, 1)]
    scans = [
        Scan(SourceRows(each.name), tuple((_id(at, name), name) for name in each.schema.names), each.schema)
        for at, each in enumerate(sources)
    ]
    left, right = reversed(scans) if join.preserved == {1} else scans
    kind: JoinKind = "full" if len(join.preserved) == 2 else "left" if join.preserved else "inner"
    outputs = [
        (each.name, column(_id(at, each.name), each.type)) for at, schema in enumerate(join.schemas) for each in schema
    ]
    outputs += [(ARRIVALS[at], column(_id(at, ARRIVAL), pa.int64())) for at in (0, 1)]
    root = Join(left, right, _predicates(join), kind)
    return RunningQuery(sources, Query(root, tuple(outputs), emission=Emission("final")), is_capped=is_capped)


def _predicates(join: JoinCondition) -> tuple[Predicate, ...]:
    """The conditions of a join; the bounds go with the first one."""
    names = {each.name: _id(at, each.name) for at, schema in enumerate(join.schemas) for each in schema}
    bounds = []
    for given, to in join.postpone.items():
        for limited, minus in to.items():
            later, earlier = (_time(join, key) for key in (limited, given))
            bounds.append(Bound(later, earlier, shift(-int(minus))))
    condition = literal(True, pa.bool_()) if join.condition is None else renamed(join.condition, names)
    result = [Predicate(condition, bounds=tuple(bounds))]
    for pair in join.on:
        sides = tuple(column(_id(at, name), join.schemas[at].field(name).type) for at, name in enumerate(pair))
        whole = Expression(compared(sides[0].node, "=", sides[1].node))
        result.append(Predicate(whole, equality=(sides[0], sides[1])))
    return (*result, *(Predicate(renamed(single, names)) for single in join.single.values()))


def _time(join: JoinCondition, key: int) -> Expression:
    at, name = join.side_of(key), join.column_of(key)
    return column(_id(at, name), join.schemas[at].field(name).type)


def _id(ordinal: int, name: str) -> str:
    return f"{ordinal}.{name}"
