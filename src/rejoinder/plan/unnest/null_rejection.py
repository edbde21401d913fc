"""LEFT joins below a condition that no padded row satisfies: they are inner joins.

    SELECT … FROM o LEFT JOIN (SELECT k, avg(x) AS a FROM l GROUP BY k) g ON g.k = o.k WHERE o.x < g.a
    SELECT … FROM o JOIN (SELECT k, avg(x) AS a FROM l GROUP BY k) g ON g.k = o.k WHERE o.x < g.a

So the comparison of a column with a subquery can be the key of a lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rejoinder.ir.expressions.expression import Expression, substitute
from rejoinder.ir.expressions.nodes import Call
from rejoinder.ir.expressions.operators import without_keys
from rejoinder.ir.logical import Filter, Join, Node, Project
from rejoinder.plan.blocks.padding import value_on_nulls
from rejoinder.plan.unnest.tree_columns import Types, columns_of

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")


def strengthened(node: Filter) -> Node:
    """The same rows, with inner joins below where the conditions leave out all padded rows."""
    inner = _strengthened(node.input, [predicate.expression for predicate in node.predicates])
    return node if inner is node.input else replace(node, input=inner)


def _strengthened(node: Node, conditions: Sequence[Expression]) -> Node:
    match node:
        case Project():
            outputs = dict(node.outputs)
            inner = _strengthened(node.input, [substitute(e, outputs) for e in conditions])
            return node if inner is node.input else replace(node, input=inner)
        case Join() if node.kind in ("inner", "left"):
            left = _strengthened(node.left, conditions)
            types = columns_of(node.right)
            is_inner = node.kind == "left" and any(_rejects_padding(e, types) for e in conditions)
            if left is node.left and not is_inner:
                return node
            return replace(node, left=left, kind="inner" if is_inner else node.kind)
        case _:
            return node


def _rejects_padding(condition: Expression, types: Types) -> bool:
    """Whether a comparison is never TRUE where all columns of one side of a join are NULL."""
    call = condition.node
    if not isinstance(call, Call) or call.operation.name not in _SIGNS:
        return False
    if condition.can_fail and call.operation.name == "=":
        return False  # the side of a key is evaluated for rows without a match, too
    sides = [Expression(without_keys(part)) for part in call.parts]
    values = [value_on_nulls(side, types) for side in sides if side.columns and types.keys() >= set(side.columns)]
    return any(value is not None and not value.is_valid for value in values)
