"""Bind GROUP BY, HAVING, and SELECT lists with aggregates.

    SELECT f(k), SUM(a) / COUNT(*) + 1 FROM t GROUP BY f(k) HAVING SUM(a) > 0

becomes, with one column for each grouping expression and each aggregate,

    SELECT k0, v1 / v2 + 1 FROM (SELECT f(k) AS k0, SUM(a) AS v1, COUNT(*) AS v2 FROM t GROUP BY f(k)) WHERE v1 > 0

so that expressions over aggregates are bound like those of any other SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, PlanningError, Unsupported
from rejoinder.ir.aggregate_calls import Call
from rejoinder.ir.expressions import nodes as expressions
from rejoinder.ir.expressions.expression import Expression, column, substitute
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Aggregate, Node, Project, Validity
from rejoinder.sql.bind.groups.aggregate_functions import Aggregated, aggregates_in, bind_call, is_aggregate, read_call
from rejoinder.sql.bind.groups.distinct_aggregates import aggregate_of
from rejoinder.sql.bind.groups.group_keys import GroupKey, GroupKeys, marked, unaliased, window_name
from rejoinder.sql.bind.groups.grouping_sets import is_grouping, with_grouping_id
from rejoinder.sql.bind.groups.session_groups import group_sessions, moved_by
from rejoinder.sql.bind.relations.generators import called_generator
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.bind.windows.window_syntax import with_operands
from rejoinder.sql.functions import output_names
from rejoinder.sql.functions.aggregates.aggregate_function import Primitive
from rejoinder.sql.functions.expression_compiler import compile_expression, type_of
from rejoinder.sql.functions.function_registry import SIGNATURES
from rejoinder.sql.functions.refusals import unsupported
from rejoinder.sql.functions.time.windows import ColumnBounds, pack
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term


def is_grouped(node: exp.Select) -> bool:
    """Return whether a SELECT has groups: GROUP BY, HAVING or an aggregate."""
    return bool(node.args.get("group") or node.args.get("having")) or any(
        True for item in node.expressions for _ in aggregates_in(item)
    )


def bind_groups(root: Node, scope: Scope, node: exp.Select, numbers: Iterator[int]) -> tuple[Node, Scope, exp.Select]:
    """Return the groups of a SELECT; their columns; and the SELECT list and HAVING over these columns."""
    return _Groups(root, scope, node, numbers).bind()


@dataclass
class _Groups:
    root: Node
    scope: Scope
    node: exp.Select
    numbers: Iterator[int]
    primitives: dict[Primitive, tuple[str, Primitive]] = field(default_factory=dict)
    results: dict[str, tuple[str, Expression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = next(self.numbers)
        self.node = with_grouping_id(self.node, self.scope.knows)
        self.items = list(self._items())
        self.group_keys = GroupKeys(self.scope, self.items, self.number)

    @property
    def keys(self) -> list[GroupKey]:
        return self.group_keys.keys

    def bind(self) -> tuple[Node, Scope, exp.Select]:
        having = self.node.args.get("having")
        aggregates = [call for item in self.items for call in aggregates_in(item)]
        for clause in (having, self.node.args.get("qualify")):
            aggregates += [] if clause is None else aggregates_in(clause.this)
        if self.node.args.get("group") is None and not aggregates:
            raise InvalidSql(
                "HAVING without an aggregate or a GROUP BY",
                detail=text_of(having or self.node),
                hint="write a condition on rows in WHERE",
            )
        self.group_keys.bind(self.node.args.get("group"))
        if self.group_keys.sets is not None:
            self.root = self.group_keys.sets.expanded(self.root)
        listed = [self._named(item) for item in self.items]
        condition = None if having is None else self._rewritten(having.this, aliases=True)
        qualify = self.node.args.get("qualify")
        qualified = None if qualify is None else self._rewritten(qualify.this, aliases=True)
        root = Project(self._valid(self._aggregate()), self._outputs())
        select = exp.Select(expressions=listed, distinct=self.node.args.get("distinct"))
        if condition is not None:
            select.set("having", exp.Having(this=condition))
        if qualified is not None:
            select.set("qualify", exp.Qualify(this=qualified))
        return root, self._scope(), select

    def _items(self) -> Iterator[exp.Expr]:
        """Yield the SELECT list; expand stars."""
        for item in self.node.expressions:
            if not item.is_star:
                yield item
                continue
            qualifier = item.table if isinstance(item, exp.Column) else None
            for c in self.scope.all(qualifier or None, text_of(item)):
                yield exp.column(exp.to_identifier(c.name, quoted=True), table=c.qualifier or None)

    # -- SELECT and HAVING --------------------------------------------------------------------------------------------

    def _named(self, item: exp.Expr) -> exp.Expr:
        """Rewrite an item of the SELECT list over the columns of the groups, and name it as Spark does."""
        if called_generator(item) is not None:  # it is bound after the groups, and names its columns itself
            return self._rewritten(item, aliases=False)
        inner = unaliased(item)
        rewritten = self._rewritten(inner, aliases=False)
        is_named = isinstance(item, exp.Alias)
        name = item.alias if is_named else output_names.output_name(inner, self._type_of, self.scope.knows)
        return exp.Alias(this=rewritten, alias=exp.to_identifier(name, quoted=True))

    def _type_of(self, part: exp.Expr) -> pa.DataType | None:
        """The type of a part of an expression: about groups, or about rows inside an aggregate or a grouped part."""
        try:
            return type_of(part, self.scope) or type_of(self._rewritten(part, aliases=False), self._scope())
        except PlanningError:
            return None

    def _rewritten(self, node: exp.Expr, *, aliases: bool) -> exp.Expr:
        """Rewrite an expression over the columns of the groups. HAVING may use `aliases` of the SELECT list.

        Subqueries stay as they are: the columns of the groups resolve in them.
        """
        queries: list[exp.Expr] = []

        def hide(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Query):
                return part
            queries.append(part)
            return exp.Placeholder(this=str(len(queries) - 1))

        def show(part: exp.Expr) -> exp.Expr:
            return queries[int(part.name)] if isinstance(part, exp.Placeholder) else part

        def swap(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Window):
                return with_operands(part, lambda operand: self._rewritten(operand, aliases=aliases))
            if is_aggregate(part):
                return _reference(self._result(part))
            key = self.group_keys.key_of(part)
            if key is not None:
                return _reference(key.name)
            if isinstance(part, exp.Column):
                field = self._field_of_key(part)
                if field is not None:
                    return field
                alias = self.group_keys.alias(part) if aliases and not part.table else None
                if alias is not None and not self._is_grouped(part):
                    return self._rewritten(alias, aliases=False)
                self._check_grouped(part)
            return part

        return node.transform(hide).transform(swap).transform(show)

    def _field_of_key(self, part: exp.Column) -> exp.Expr | None:
        """Return a field of a grouped column, as in `w.start`."""
        if not part.table or self.scope.knows(part):
            return None
        key = self.group_keys.key_of(exp.column(part.args["table"], table=part.args.get("db")))
        return None if key is None else exp.Dot(this=_reference(key.name), expression=part.this.copy())

    def _is_grouped(self, part: exp.Column) -> bool:
        try:
            expression = compile_expression(part, self.scope)
        except PlanningError:
            return False
        keys = [key.expression for key in self.keys if key.expression.is_column and key.gap is None]
        return set(expression.columns) <= {i for key in keys for i in key.columns} | self.scope.outer_ids()

    def _check_grouped(self, part: exp.Column) -> None:
        if self._is_grouped(part) or self._is_field_of_window(part):
            return
        compile_expression(part, self.scope)  # raises if there is no such column
        name = text_of(part)
        call = part.find_ancestor(exp.Anonymous, exp.Select)
        if isinstance(call, exp.Anonymous) and call.name.lower() not in SIGNATURES:
            raise unsupported(call)  # an unknown function, perhaps an aggregate, is the better error
        raise InvalidSql(
            f"column `{name}` is neither grouped nor aggregated",
            detail=f"in `{text_of(part.parent) if part.parent is not None else name}`: a group has many values of it",
            hint=f"add it to GROUP BY, or use one value: ANY_VALUE({name}), MIN({name}), MAX({name})",
        )

    def _is_field_of_window(self, part: exp.Column) -> bool:
        """Whether this is `window.start` beside GROUP BY window(…): Spark calls that key `window`."""
        return part.parts[0].name.lower() in {window_name(key.node) for key in self.keys}

    def _result(self, node: exp.Expr) -> str:
        """Return the name of the column with the result of an aggregate."""
        text = text_of(node)
        result = self.results.get(text)
        if result is None:
            name = marked(node, len(self.keys) + len(self.results))
            value = self._grouping_or_call(node)
            result = self.results[text] = (name, value)
        return result[0]

    def _grouping_or_call(self, node: exp.Expr) -> Expression:
        if is_grouping(node):
            return self.group_keys.grouping(node)
        call = read_call(node)
        self._refuse_outer(call)
        return bind_call(call, self.scope, self._primitive)

    def _refuse_outer(self, call: Aggregated) -> None:
        """Refuse an aggregate of the outer query: all its columns belong to it."""
        if self.scope.outer is None:
            return
        read = {i for node in call.arguments if not node.is_star for i in compile_expression(node, self.scope).columns}
        if read and read <= self.scope.outer_ids():
            raise Unsupported(
                f"`{text_of(call.node)}` is an aggregate of the outer query, in a subquery",
                detail="all columns in it belong to the outer query, and so do the rows that it would be about",
                hint="compute it in the outer query, or name a column of the subquery",
            )

    def _primitive(self, primitive: Primitive) -> str:
        column_id, _ = self.primitives.setdefault(
            primitive, (column_text(self.number, f"a{len(self.primitives)}"), primitive)
        )
        return column_id

    # -- the plan -----------------------------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        """Return the columns of the groups. Grouped columns also keep their names in FROM."""
        columns = []
        for key in self.keys:
            columns.append(Column("", key.name, key.id, key.expression.type, bounds=key.bounds))
            if key.expression.is_column and key.gap is None:
                same = [c for c in self.scope.columns if c.id == key.expression.columns[0]]
                identifier, bounds = (key.parts[0][0], None) if key.is_validity else (key.id, key.bounds)
                columns += [replace(c, id=identifier, bounds=bounds) for c in same]
            name = window_name(key.node)
            if name is not None:
                columns.append(Column("", name, key.id, key.expression.type, bounds=key.bounds))
        for at, (name, expression) in enumerate(self.results.values()):
            columns.append(Column("", name, column_text(self.number, f"v{at}"), expression.type))
        return replace(self.scope, columns=tuple(columns), repeats=(), computed=())

    def _outputs(self) -> tuple[tuple[str, Expression], ...]:
        """Return the columns of the groups, computed from keys and primitives."""
        outputs = []
        for key in self.keys:
            outputs += [(i, column(i, e.type)) for i, e in key.parts]
            if key.bounds is None:
                continue
            end = column(key.bounds.end, key.parts[0][1].type)
            if key.gap is not None:  # the column holds the last time of the session
                end = moved_by(end, key.gap)
            if key.is_open_ended:
                outputs.append((key.bounds.end, end))
            outputs.append((key.id, substitute(_packed(key.bounds, key.expression.type), {key.bounds.end: end})))
        for number, (_, expression) in enumerate(self.results.values()):
            outputs.append((column_text(self.number, f"v{number}"), expression))
        return tuple(outputs)

    def _valid(self, groups: Aggregate) -> Node:
        """Add the ends of validity windows to the groups, if they are grouped by one."""
        key = next((key for key in self.keys if key.is_validity), None)
        if key is None or key.bounds is None:
            return groups
        columns = (*((i, e.type) for i, e in groups.keys), *((i, call.type) for i, call in groups.calls))
        partition = tuple(i for other in self.keys if other is not key for i, _ in other.parts)
        partition += () if self.group_keys.sets is None else (self.group_keys.sets.id,)
        return Validity(groups, columns, partition, key.bounds.start, key.bounds.end)

    def _aggregate(self) -> Aggregate:
        keys = tuple(part for key in self.keys for part in key.parts)
        keys += () if self.group_keys.sets is None else ((self.group_keys.sets.id, self.group_keys.sets.column),)
        listed = list(self.primitives.values())
        if not keys and not listed:
            listed = [(column_text(self.number, "a0"), Primitive(Call("count", None, spark_types.BIGINT)))]
        session = next((key for key in self.keys if key.gap is not None), None)
        if session is not None and session.bounds is not None and session.gap is not None:
            return group_sessions(self.root, keys, listed, session.bounds, session.gap, self.number)
        return aggregate_of(self.root, keys, listed, self.number)


def _packed(bounds: ColumnBounds, kind: pa.DataType) -> Expression:
    time = kind.field("start").type
    start, end = (Term(expressions.Column(name, time)) for name in (bounds.start, bounds.end))
    return Expression(pack(start, end).node)


def _reference(name: str) -> exp.Expr:
    return exp.column(exp.to_identifier(name, quoted=True))
