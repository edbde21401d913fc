"""Predicates that Arrow answers as Spark does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rejoinder.ir.expressions.nodes import And, Call, Column, Literal, Node

_FORWARD = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_BACKWARD = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Floats are left out: Arrow's NaN is not Spark's.
_COMPARED = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string())


@dataclass(frozen=True)
class Comparison:
    """A predicate on one column that Arrow answers as Spark does: `operator` is a name of `pyarrow.compute`.

    `value` has the column's type, and is None for `is_null` and `is_valid`.
    """

    column: str
    operator: str
    value: Any = None


def comparisons_of(node: Node) -> tuple[Comparison, ...]:
    """The comparisons whose conjunction a predicate is; none if it is something else."""
    if isinstance(node, And):
        parts = [comparisons_of(part) for part in node.parts]
        return tuple(comparison for part in parts for comparison in part) if all(parts) else ()
    if not isinstance(node, Call):
        return ()
    name, arguments = node.operation.name, node.parts
    if name == "IS NULL" and isinstance(arguments[0], Column):
        return (Comparison(arguments[0].name, "is_null"),)
    if name == "IS NOT NULL" and isinstance(arguments[0], Column):
        return (Comparison(arguments[0].name, "is_valid"),)
    if name == "NOT":
        inner = comparisons_of(arguments[0]) if isinstance(arguments[0], Call) else ()
        return (Comparison(inner[0].column, "is_valid"),) if [c.operator for c in inner] == ["is_null"] else ()
    if name not in _FORWARD:
        return ()
    left, right = arguments
    if isinstance(left, Literal):
        left, right, name = right, left, _BACKWARD[name]
    if not isinstance(left, Column) or not isinstance(right, Literal) or right.value is None:
        return ()
    if left.type not in _COMPARED or left.type != right.type:
        return ()
    return (Comparison(left.name, _FORWARD[name], right.value),)
