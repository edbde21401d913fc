"""SELECT lists and QUALIFY with window functions: from a query over rows to one over rows with their values.

Every window function becomes a column, and the rest of the SELECT is bound on these columns like any other. Functions
over the same partition in the same order are computed together. Rows that are equal in ORDER BY are ordered by the
other columns that the SELECT uses, so that the result depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Join, Node, Predicate, Project, WindowCalls
from rejoinder.ir.window_calls import SortColumn, WindowCall
from rejoinder.sql.bind.groups.distinct_aggregates import aggregate_of
from rejoinder.sql.bind.predicates import bind_condition, same_value
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.bind.windows.window_frames import frame_of
from rejoinder.sql.bind.windows.window_functions import WindowBinder
from rejoinder.sql.bind.windows.window_syntax import windows_in
from rejoinder.sql.functions.aggregates.aggregate_function import Primitive
from rejoinder.sql.functions.expression_compiler import compile_expression, compile_window, type_of
from rejoinder.sql.functions.output_names import output_name
from rejoinder.sql.functions.time.windows import ColumnBounds
from rejoinder.sql.parse.clauses import marked_name, text_of
from rejoinder.sql.types import spark_types


@dataclass(frozen=True)
class _Order:
    """A partition and its order; columns are inputs, by identifier. `is_reversed`: the opposite of what is written."""

    partition: tuple[str, ...]
    columns: tuple[SortColumn, ...]
    is_reversed: bool = False


@dataclass
class SelectWindows:
    """The window functions of a SELECT over rows of `root`."""

    root: Node
    rows: Scope
    numbers: Iterator[int]
    inputs: dict[Expression, str] = field(default_factory=dict)
    calls: dict[_Order, dict[WindowCall, str]] = field(default_factory=dict)
    totals: dict[tuple[tuple[str, ...], Primitive], str] = field(default_factory=dict)
    results: dict[str, tuple[str, Expression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = next(self.numbers)
        self.kinds = self.rows.carried()

    # -- SELECT and QUALIFY -------------------------------------------------------------------------------------------

    def rewritten(self, node: exp.Select) -> exp.Select:
        """The SELECT on columns in the place of its window functions. Raises a `PlanningError`."""
        node = node.copy()
        qualify = node.args.get("qualify")
        if qualify is not None:
            node.set("qualify", self._without_aliases(qualify, node.expressions))
        for item in list(node.expressions):
            rewritten = self._rewritten(item)
            if any(True for _ in windows_in(item)) and not isinstance(item, exp.Alias):
                name = output_name(
                    self.rows.without_qualifiers(item), lambda part: type_of(self._rewritten(part), self.scope)
                )
                rewritten = exp.alias_(rewritten, name, quoted=True)
            item.replace(rewritten)
        qualify = node.args.get("qualify")
        if qualify is not None:
            node.set("qualify", self._rewritten(qualify))
        return node

    @property
    def scope(self) -> Scope:
        """The columns of the rows, and those of the window functions, which `*` does not show."""
        columns = [replace(c, id=self._renamed(c.id), bounds=self._renamed_bounds(c.bounds)) for c in self.rows.columns]
        computed = [replace(c, id=self._renamed(c.id)) for c in self.rows.computed]
        computed += [
            Column("", name, column_text(self.number, f"v{at}"), expression.type)
            for at, (name, expression) in enumerate(self.results.values())
        ]
        return replace(self.rows, columns=tuple(columns), repeats=(), computed=tuple(computed))

    def plan(self, used: Iterable[Expression]) -> Node:
        """The rows with the values of the functions, for outputs and conditions that are bound on `scope`."""
        wanted = {i for expression in used for i in expression.columns}
        kept = [i for i in self.kinds if self._renamed(i) in wanted]
        plain = {*kept, *self.inputs.values()}
        rows = {i: column(i, kind) for i, kind in self.kinds.items() if i in plain}
        rows |= {i: expression for expression, i in self.inputs.items()}
        base = Project(self.root, tuple(rows.items()))
        root: Node = base
        columns = {i: expression.type for i, expression in rows.items()}
        for order, calls in self.calls.items():
            ties = self._ties(order, list(columns))
            named = tuple((i, call) for call, i in calls.items())
            root = WindowCalls(root, tuple(columns.items()), order.partition, order.columns, ties, named)
            columns |= {i: call.type for i, call in named}
        root = self._with_totals(root, base, columns)
        outputs = [(self._renamed(i), column(i, self.kinds[i])) for i in kept]
        outputs += [(column_text(self.number, f"v{at}"), value) for at, (_, value) in enumerate(self.results.values())]
        return Project(root, tuple(outputs))

    def _without_aliases(self, condition: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
        """Replace names of the SELECT list by what they stand for; a column of that name comes first.

        SELECT id, RANK() OVER (ORDER BY x) AS place FROM t QUALIFY place <= 3
        SELECT id, RANK() OVER (ORDER BY x) AS place FROM t QUALIFY RANK() OVER (ORDER BY x) <= 3
        """
        named = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}

        def swap(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or part.table or self.rows.knows(part):
                return part
            value = named.get(part.name.lower())
            return part if value is None else exp.paren(value.copy())

        return condition.transform(swap)

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        def swap(part: exp.Expr) -> exp.Expr:
            return self._reference(part) if isinstance(part, exp.Window) else part

        return node.transform(swap)

    def _reference(self, window: exp.Window) -> exp.Expr:
        text = text_of(window)
        if text not in self.results:
            self.results[text] = (marked_name(text, next(self.numbers)), self._bound(window))
        return exp.column(exp.to_identifier(self.results[text][0], quoted=True))

    def _bound(self, window: exp.Window) -> Expression:
        partition = [e for part in window.args.get("partition_by") or [] for e in self._partition(part)]
        order = window.args.get("order")
        listed = [] if order is None else order.expressions
        sorted_by = [compile_expression(part.this, self.rows) for part in listed]
        for expression in (*partition, *sorted_by):
            _check_comparable(expression, window)
        columns = tuple(
            SortColumn(self.input(e), bool(part.args.get("desc")), bool(part.args.get("nulls_first")))
            for e, part in zip(sorted_by, listed, strict=True)
        )
        spec = _Order(tuple(dict.fromkeys(self.input(e) for e in partition)), columns)
        bounds = frame_of(window, [e.type for e in sorted_by])
        return WindowBinder(window, self.rows, bounds, bool(columns), _Calls(self, spec)).bind()

    def _partition(self, part: exp.Expr) -> list[Expression]:
        """An expression of PARTITION BY. A window is told apart by its ends: these are times, by which rows are final.

        A window that is a column stays beside them: it is likely to be selected, and expires with its partition.
        """
        window = compile_window(part, self.rows)
        if window is None:
            return [compile_expression(part, self.rows)]
        ends = [window.start] if window.size is not None else [window.start, window.end]
        return [*ends, compile_expression(part, self.rows)] if isinstance(part, exp.Column) else ends

    # -- the plan -----------------------------------------------------------------------------------------------------

    def input(self, expression: Expression) -> str:
        """The column that holds an expression of a row."""
        if expression.is_column:
            (name,) = expression.columns
            if self.kinds[name] == expression.type:
                return self.inputs.setdefault(column(name, expression.type), name)
        return self.inputs.setdefault(expression, column_text(self.number, f"i{len(self.inputs)}"))

    @staticmethod
    def _ties(order: _Order, rows: Sequence[str]) -> tuple[SortColumn, ...]:
        """The order of rows that are equal: by their other columns, or the opposite of that.

        Values of the functions before are among these, so that rows with the same key are equal.
        """
        known = {*order.partition, *(each.name for each in order.columns)}
        ties = (SortColumn(i) for i in rows if i not in known)
        return tuple(each.reversed if order.is_reversed else each for each in ties)

    def _with_totals(self, root: Node, base: Project, columns: dict[str, pa.DataType]) -> Node:
        """The rows with the aggregates of their partitions: groups, joined by the columns of the partition.

        Aggregates of values of other functions are made from the rows that have these, all others from the base.
        """
        windowed, known = root, {i for i, _ in base.outputs}
        for partition in dict.fromkeys(partition for partition, _ in self.totals):
            own = next(self.numbers)
            keys = tuple((column_text(own, f"k{at}"), column(i, columns[i])) for at, i in enumerate(partition))
            calls = [(i, primitive) for (group, primitive), i in self.totals.items() if group == partition]
            used = {i for _, primitive in calls for e in primitive.arguments for i in e.columns}
            rows = base if used <= known else windowed
            same = tuple(same_value(expression, column(i, expression.type)) for i, expression in keys)
            root = Join(root, aggregate_of(rows, keys, calls, own), same)
        return root

    def _renamed(self, identifier: str) -> str:
        return column_text(self.number, identifier)

    def _renamed_bounds(self, bounds: ColumnBounds | None) -> ColumnBounds | None:
        if bounds is None:
            return None
        return replace(bounds, start=self._renamed(bounds.start), end=self._renamed(bounds.end))


@dataclass(frozen=True)
class _Calls:
    """The primitive calls of one window."""

    windows: SelectWindows
    order: _Order

    def call(self, call: WindowCall, *, reverse: bool = False) -> str:
        order = self.order
        if reverse:
            order = replace(order, columns=tuple(each.reversed for each in order.columns), is_reversed=True)
        calls = self.windows.calls.setdefault(order, {})
        if call not in calls:
            count = sum(len(known) for known in self.windows.calls.values())
            calls[call] = column_text(self.windows.number, f"w{count}")
        return calls[call]

    def total(self, primitive: Primitive) -> str:
        for argument in primitive.arguments:
            for leaf in nodes.walk(argument.node):
                if isinstance(leaf, nodes.Column) and leaf.name in self.windows.kinds:  # not a value of another call
                    self.windows.input(column(leaf.name, leaf.type))
        known = self.windows.totals
        return known.setdefault((self.order.partition, primitive), column_text(self.windows.number, f"t{len(known)}"))

    def input(self, expression: Expression) -> str:
        return self.windows.input(expression)


def bind_qualify(node: exp.Select, scope: Scope) -> tuple[Predicate, ...]:
    """The conditions of QUALIFY on rows with their values."""
    qualify = node.args.get("qualify")
    return () if qualify is None else bind_condition(qualify.this, scope)


def no_windows(node: exp.Select) -> InvalidSql:
    """The error for a QUALIFY in a query without window functions."""
    return InvalidSql(
        "QUALIFY without a window function",
        detail=text_of(node.args["qualify"]),
        hint="a condition on rows stands in WHERE, one on groups in HAVING",
    )


def _check_comparable(expression: Expression, window: exp.Window) -> None:
    if pa.types.is_null(expression.type) or not spark_types.comparable(expression.type, expression.type):
        raise TypeMismatch(
            f"rows cannot be ordered or partitioned by {spark_types.spark_name(expression.type)}",
            detail=f"in `{text_of(window)}`",
            hint="use values that are in it, or CAST it",
        )
