"""Bind conditions: split a boolean expression into conjuncts, and classify each for the planner.

ON a.k = b.k AND a.ts BETWEEN b.lo AND b.hi AND f(a.x, b.y)
→  equality (a.k, b.k): a lookup key; order (b.lo, a.ts) and (a.ts, b.hi): a range; f(a.x, b.y): a residual
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import TypeMismatch
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import column_id
from rejoinder.ir.logical import Predicate
from rejoinder.sql.bind.conjuncts import conjuncts, implied
from rejoinder.sql.bind.time_bounds import bounds_of, equal_bounds
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression, split_windows
from rejoinder.sql.parse.clauses import refuse_subqueries, text_of
from rejoinder.sql.types.casts import coerce
from rejoinder.sql.types.spark_types import common_type, is_datetime, is_integer, is_numeric, key_type, spark_name
from rejoinder.sql.types.terms import Term

_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_STRICT = (exp.LT, exp.GT)


def bind_condition(node: exp.Expr, scope: Scope) -> tuple[Predicate, ...]:
    """Bind each conjunct of a condition except TRUE. Raises a `PlanningError`."""
    parts = (part for part in conjuncts(node) if not (isinstance(part, exp.Boolean) and part.this))
    return tuple(predicate for part in parts for predicate in bind_conjunct(part, scope))


def bind_conjunct(node: exp.Expr, scope: Scope) -> tuple[Predicate, ...]:
    """Bind one conjunct. `a BETWEEN b AND c` becomes `a >= b AND a <= c`, as in Spark: either end can be a range."""
    refuse_subqueries(node)
    parts = split_windows(node, scope)
    if parts != [node]:
        return tuple(predicate for part in parts for predicate in bind_conjunct(part, scope))
    whole = compile_expression(node, scope)
    if pa.types.is_null(whole.type):
        return (Predicate(coerced(whole, pa.bool_(), node)),)
    if not pa.types.is_boolean(whole.type):
        fact = f"a condition must be boolean, not {spark_name(whole.type)}"
        raise TypeMismatch(fact, detail=text_of(node), hint="compare it with something")
    if isinstance(node, exp.Between):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return (*bind_conjunct(low, scope), *bind_conjunct(high, scope))
    bounds = bounds_of(node, scope)
    if isinstance(node, exp.EQ):
        return (Predicate(whole, _key(node, scope), bounds=bounds),)
    if isinstance(node, exp.NullSafeEQ):
        sides = _null_safe_key(node, scope)
        return (Predicate(whole, sides, null_safe=sides is not None),)
    if isinstance(node, _ORDERS):
        order = _range(node, scope)
        strict = order is not None and isinstance(node, _STRICT)
        return (Predicate(whole, order=order, strict=strict, bounds=bounds),)
    if isinstance(node, exp.Or):
        return (Predicate(whole), *(Predicate(compile_expression(part, scope)) for part in implied(node, scope)))
    return (Predicate(whole, bounds=bounds),)


def equal(left: Expression, right: Expression, node: exp.Expr, names: tuple[str, str], text: str) -> Predicate:
    """Return the predicate that two expressions are equal. Raises `TypeMismatch` that names both."""
    kind = key_type(left.type, right.type, names=names)
    sides = keyed(left, kind, node), keyed(right, kind, node)
    whole = Expression(operators.compared(sides[0].node, "=", sides[1].node), text)
    if not are_apart(left, right):
        return Predicate(whole)
    return Predicate(whole, sides, bounds=equal_bounds(left, right))


def is_null(expression: Expression) -> Predicate:
    """Return the predicate that an expression is NULL."""
    return Predicate(Expression(operators.is_null(expression.node), f"{expression.text} IS NULL"))


def are_apart(left: Expression, right: Expression) -> bool:
    """Return whether both read columns, of different inputs. A column id begins with the number of its input."""
    numbers = [{column_id(name).input for name in side.columns} for side in (left, right)]
    return all(numbers) and not numbers[0] & numbers[1]


def keyed(side: Expression, kind: pa.DataType, node: exp.Expr) -> Expression:
    """Cast a side of an equality to the key type. Integers are not cast: all widths have the same hash."""
    return side if is_integer(side.type) and is_integer(kind) else coerced(side, kind, node)


def coerced(side: Expression, kind: pa.DataType, node: exp.Expr) -> Expression:
    """Cast an expression implicitly. A wider integer column needs no evaluation."""
    if side.type == kind:
        return side
    if side.is_column and is_integer(side.type) and is_integer(kind):
        return Expression(nodes.Column(side.columns[0], kind), side.text)
    return converted(side, kind, node)


def converted(side: Expression, kind: pa.DataType, node: exp.Expr) -> Expression:
    """Cast an expression by evaluation, for set operations, whose inputs must have equal Arrow types."""
    return Expression(coerce(Term(side.node), kind, node).node, side.text)


def _sides(node: exp.Expr, scope: Scope) -> tuple[Expression, Expression] | None:
    sides = compile_expression(node.this, scope), compile_expression(node.expression, scope)
    return sides if are_apart(*sides) else None


def _key(node: exp.Expr, scope: Scope) -> tuple[Expression, Expression] | None:
    sides = _sides(node, scope)
    if sides is None:
        return None
    kind = key_type(sides[0].type, sides[1].type, names=(text_of(node.this), text_of(node.expression)))
    return keyed(sides[0], kind, node), keyed(sides[1], kind, node)


def _null_safe_key(node: exp.Expr, scope: Scope) -> tuple[Expression, Expression] | None:
    try:
        return _key(node, scope)
    except TypeMismatch:  # no common key type; the whole condition is still evaluated as a residual
        return None


def _range(node: exp.Expr, scope: Scope) -> tuple[Expression, Expression] | None:
    sides = _sides(node, scope)
    if sides is None:
        return None
    kind = common_type(sides[0].type, sides[1].type)
    if not (is_numeric(kind) or is_datetime(kind)):
        return None
    left, right = coerced(sides[0], kind, node), coerced(sides[1], kind, node)
    return (left, right) if isinstance(node, exp.LT | exp.LTE) else (right, left)


def same_value(ours: Expression, theirs: Expression) -> Predicate:
    """The condition `ours <=> theirs`, by which a join is looked up."""
    both = Expression(operators.compared(ours.node, operators.NULL_SAFE, theirs.node))
    return Predicate(both, equality=(ours, theirs), bounds=equal_bounds(ours, theirs), null_safe=True)
