"""The functions of the user that the expressions of a plan call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from rejoinder.ir.expressions.nodes import Node
from rejoinder.ir.user_functions import UserFunction


def called_in(plan: Any) -> frozenset[str]:
    """Return the functions, as `module:function`, in plan data: dataclasses, sequences and mappings of them.

    Cost: one visit of every object of the plan.
    """
    found: set[str] = set()
    visited: set[int] = set()
    pending: list[Any] = [plan]
    while pending:
        value = pending.pop()
        if isinstance(value, str | bytes | int | float | type(None)) or id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, Node):
            found.update(value.functions)
        elif isinstance(value, UserFunction):
            found.add(value.reference)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, Sequence | frozenset):
            pending.extend(value)
        elif is_dataclass(value):
            pending.extend(getattr(value, each.name) for each in fields(value))
    return frozenset(found)
