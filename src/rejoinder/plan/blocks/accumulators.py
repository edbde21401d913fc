"""What an aggregate keeps of a group: the accumulators of its calls, and how results are read from them.

The relation of an aggregate has one row per group: the group's keys, `n` (how many rows it has), and an accumulator for
every different function and argument. SUM needs to know how many values it has added, as the sum of none is NULL; so
it shares a count with COUNT and AVG of the same argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rejoinder.ir.expressions.expression import Expression, column, substitute
from rejoinder.ir.expressions.nodes import Literal
from rejoinder.ir.expressions.operators import compared, shifted, when
from rejoinder.ir.logical import Aggregate, Call, Function
from rejoinder.kernels.duckdb.render import duckdb_text

ROWS = "n"
UNIT_SCHEMA = pa.schema([("c0", pa.bool_())])


@dataclass(frozen=True)
class Accumulator:
    """A column of a group: a function of a column of the input. `text` is what people call it."""

    name: str
    function: Function
    argument: str
    type: pa.DataType
    text: str = field(compare=False)

    @property
    def digits(self) -> str | None:
        """The column that keeps the exact sum of floats."""
        return f"{self.name}_digits" if self.function == "sum" and pa.types.is_floating(self.type) else None


@dataclass(frozen=True)
class Layout:
    """An aggregate taken apart: columns of its input, accumulators, and results from its relation's columns."""

    inputs: tuple[tuple[str, Expression], ...]
    accumulators: tuple[Accumulator, ...]
    results: tuple[tuple[str, Expression], ...]
    prefix: str

    def identifier(self, name: str) -> str:
        """The identifier of a column of the relation."""
        return _identifier(self.prefix, name)


def lay_out(node: Aggregate, columns: Mapping[str, Expression]) -> Layout:
    """Find the accumulators of an aggregate over a block with the given outputs."""
    prefix = (node.keys[0] if node.keys else node.calls[0])[0]
    inputs = [(i, substitute(e, columns)) for i, e in node.keys]
    arguments: dict[Expression, str] = {}
    found: dict[tuple[str, str], Accumulator] = {}

    def accumulator(call: Call, function: Function) -> Accumulator:
        assert call.argument is not None
        inner = substitute(call.argument, columns)
        name = arguments.get(inner)
        if name is None:
            name = arguments[inner] = f"c{len(inputs)}"
            inputs.append((f"{prefix}/{name}", inner))
        kind = pa.int64() if function == "count" else call.type
        text = f"{function}({call.argument.text or duckdb_text(inner.node)})"
        made = Accumulator(f"a{len(found)}", function, name, kind, text)
        return found.setdefault((function, name), made)

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
    return Layout(tuple(inputs), tuple(found.values()), tuple(results), prefix)


def _identifier(prefix: str, name: str) -> str:
    return f"{prefix}/of/{name}"
