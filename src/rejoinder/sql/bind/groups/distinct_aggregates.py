"""Rewrite DISTINCT aggregates as one aggregate over a UNION ALL.

    SELECT k, SUM(a), COUNT(DISTINCT b) FROM t GROUP BY k

becomes

    SELECT k, SUM(a), COUNT(b)
    FROM (SELECT k, a, NULL AS b FROM t UNION ALL SELECT DISTINCT k, NULL AS a, b FROM t)
    GROUP BY k

Each branch has NULL in the columns of the others, and aggregates ignore NULL. All results of a group are in one row, so
no join is needed.
"""

from __future__ import annotations

from dataclasses import replace

from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions.expression import Expression, column, literal
from rejoinder.ir.identities import column_part, column_text
from rejoinder.ir.logical import Aggregate, Distinct, Node, Project, SetOperation
from rejoinder.sql.bind.groups.counted_values import count_values
from rejoinder.sql.functions.aggregates.aggregate_function import CountedValues, Primitive
from rejoinder.sql.types import spark_types

_Branch = tuple[Expression, ...] | CountedValues


def aggregate_of(
    root: Node, keys: tuple[tuple[str, Expression], ...], calls: list[tuple[str, Primitive]], number: int
) -> Aggregate:
    """The aggregate of a tree; `number` begins the identifiers of columns that it needs for itself."""
    branches = {primitive.counted or primitive.distinct for _, primitive in calls}
    if branches <= {()}:
        return Aggregate(root, keys, tuple((i, primitive.call) for i, primitive in calls))
    counted = calls[0][1].counted
    if counted is not None and branches == {counted}:
        listed = [(i, primitive.call) for i, primitive in calls]
        return count_values(root, keys, counted, listed, column_text(number, "x0"))
    return DistinctAggregates(root, keys, calls, number).aggregate()


class DistinctAggregates:
    """Rewrites aggregates with and without DISTINCT as one aggregate over a union.

    `parts` are the branches of the union, by the arguments of DISTINCT; `()` is the branch of all rows. A branch of
    values in order has their results. `columns` are the ids of the columns of the union, by branch and argument.
    """

    def __init__(
        self, root: Node, keys: tuple[tuple[str, Expression], ...], calls: list[tuple[str, Primitive]], number: int
    ) -> None:
        self.root, self.keys, self.calls, self.number = root, keys, calls, number
        self.parts: dict[_Branch, list[tuple[str, Expression]]] = {}
        self.columns: dict[tuple[_Branch, Expression | Call], str] = {}

    def aggregate(self) -> Aggregate:
        """Build the plan. Keys and calls keep their ids."""
        arguments = [(i, self._argument(primitive)) for i, primitive in self.calls]
        calls = tuple(
            (i, _over(primitive, argument)) for (i, argument), (_, primitive) in zip(arguments, self.calls, strict=True)
        )
        names = [i for i, _ in self.keys]
        types_of = {i: e.type for i, e in self.keys}
        for part in self.parts.values():
            names += [i for i, _ in part]
            types_of |= {i: e.type for i, e in part}
        inputs, selected = [], []
        for branch, (values, part) in enumerate(self.parts.items()):
            own = [*self.keys, *part]
            node: Node
            if isinstance(values, CountedValues):
                node = self._counted(values, branch)
            else:
                node = Project(self.root, tuple((column_part(i, branch), e) for i, e in own))
            if values and not isinstance(values, CountedValues):
                node = Distinct(node, tuple((column_part(i, branch), e.type) for i, e in own))
            present = {i: column(column_part(i, branch), e.type) for i, e in own}
            padded = tuple(
                (column_part(i, f"{branch}/padded"), present.get(i) or literal(None, types_of[i])) for i in names
            )
            inputs.append(Project(node, padded))
            selected.append(tuple(i for i, _ in padded))
        columns = tuple((column_part(i, "union"), types_of[i]) for i in names)
        union = SetOperation("UNION ALL", tuple(inputs), tuple(selected), columns)
        keys = tuple((i, column(column_part(i, "union"), e.type)) for i, e in self.keys)
        return Aggregate(union, keys, calls)

    def _argument(self, primitive: Primitive) -> Expression:
        """Return the argument of a call over the columns of the union."""
        call = primitive.call
        if primitive.counted is not None:
            name = column_part(self._column(primitive.counted, call), "union")
            return replace(column(name, call.type), text="" if call.argument is None else call.argument.text)
        values = primitive.distinct
        if not values:
            argument = call.argument or literal(True, spark_types.BOOLEAN, "1")
            return replace(
                column(column_part(self._column(values, argument), "union"), argument.type), text=argument.text
            )
        ids = [self._column(values, e) for e in primitive.distinct]
        assert call.argument is not None
        if call.argument in primitive.distinct:
            position = primitive.distinct.index(call.argument)
            return replace(column(column_part(ids[position], "union"), call.argument.type), text=call.argument.text)
        assert primitive.over is not None
        columns = [column(column_part(i, "union"), e.type) for i, e in zip(ids, primitive.distinct, strict=True)]
        return replace(primitive.over(columns), text=call.argument.text)

    def _counted(self, values: CountedValues, branch: int) -> Node:
        keys = [(column_part(i, branch), e) for i, e in self.keys]
        calls = [
            (column_part(i, branch), call)
            for (owner, call), i in self.columns.items()
            if owner == values and isinstance(call, Call)
        ]
        return count_values(self.root, keys, values, calls, column_text(self.number, f"y{branch}"))

    def _column(self, values: _Branch, argument: Expression | Call) -> str:
        part = self.parts.setdefault(values, [])
        identifier = self.columns.get((values, argument))
        if identifier is None:
            identifier = self.columns[values, argument] = column_text(self.number, f"x{len(self.columns)}")
            part.append((identifier, argument if isinstance(argument, Expression) else literal(None, argument.type)))
        return identifier


def _over(primitive: Primitive, argument: Expression) -> Call:
    """The call over a column of the union; results of values in order are there already."""
    if primitive.counted is not None:
        return Call("single", argument, primitive.call.type)
    return replace(primitive.call, argument=argument)
