"""Calls that the planner itself makes. The compiler makes the same calls for what the user wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rejoinder.ir.expressions.monotone import Step
from rejoinder.ir.expressions.nodes import Call, Case, Node
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument, ScalarOperation

NULL_SAFE = "IS NOT DISTINCT FROM"
AT_MOST_ONE = "at most one"
_IS_NULL = ScalarOperation("IS NULL", evaluation="all", nulls="never")
_IS_NOT_NULL = ScalarOperation("IS NOT NULL", evaluation="all", nulls="never")


def compared(left: Node, sign: str, right: Node, *, in_turn: bool = False) -> Node:
    """The comparison of two values of one type; a sign that begins with IS is never NULL.

    `in_turn`: where the left side is NULL, the right side is not evaluated. Keys of a join are evaluated in any case.
    """
    is_null_safe = sign.startswith("IS")
    operation = ScalarOperation(
        sign,
        evaluation="in turn" if in_turn and right.can_fail and not is_null_safe else "all",
        nulls="never" if is_null_safe else "propagated",
    )
    return Call(operation, (left, right), pa.bool_())


def is_null(value: Node) -> Node:
    """Whether a value is NULL."""
    return Call(_IS_NULL, (value,), pa.bool_())


def is_not_null(value: Node) -> Node:
    """Whether a value is not NULL."""
    return Call(_IS_NOT_NULL, (value,), pa.bool_())


def when(condition: Node, result: Node, default: Node | None = None) -> Node:
    """A result where a condition is TRUE, else the default, or NULL."""
    return Case((condition, result) if default is None else (condition, result, default), result.type)


def coalesce(values: Sequence[Node]) -> Node:
    """The first value that is not NULL."""
    return Call(ScalarOperation("coalesce", evaluation="lazy"), values, values[0].type)


def least(values: Sequence[Node]) -> Node:
    """The smallest of the values that are not NULL."""
    return Call(ScalarOperation("least", evaluation="all"), values, values[0].type)


def at_most_one(many: Node, value: Node, text: str, keys: Mapping[str, Node] | None = None) -> Node:
    """The value of a scalar subquery. The row fails where the subquery has `many` rows; `text` is the subquery.

    `keys` are the columns of the outer row that it reads, by name. Only the error of the row needs them.
    """
    keys = keys or {}
    operation = ScalarOperation(AT_MOST_ONE, (text, *keys), evaluation="all", can_fail=True)
    return Call(operation, (many, value, *keys.values()), value.type)


def without_keys(node: Node) -> Node:
    """The value of a scalar subquery as an expression of its rows alone; any other node as it is."""
    if not isinstance(node, Call) or node.operation.name != AT_MOST_ONE:
        return node
    return at_most_one(node.parts[0], node.parts[1], str(node.operation.options[0]))


def shifted(time: Node, by: int) -> Node:
    """A time or number plus a constant, in the unit of the time."""
    operation = ScalarOperation("shift", (by,), nulls="propagated", monotone=MonotoneArgument(0, (Step(by),)))
    return Call(operation, (time,), time.type)
