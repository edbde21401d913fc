"""Aggregates of different values (DISTINCT) beside others: one aggregate over a union.

The rows are united with the different values of each such argument; every part has NULL in the columns of the others,
and NULL counts for nothing. So all results of a group are in one row, and no join brings them together.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rejoinder.ir import operators
from rejoinder.ir.expression import Expression, column, literal
from rejoinder.ir.logical import Aggregate, Distinct, Node, Project, SetOperation
from rejoinder.ir.nodes import And, Literal
from rejoinder.sql.functions.aggregates import Primitive
from rejoinder.sql.types import spark_types


class DistinctAggregates:
    """Aggregates with and without DISTINCT, as one aggregate over a union."""

    def __init__(
        self, root: Node, keys: tuple[tuple[str, Expression], ...], calls: list[tuple[str, Primitive]], number: int
    ) -> None:
        self.root, self.keys, self.calls, self.number = root, keys, calls, number
        self.parts: dict[tuple[Expression, ...], list[tuple[str, Expression]]] = {}
        self.columns: dict[tuple[tuple[Expression, ...], Expression], str] = {}

    def aggregate(self) -> Aggregate:
        """Make the plan: keys and calls keep their identifiers."""
        arguments = [(i, self._argument(primitive)) for i, primitive in self.calls]
        calls = tuple(
            (i, replace(primitive.call, argument=argument))
            for (i, argument), (_, primitive) in zip(arguments, self.calls, strict=True)
        )
        names = [i for i, _ in self.keys]
        types_of = {i: e.type for i, e in self.keys}
        for part in self.parts.values():
            names += [i for i, _ in part]
            types_of |= {i: e.type for i, e in part}
        inputs, selected = [], []
        for at, (values, part) in enumerate(self.parts.items()):
            own = [*self.keys, *part]
            node: Node = Project(self.root, tuple((f"{i}/{at}", e) for i, e in own))
            if values:
                node = Distinct(node, tuple((f"{i}/{at}", e.type) for i, e in own))
            there = {i: column(f"{i}/{at}", e.type) for i, e in own}
            padded = tuple((f"{i}/{at}/", there.get(i) or _nothing(types_of[i])) for i in names)
            inputs.append(Project(node, padded))
            selected.append(tuple(i for i, _ in padded))
        columns = tuple((f"{i}/", types_of[i]) for i in names)
        union = SetOperation("UNION ALL", tuple(inputs), tuple(selected), columns)
        keys = tuple((i, column(f"{i}/", e.type)) for i, e in self.keys)
        return Aggregate(union, keys, calls)

    def _argument(self, primitive: Primitive) -> Expression:
        """The argument of a call on the columns of the union."""
        call = primitive.call
        values = primitive.distinct
        if not values:
            given = call.argument or literal(True, spark_types.BOOLEAN, "1")
            return replace(column(f"{self._column(values, given)}/", given.type), text=given.text)
        held = [self._column(values, e) for e in primitive.distinct]
        assert call.argument is not None
        if call.argument in primitive.distinct:
            at = primitive.distinct.index(call.argument)
            return replace(column(f"{held[at]}/", call.argument.type), text=call.argument.text)
        columns = [column(f"{i}/", e.type) for i, e in zip(held, primitive.distinct, strict=True)]
        present = And(operators.is_not_null(each.node) for each in columns)
        return Expression(operators.when(present, Literal(True, spark_types.BOOLEAN)), call.argument.text)

    def _column(self, values: tuple[Expression, ...], argument: Expression) -> str:
        part = self.parts.setdefault(values, [])
        known = self.columns.get((values, argument))
        if known is None:
            known = self.columns[values, argument] = f"{self.number}.x{len(self.columns)}"
            part.append((known, argument))
        return known


def _nothing(kind: pa.DataType) -> Expression:
    return literal(None, kind)
