"""Conditions of WHERE on the current time: rows that enter and leave by the clock of the epochs.

    WHERE ts > current_timestamp() - INTERVAL 1 HOUR AND start_time <= now()

keeps a row from the epoch whose processing time reaches `start_time` until the epoch whose processing time reaches
`ts + INTERVAL 1 HOUR`. Such a condition compares the current time, moved by an interval, with an expression of the row.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rejoinder.errors import Unsupported
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.nodes import Call
from rejoinder.ir.expressions.operators import is_not_null, shifted
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Current, Filter, Node, Predicate, Project
from rejoinder.sql.bind.conjuncts import conjuncts
from rejoinder.sql.bind.predicates import coerced
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.interval_literals import interval_of

_FORM = "write it as ts > current_timestamp() - INTERVAL 1 HOUR, alone or connected with AND, in WHERE"
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def bind_current(root: Node, scope: Scope, condition: exp.Expr, numbers: Iterator[int]) -> tuple[Node, exp.Expr | None]:
    """Keep the rows that are current by the conditions on the current time; return the other conditions."""
    if not any(_is_now(node) for node in condition.walk(prune=_is_query)):
        return root, condition
    starts: list[Expression] = []
    ends: list[Expression] = []
    others: list[exp.Expr] = []
    for part in conjuncts(condition):
        if not any(_is_now(node) for node in part.walk(prune=_is_query)):
            others.append(part)
            continue
        tests = [part]
        if isinstance(part, exp.Between):
            tests = [exp.GTE(this=part.this.copy(), expression=part.args["low"].copy())]
            tests.append(exp.LTE(this=part.this.copy(), expression=part.args["high"].copy()))
        for test in tests:
            time, is_end = _time(test, part, scope)
            (ends if is_end else starts).append(time)
    number = next(numbers)
    carried = scope.carried()
    start, end = _one("greatest", starts), _one("least", ends)
    times = [(column_text(number, name), e) for name, e in (("start", start), ("end", end)) if e is not None]
    known = tuple(Predicate(Expression(is_not_null(e.node), f"{e.text} IS NOT NULL")) for e in (*starts, *ends))
    rows = Project(Filter(root, known), (*((i, column(i, kind)) for i, kind in carried.items()), *times))
    ids = [None if e is None else column_text(number, name) for name, e in (("start", start), ("end", end))]
    return Current(rows, tuple(carried.items()), *ids), exp.and_(*others) if others else None


def _time(test: exp.Expr, part: exp.Expr, scope: Scope) -> tuple[Expression, bool]:
    """When a row enters by a comparison with the current time, or (TRUE) when it leaves."""
    if type(test) not in _FLIPPED:
        raise _not_supported(part)
    sign, mine, clock = type(test), test.this, test.expression
    if any(_is_now(node) for node in mine.walk()):
        sign, mine, clock = _FLIPPED[sign], clock, mine
    if any(_is_now(node) for node in mine.walk()):
        raise _not_supported(part)
    moved: exp.Expr = mine.copy()
    while not _is_now(clock):
        # t > now - c is t + c > now
        inner = clock.unnest() if isinstance(clock, exp.Paren) else clock
        if inner is not clock:
            clock = inner
            continue
        if not isinstance(clock, exp.Add | exp.Sub) or interval_of(clock.expression) is None:
            raise _not_supported(part)
        opposite = exp.Sub if isinstance(clock, exp.Add) else exp.Add
        moved = opposite(this=exp.Paren(this=moved), expression=clock.expression.copy())
        clock = clock.this
    time = compile_expression(moved, scope)
    if not spark_types.is_datetime(time.type):
        raise _not_supported(part)
    time = Expression(coerced(time, spark_types.TIMESTAMP, part).node, text_of(moved))
    is_end = sign in (exp.GT, exp.GTE)
    if sign in (exp.GTE, exp.LT):  # now <= t is now < t + 1, and t < now is t + 1 <= now
        time = Expression(shifted(time.node, 1), time.text)
    return time, is_end


def _one(function: str, times: list[Expression]) -> Expression | None:
    if len(times) < 2:
        return times[0] if times else None
    node = Call(ScalarOperation(function, evaluation="all"), [time.node for time in times], times[0].type)
    return Expression(node, f"{function}({', '.join(time.text for time in times)})")


def _is_now(node: exp.Expr) -> bool:
    is_call = isinstance(node, exp.CurrentTimestamp) and not node.this
    return is_call or (isinstance(node, exp.Anonymous) and node.name.lower() == "now" and not node.expressions)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _not_supported(part: exp.Expr) -> Unsupported:
    return Unsupported(
        f"this condition on the current time is not supported: `{text_of(part)}`",
        detail="it is not known when a row enters or leaves",
        hint=_FORM,
    )
