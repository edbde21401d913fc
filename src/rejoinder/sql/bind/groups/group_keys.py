"""The grouping expressions of GROUP BY: positions, aliases, windows, sessions, and the sets that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, Unsupported
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import column_text
from rejoinder.sql.bind.groups.aggregate_functions import aggregates_in
from rejoinder.sql.bind.groups.grouping_sets import GroupingSets, bind_grouping, bind_sets, has_sets
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.functions.expression_compiler import (
    compile_expression,
    compile_session,
    compile_validity_time,
    compile_window,
)
from rejoinder.sql.functions.time.windowing_functions import is_session, is_validity
from rejoinder.sql.functions.time.windows import ColumnBounds, window_type
from rejoinder.sql.parse.clauses import marked_name, text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, relabel


@dataclass
class GroupKey:
    """A grouping expression."""

    node: exp.Expr
    expression: Expression
    name: str
    """The name of its column in the groups, for messages; unique by invisible marks."""
    id: str
    parts: list[tuple[str, Expression]]
    """The key columns of the aggregate. A window has two, its start and end. A validity window and a session have only
    their start, because their end depends on the other rows of the group."""
    bounds: ColumnBounds | None = None
    is_validity: bool = False
    gap: int | None = None
    """The gap of a session, in the unit of its time."""

    @property
    def is_open_ended(self) -> bool:
        """Whether the end depends on other rows."""
        return self.is_validity or self.gap is not None


class GroupKeys:
    """The keys of a grouped SELECT over the columns of a scope; `items` is its SELECT list."""

    def __init__(self, scope: Scope, items: Sequence[exp.Expr], number: int) -> None:
        self.scope, self.items, self.number = scope, items, number
        self.keys: list[GroupKey] = []
        self.sets: GroupingSets | None = None

    def bind(self, group: exp.Expr | None) -> None:
        """Make the expressions of GROUP BY keys. Raises a `PlanningError`."""
        if group is None:
            return
        if has_sets(group):
            self._bind_sets(group)
            return
        nodes: list[exp.Expr] = []
        if group.args.get("all") and self.scope.knows(_ALL):
            nodes = [_ALL.copy()]
        elif group.args.get("all"):
            nodes = [unaliased(item) for item in self.items if not any(True for _ in aggregates_in(item))]
        nodes += [item for item in group.expressions if not (isinstance(item, exp.Tuple) and not item.expressions)]
        for item in nodes:
            if isinstance(item, exp.Tuple):
                hint = "write them without parentheses, or group by a struct"
                raise Unsupported("a list in GROUP BY is not supported", detail=text_of(group), hint=hint)
            self._bind_key(self._resolved(item), item)

    def _bind_sets(self, group: exp.Expr) -> None:
        def bind_key(written: exp.Expr) -> int:
            return self._bind_key(self._resolved(written), written)

        self.sets = bind_sets(group, column_text(self.number, "set"), bind_key)
        if not self.keys and len(self.sets.sets) == 1:  # all rows are one group, also if there are none
            self.sets = None
            return
        for at, key in enumerate(self.keys):
            if key.is_open_ended and not self.sets.has_all(at):
                raise Unsupported(
                    f"`{text_of(key.node)}` in some of the grouping sets is not supported",
                    detail=text_of(group),
                    hint=f"put it before the others: GROUP BY {text_of(key.node)}, ROLLUP(…)",
                )
            key.parts = [(i, self.sets.part(at, e)) for i, e in key.parts]

    def grouping(self, node: exp.Expr) -> Expression:
        """The value of GROUPING or GROUPING_ID."""

        def place(argument: exp.Expr) -> int | None:
            key = self.key_of(self._resolved(argument))
            return None if key is None else self.keys.index(key)

        return bind_grouping(node, self.sets, [key.node for key in self.keys], place)

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        """A grouping expression: a position or an alias of the SELECT list stands for what is there."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            position = int(node.this)
            if not 1 <= position <= len(self.items):
                raise InvalidSql(
                    f"GROUP BY {position}: there are {len(self.items)} columns",
                    detail=text_of(node.parent or node),
                    hint="positions start at 1",
                )
            return unaliased(self.items[position - 1])
        if isinstance(node, exp.Column) and not node.table:
            item = self.alias(node)
            if item is not None and not self.scope.knows(node):
                return item
        return node

    def alias(self, node: exp.Column) -> exp.Expr | None:
        items = [i.this for i in self.items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower()]
        return items[0] if items else None

    def _bind_key(self, node: exp.Expr, written: exp.Expr) -> int:
        """Make an expression a key. Return its number; equal expressions are one key."""
        for call in aggregates_in(node):
            raise InvalidSql(
                f"GROUP BY cannot contain the aggregate `{text_of(call)}`",
                detail=f"GROUP BY {text_of(written)}",
                hint="group by columns; compute the aggregate in a subquery to group by its result",
            )
        if is_validity(node):
            return self._bind_validity(node, written)
        if is_session(node):
            return self._bind_session(node, written)
        expression = compile_expression(node, self.scope)
        if pa.types.is_null(expression.type) or not spark_types.comparable(expression.type, expression.type):
            raise TypeMismatch(
                f"GROUP BY `{text_of(node)}` of type {spark_types.spark_name(expression.type)}",
                detail="maps cannot be compared, and NULL has no type",
                hint="group by values inside it, or CAST it",
            )
        for at, known in enumerate(self.keys):
            if known.expression == expression and not known.is_open_ended:
                return at
        at = len(self.keys)
        identifier = column_text(self.number, f"k{at}")
        key = GroupKey(node, expression, marked(node, at), identifier, [(identifier, expression)])
        window = compile_window(node, self.scope)
        if window is not None:
            key.bounds = ColumnBounds.of(identifier, window.size)
            key.parts = [(key.bounds.start, window.start), (key.bounds.end, window.end)]
        self.keys.append(key)
        return at

    def _bind_validity(self, node: exp.Expr, written: exp.Expr) -> int:
        if any(key.is_validity for key in self.keys):
            raise Unsupported(
                "two validity windows in one GROUP BY are not supported",
                detail=f"GROUP BY {text_of(written)}",
                hint="compute one of them in a subquery",
            )
        return self._add_window(node, compile_validity_time(node, self.scope), is_validity=True)

    def _bind_session(self, node: exp.Expr, written: exp.Expr) -> int:
        if any(key.is_open_ended for key in self.keys):
            raise Unsupported(
                "two sessions or validity windows in one GROUP BY are not supported",
                detail=f"GROUP BY {text_of(written)}",
                hint="compute one of them in a subquery",
            )
        time, gap = compile_session(node, self.scope)
        return self._add_window(node, time, gap=gap)

    def _add_window(
        self, node: exp.Expr, time: Expression, *, is_validity: bool = False, gap: int | None = None
    ) -> int:
        """Add a window of which the end depends on other rows: its start is the key."""
        at = len(self.keys)
        identifier = column_text(self.number, f"k{at}")
        bounds = ColumnBounds.of(identifier)
        window = Expression(relabel(Term(time.node), window_type(time.type)).node, time.text)
        parts = [(bounds.start, time)]
        self.keys.append(GroupKey(node, window, marked(node, at), identifier, parts, bounds, is_validity, gap))
        return at

    def key_of(self, part: exp.Expr) -> GroupKey | None:
        """Return the key that equals a part of an expression."""
        if not isinstance(part, exp.Condition) or isinstance(part, exp.Literal | exp.Boolean | exp.Null):
            return None
        try:
            if is_validity(part):
                time = compile_validity_time(part, self.scope)
                return next((k for k in self.keys if k.is_validity and k.parts[0][1] == time), None)
            if is_session(part):
                time, gap = compile_session(part, self.scope)
                return next((k for k in self.keys if k.gap == gap and k.parts[0][1] == time), None)
            expression = compile_expression(part, self.scope)
        except PlanningError:  # it contains an aggregate, or an error that binding its parts reports
            return None
        return next((k for k in self.keys if k.expression == expression), None)


_ALL = exp.column("all")
"""As in Spark, GROUP BY ALL means a column of that name, if there is one."""


def marked(node: exp.Expr, number: int) -> str:
    """Return the name of a column of the groups: its text, for messages, and a number in invisible characters."""
    return marked_name(text_of(node), number)


def unaliased(item: exp.Expr) -> exp.Expr:
    """Return an item of a SELECT list without its alias."""
    return item.this if isinstance(item, exp.Alias) else item


def window_name(node: exp.Expr) -> str | None:
    """What Spark calls the key of a call of `window` or `session_window`; None if it is another expression."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name if name in ("window", "session_window") else None
