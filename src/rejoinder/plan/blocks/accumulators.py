"""What an aggregate keeps of a group: the accumulators of its calls, and how results are read from them.

The relation of an aggregate has one row per group: the group's keys, `n` (how many rows it has), and an accumulator for
every different function and argument. SUM needs to know how many values it has added, as the sum of none is NULL; so
it shares a count with COUNT and AVG of the same argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.ir.aggregate_calls import Call, Function
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column, substitute
from rejoinder.ir.expressions.nodes import Column, Literal
from rejoinder.ir.expressions.operators import compared, shifted, when
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.ir.logical import Aggregate
from rejoinder.ir.user_functions import UserFunction
from rejoinder.ir.window_calls import SortColumn
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.kernels.sums.sparse_counts import KEPT

ROWS = "n"
ASCENDING = SortColumn("").text
UNIT_SCHEMA = pa.schema([("c0", pa.bool_())])
SUMS: dict[Function, int] = {"m2": 2, "comoment": 3, "skewness": 3, "kurtosis": 4}
"""How many exact sums a moment needs."""
BITS: tuple[Function, ...] = ("bit_and", "bit_or", "bit_xor")
ORDERED: tuple[Function, ...] = ("at", "list")


@dataclass(frozen=True)
class OrderColumns:
    """The columns of the input that give the order of values: sort keys, and how many values a row stands for."""

    key: str
    weight: str
    floor: Expression
    """The part of a sort key that all rows of a group share."""


@dataclass(frozen=True)
class Accumulator:
    """A column of a group: a function of a column of the input. `text` is what people call it."""

    name: str
    function: Function
    argument: str
    type: pa.DataType
    text: str = field(compare=False)
    count: str | None = None
    """The accumulator that counts the values."""
    options: tuple[str | float, ...] = ()
    user: UserFunction | None = None
    """The aggregate of the user."""

    @property
    def hidden(self) -> dict[str, pa.DataType]:
        """The columns that it keeps besides its value, by name."""
        if self.function == "sum":
            return {f"{self.name}_digits": KEPT} if pa.types.is_floating(self.type) else {}
        if self.function in SUMS:
            return {f"{self.name}_sum{at}": KEPT for at in range(SUMS[self.function])}
        if self.function in BITS:
            return {f"{self.name}_bits": KEPT}
        if self.function == "user":
            return {f"{self.name}_state": pa.string()}
        return {f"{self.name}_key": pa.binary(), f"{self.name}_rank": pa.int64()} if self.function == "at" else {}

    @property
    def canonical(self) -> str:
        """Canonical text."""
        options = "".join(f", {option}" for option in self.options)
        called = self.function if self.user is None else self.user.identity
        return f"{called}({self.argument}{options})::{self.type}"


@dataclass(frozen=True)
class Layout:
    """An aggregate taken apart: columns of its input, accumulators, and results from its relation's columns."""

    inputs: tuple[tuple[str, Expression], ...]
    accumulators: tuple[Accumulator, ...]
    results: tuple[tuple[str, Expression], ...]
    prefix: str
    order: OrderColumns | None = None

    def identifier(self, name: str) -> str:
        """The identifier of a column of the relation."""
        return _identifier(self.prefix, name)


def lay_out(node: Aggregate, columns: Mapping[str, Expression]) -> Layout:
    """Find the accumulators of an aggregate over a block with the given outputs."""
    prefix = (node.keys[0] if node.keys else node.calls[0])[0]
    inputs = [(i, substitute(e, columns)) for i, e in node.keys]
    arguments: dict[Expression, str] = {}
    found: dict[tuple[object, ...], Accumulator] = {}

    def input_name(expression: Expression) -> str:
        name = arguments.get(expression)
        if name is None:
            name = arguments[expression] = f"c{len(inputs)}"
            inputs.append((f"{prefix}/{name}", expression))
        return name

    def accumulator(call: Call, function: Function) -> Accumulator:
        assert call.argument is not None
        inner = substitute(call.argument, columns)
        name = input_name(inner)
        count = None
        if function in SUMS or function in BITS:
            count = accumulator(call, "count").name
        elif function in ORDERED and node.order is not None:
            count = accumulator(Call("sum", node.order.weight, pa.int64()), "sum").name
        kind = pa.int64() if function == "count" else call.type
        options = call.options if function == call.function else ()
        user = call.user if function == call.function else None
        text = f"{function if user is None else user.name}({call.argument.text or duckdb_text(inner.node)})"
        made = Accumulator(f"a{len(found)}", function, name, kind, text, count, options, user)
        return found.setdefault((function, name, kind, options, user), made)

    def identifier(name: str) -> str:
        return _identifier(prefix, name)

    def result(call: Call) -> Expression:
        if call.argument is None:
            rows = column(identifier(ROWS), pa.int64())
            # the row of the unit relation is one of them
            return rows if node.keys else Expression(shifted(rows.node, -1))
        value = column(identifier(accumulator(call, call.function).name), call.type)
        if call.function != "sum":
            return value
        number = column(identifier(accumulator(call, "count").name), pa.int64())
        return Expression(when(compared(number.node, ">", Literal(0, pa.int64())), value.node))

    results = [(i, column(identifier(f"c{at}"), e.type)) for at, (i, e) in enumerate(node.keys)]
    results += [(i, result(call)) for i, call in node.calls]
    if node.order is None:
        return Layout(tuple(inputs), tuple(found.values()), tuple(results), prefix)
    weight = input_name(substitute(node.order.weight, columns))
    keys = [(Expression(Column(f"c{at}", e.type)), ASCENDING) for at, (_, e) in enumerate(node.keys)]
    ordered = [(substitute(e, columns), direction) for e, direction in node.order.columns]
    same = [(e, ASCENDING) for _, e in inputs[: len(node.keys)]]
    key = f"c{len(inputs)}"
    inputs.append((f"{prefix}/{key}", sort_key([*same, *ordered])))
    order = OrderColumns(key, weight, sort_key(keys))
    return Layout(tuple(inputs), tuple(found.values()), tuple(results), prefix, order)


def sort_key(columns: Sequence[tuple[Expression, str]]) -> Expression:
    """Bytes that compare as rows do: those of each column one after the other, so that a prefix is a key too."""
    directions = tuple(direction for _, direction in columns)
    operation = ScalarOperation("sort_key", directions, evaluation="all", nulls="never")
    return Expression(nodes.Call(operation, [e.node for e, _ in columns], pa.binary()), "sort key")


def empty_sort_key() -> Expression:
    """The sort key of a row without columns."""
    return sort_key([])


def _identifier(prefix: str, name: str) -> str:
    return f"{prefix}/of/{name}"
