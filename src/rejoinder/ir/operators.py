"""Operators that the plan itself makes expressions of; the compiler makes the same of what the user wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rejoinder.ir.monotone import Step
from rejoinder.ir.nodes import Call, Case, Node
from rejoinder.ir.scalar_operation import MonotoneArgument, ScalarOperation

NULL_SAFE = "IS NOT DISTINCT FROM"
_IS_NULL = ScalarOperation("({0} IS NULL)", "IS NULL", stops_at_null=False, makes_null=False)
_IS_NOT_NULL = ScalarOperation("({0} IS NOT NULL)", "IS NOT NULL", stops_at_null=False, makes_null=False)


def compared(left: Node, sign: str, right: Node, *, in_turn: bool = False) -> Node:
    """The comparison of two values of one type; one that begins with IS is never NULL.

    `in_turn`: where the left side is NULL, the right side is not evaluated. Keys of a join are evaluated in any case.
    """
    stops_at_null = in_turn and right.can_fail and not sign.startswith("IS")
    operation = ScalarOperation(f"({{0}} {sign} {{1}})", sign, stops_at_null=stops_at_null, makes_null=False)
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
    template = f"COALESCE({places(len(values))})"
    return Call(ScalarOperation(template, stops_at_null=False, is_lazy=True), values, values[0].type)


def least(values: Sequence[Node]) -> Node:
    """The smallest of the values that are not NULL."""
    return Call(ScalarOperation(f"least({places(len(values))})", stops_at_null=False), values, values[0].type)


def moved(time: Node, template: str, by: int) -> Node:
    """A time to which a template adds a constant, in the unit of the time."""
    return Call(ScalarOperation(template, monotone=MonotoneArgument(0, (Step(by),))), (time,), time.type)


def places(count: int) -> str:
    """Places for so many arguments.

    >>> places(2)
    '{0}, {1}'
    """
    return ", ".join(f"{{{place}}}" for place in range(count))
