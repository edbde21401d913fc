"""Rewrite joins as of a time as joins with the validity windows of the right side.

    orders o ASOF [LEFT] JOIN rates r MATCH_CONDITION (o.ts >= r.ts) ON o.cur = r.cur
    orders o [LEFT] JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur

both become

    orders o [LEFT] JOIN (SELECT *, next ts of the same cur AS end FROM rates) r
    ON o.cur = r.cur AND r.ts <= o.ts AND o.ts < r.end

Rows of the right side are versions of the key in ON: each is valid from its time to the next time of that key. Rows
with equal key and time all match. The time of FOR SYSTEM_TIME is the event-time column of the right side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.ir.catalog import Source, View
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import compared
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Node, Predicate, Project, Validity
from rejoinder.sql.bind.relations.arrival_joins import is_at_arrival
from rejoinder.sql.bind.scope import Scope, Side
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types.spark_types import spark_name

_SIGNS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.GTE: (False, False),
    exp.GT: (False, True),
    exp.LTE: (True, False),
    exp.LT: (True, True),
}
_MATCH = "as in ASOF JOIN rates r MATCH_CONDITION (o.ts >= r.ts) ON o.cur = r.cur"


def is_as_of(node: exp.Join) -> bool:
    """Return whether a join is as of a time."""
    return node.method.upper() == "ASOF" or node.args.get("match_condition") is not None or _version(node) is not None


def _version(node: exp.Join) -> exp.Expression | None:
    version = node.this.args.get("version") if isinstance(node.this, exp.Table) else None
    if is_at_arrival(node):
        return None
    return version if isinstance(version, exp.Version) and version.name.upper() == "TIMESTAMP" else None


def as_of(
    left: Scope,
    right: Side,
    on: Sequence[Predicate],
    node: exp.Join,
    numbers: Iterator[int],
    event_time: str | None,
) -> tuple[Side, tuple[Predicate, ...]]:
    """Return the right side with its validity windows, and the condition that the left time lies in one."""
    partition, outputs = _partition(on, right.scope, node, next(numbers))
    root: Node = Project(right.root, tuple(outputs.items()))
    time, version, is_strict = _times(left, right.scope, node, event_time)
    if version.type != time.type:
        raise TypeMismatch(
            f"a time of type {spark_name(time.type)} and versions of type {spark_name(version.type)}",
            detail=text_of(node),
            hint="CAST the time to the type of the versions",
        )
    end = column_text(next(numbers), "end")
    columns = tuple((i, e.type) for i, e in outputs.items())
    valid = Validity(root, columns, partition, version.columns[0], end)
    last = column(end, version.type)
    inside = (_ordered(version, time, strict=is_strict), _ordered(time, last, strict=not is_strict))
    return Side(valid, right.scope), inside


def _partition(
    on: Sequence[Predicate], right: Scope, node: exp.Join, number: int
) -> tuple[tuple[str, ...], dict[str, Expression]]:
    """Return the key of the versions, which is the right sides of the equalities, and the columns with it."""
    outputs = {i: column(i, kind) for i, kind in right.carried().items()}
    partition: list[str] = []
    for predicate in on:
        side = next((s for s in predicate.equality or () if s.columns and set(s.columns) <= set(right.carried())), None)
        if side is None or predicate.null_safe:
            raise Unsupported(
                "a join as of a time supports only equalities in ON",
                detail=predicate.expression.text or text_of(node),
                hint="compare the times in MATCH_CONDITION (left.ts >= right.ts), before ON; put other conditions into "
                "WHERE, or into a subquery on the right",
            )
        if side.is_column:
            partition.append(side.columns[0])
        else:
            partition.append(column_text(number, f"key{len(partition)}"))
            outputs[partition[-1]] = side
    return tuple(dict.fromkeys(partition)), outputs


def _times(left: Scope, right: Scope, node: exp.Join, event_time: str | None) -> tuple[Expression, Expression, bool]:
    """Return the left time, the time column of the versions, and whether a version of exactly that time is excluded."""
    version = _version(node)
    if version is not None:
        assert event_time is not None
        valid_from = right.find(None, event_time, text_of(node))
        return compile_expression(version.expression, left), column(valid_from.id, valid_from.type), False
    match = node.args.get("match_condition")
    if match is None:
        raise InvalidSql("ASOF JOIN has no MATCH_CONDITION", detail=text_of(node), hint=_MATCH)
    match = match.unnest()
    if type(match) not in _SIGNS:
        raise InvalidSql("MATCH_CONDITION compares two times", detail=text_of(match), hint=_MATCH)
    both = left.beside(right)
    is_swapped, is_strict = _SIGNS[type(match)]
    sides = [compile_expression(part, both) for part in (match.left, match.right)]
    time, versions = sides[::-1] if is_swapped else sides
    ours, theirs = set(left.carried()), set(right.carried())
    if set(time.columns) <= theirs and set(versions.columns) <= ours:
        raise Unsupported(
            "a join with the next version is not supported",
            detail=text_of(match),
            hint="join with the version before: MATCH_CONDITION (left.ts >= right.ts)",
        )
    if not versions.is_column or versions.columns[0] not in theirs or not set(time.columns) <= ours:
        fact = "MATCH_CONDITION compares a time of the left side with a column of the right side"
        raise InvalidSql(fact, detail=text_of(match), hint=_MATCH)
    kind = versions.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind)):
        fact = f"MATCH_CONDITION on values of type {spark_name(kind)}"
        raise TypeMismatch(fact, detail=text_of(match), hint="compare timestamps, dates or integers")
    return time, versions, is_strict


def event_time_of(node: exp.Join, relation: Source | View) -> str:
    """Return the column with the time from which a row is valid, for FOR SYSTEM_TIME AS OF."""
    times = list(relation.watermarks) if isinstance(relation, Source) else []
    if len(times) != 1:
        raise InvalidSql(
            f"`{relation.name}` has no event-time column from which its rows are valid",
            detail=text_of(node),
            hint=f"declare one event-time column, WATERMARK ts DELAY OF …, or name the column: {_MATCH}",
        )
    if isinstance(relation, Source) and relation.kind == "table" and times[0] not in relation.primary_key:
        raise InvalidSql(
            f"table `{relation.name}` keeps only the newest version of a key",
            detail=f"its primary key is ({', '.join(relation.primary_key)})",
            hint=f"add `{times[0]}` to the primary key, or declare the versions as a STREAM",
        )
    return times[0]


def has_version(node: exp.Join) -> bool:
    """Return whether a join has FOR SYSTEM_TIME AS OF a time other than the current time."""
    return _version(node) is not None


def _ordered(lesser: Expression, greater: Expression, *, strict: bool) -> Predicate:
    sign = "<" if strict else "<="
    whole = Expression(compared(lesser.node, sign, greater.node), f"{lesser.text} {sign} {greater.text}")
    return Predicate(whole, order=(lesser, greater), strict=strict)
