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

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, Unsupported
from rejoinder.ir import nodes as expressions
from rejoinder.ir.expression import Expression, column
from rejoinder.ir.logical import Aggregate, Call, Node, Project, Validity
from rejoinder.sql.bind.aggregate_functions import Aggregated, aggregates_in, bind_call, is_aggregate, read_call
from rejoinder.sql.bind.distinct_aggregates import DistinctAggregates
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.bind.windows.window_syntax import with_operands
from rejoinder.sql.functions import output_names
from rejoinder.sql.functions.aggregates import Primitive
from rejoinder.sql.functions.expression_compiler import compile_expression, compile_validity_time, compile_window
from rejoinder.sql.functions.function_registry import SIGNATURES
from rejoinder.sql.functions.refusals import unsupported
from rejoinder.sql.functions.time.window_functions import is_validity
from rejoinder.sql.functions.time.windows import ColumnBounds, pack, window_type
from rejoinder.sql.parse.clauses import marked_name, text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, relabel


def is_grouped(node: exp.Select) -> bool:
    """Return whether a SELECT has groups: GROUP BY, HAVING or an aggregate."""
    return bool(node.args.get("group") or node.args.get("having")) or any(
        True for item in node.expressions for _ in aggregates_in(item)
    )


def bind_groups(root: Node, scope: Scope, node: exp.Select, numbers: Iterator[int]) -> tuple[Node, Scope, exp.Select]:
    """Return the groups of a SELECT; their columns; and the SELECT list and HAVING over these columns."""
    return _Groups(root, scope, node, numbers).bind()


@dataclass
class _Key:
    """A grouping expression."""

    node: exp.Expr
    expression: Expression
    name: str
    """The name of its column in the groups, for messages; unique by invisible marks."""
    id: str
    parts: list[tuple[str, Expression]]
    """The key columns of the aggregate. A window has two, its start and end. A validity window has only its start,
    the time itself, because its end depends on the other rows of the group."""
    bounds: ColumnBounds | None = None
    is_validity: bool = False


@dataclass
class _Groups:
    root: Node
    scope: Scope
    node: exp.Select
    numbers: Iterator[int]
    keys: list[_Key] = field(default_factory=list)
    primitives: dict[tuple[object, ...], tuple[str, Primitive]] = field(default_factory=dict)
    results: dict[str, tuple[str, Expression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = next(self.numbers)
        self.items = list(self._items())

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
        self._bind_keys()
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

    # -- GROUP BY -----------------------------------------------------------------------------------------------------

    def _items(self) -> Iterator[exp.Expr]:
        """Yield the SELECT list; expand stars."""
        for item in self.node.expressions:
            if not item.is_star:
                yield item
                continue
            star = item if isinstance(item, exp.Star) else item.this
            if any(star.args.get(name) for name in ("except_", "except", "replace", "rename")):
                raise Unsupported(
                    "* EXCEPT and REPLACE are not supported", detail=text_of(item), hint="list the columns"
                )
            qualifier = item.table if isinstance(item, exp.Column) else None
            for c in self.scope.all(qualifier or None, text_of(item)):
                yield exp.column(exp.to_identifier(c.name, quoted=True), table=c.qualifier or None)

    def _bind_keys(self) -> None:
        group = self.node.args.get("group")
        if group is None:
            return
        for name, value in group.args.items():
            if value and name not in ("expressions", "all"):
                raise _no_sets(group)
        nodes: list[exp.Expr] = []
        if group.args.get("all"):
            nodes = [_unaliased(item) for item in self.items if not any(True for _ in aggregates_in(item))]
        nodes += [item for item in group.expressions if not (isinstance(item, exp.Tuple) and not item.expressions)]
        for item in nodes:
            if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise _no_sets(group)
            if isinstance(item, exp.Tuple):
                hint = "write them without parentheses, or group by a struct"
                raise Unsupported("a list in GROUP BY is not supported", detail=text_of(group), hint=hint)
            self._bind_key(self._resolved(item), item)

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        """Resolve a position or an alias of the SELECT list: `SELECT f(x) AS y … GROUP BY 1` or `GROUP BY y`."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            position = int(node.this)
            if not 1 <= position <= len(self.items):
                raise InvalidSql(
                    f"GROUP BY {position}: there are {len(self.items)} columns",
                    detail=text_of(self.node.args["group"]),
                    hint="positions start at 1",
                )
            return _unaliased(self.items[position - 1])
        if isinstance(node, exp.Column) and not node.table:
            item = self._alias(node)
            if item is not None and not self.scope.knows(node):
                return item
        return node

    def _alias(self, node: exp.Column) -> exp.Expr | None:
        items = [i.this for i in self.items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower()]
        return items[0] if items else None

    def _bind_key(self, node: exp.Expr, written: exp.Expr) -> None:
        for call in aggregates_in(node):
            raise InvalidSql(
                f"GROUP BY cannot contain the aggregate `{text_of(call)}`",
                detail=f"GROUP BY {text_of(written)}",
                hint="group by columns; compute the aggregate in a subquery to group by its result",
            )
        if is_validity(node):
            self._bind_validity(node, written)
            return
        expression = compile_expression(node, self.scope)
        if pa.types.is_null(expression.type) or not spark_types.comparable(expression.type, expression.type):
            raise TypeMismatch(
                f"GROUP BY `{text_of(node)}` of type {spark_types.spark_name(expression.type)}",
                detail="maps cannot be compared, and NULL has no type",
                hint="group by values inside it, or CAST it",
            )
        if any(key.expression == expression for key in self.keys):
            return
        number = len(self.keys)
        identifier = f"{self.number}.k{number}"
        key = _Key(node, expression, _marked(node, number), identifier, [(identifier, expression)])
        window = compile_window(node, self.scope)
        if window is not None:
            key.bounds = ColumnBounds(f"{identifier}/start", f"{identifier}/end", window.size)
            key.parts = [(key.bounds.start, window.start), (key.bounds.end, window.end)]
        self.keys.append(key)

    def _bind_validity(self, node: exp.Expr, written: exp.Expr) -> None:
        if any(key.is_validity for key in self.keys):
            raise Unsupported(
                "two validity windows in one GROUP BY are not supported",
                detail=f"GROUP BY {text_of(written)}",
                hint="compute one of them in a subquery",
            )
        time = compile_validity_time(node, self.scope)
        number = len(self.keys)
        identifier = f"{self.number}.k{number}"
        bounds = ColumnBounds(f"{identifier}/start", f"{identifier}/end")
        name = _marked(node, number)
        window = Expression(relabel(Term(time.node), window_type(time.type)).node, time.text)
        self.keys.append(_Key(node, window, name, identifier, [(bounds.start, time)], bounds, is_validity=True))

    # -- SELECT and HAVING --------------------------------------------------------------------------------------------

    def _named(self, item: exp.Expr) -> exp.Expr:
        """Rewrite an item of the SELECT list over the columns of the groups, and name it as Spark does."""
        inner = _unaliased(item)
        rewritten = self._rewritten(inner, aliases=False)
        name = item.alias if isinstance(item, exp.Alias) else output_names.output_name(self._bare(inner), self._is_time)
        return exp.Alias(this=rewritten, alias=exp.to_identifier(name, quoted=True))

    def _bare(self, node: exp.Expr) -> exp.Expr:
        """Remove the qualifiers of columns, as Spark does in a generated name."""

        def bare(part: exp.Expr) -> exp.Expr:
            is_qualified = isinstance(part, exp.Column) and bool(part.table) and self.scope.knows(part)
            return exp.column(part.this.copy()) if is_qualified else part

        return node if isinstance(node, exp.Column) else node.transform(bare)

    def _is_time(self, part: exp.Expr) -> bool:
        try:
            return spark_types.is_datetime(compile_expression(self._rewritten(part, aliases=False), self._scope()).type)
        except PlanningError:
            return isinstance(part, exp.Interval)

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
            key = self._key_of(part)
            if key is not None:
                return _reference(key.name)
            if isinstance(part, exp.Column):
                field = self._field_of_key(part)
                if field is not None:
                    return field
                alias = self._alias(part) if aliases and not part.table else None
                if alias is not None and not self._is_grouped(part):
                    return self._rewritten(alias, aliases=False)
                self._check_grouped(part)
            return part

        return node.transform(hide).transform(swap).transform(show)

    def _key_of(self, part: exp.Expr) -> _Key | None:
        """Return the key that equals a part of an expression."""
        if not isinstance(part, exp.Condition) or isinstance(part, exp.Literal | exp.Boolean | exp.Null):
            return None
        try:
            if is_validity(part):
                time = compile_validity_time(part, self.scope)
                return next((k for k in self.keys if k.is_validity and k.parts[0][1] == time), None)
            expression = compile_expression(part, self.scope)
        except PlanningError:  # it contains an aggregate, or an error that binding its parts reports
            return None
        return next((k for k in self.keys if k.expression == expression), None)

    def _field_of_key(self, part: exp.Column) -> exp.Expr | None:
        """Return a field of a grouped column, as in `w.start`."""
        if not part.table or self.scope.knows(part):
            return None
        key = self._key_of(exp.column(part.args["table"], table=part.args.get("db")))
        return None if key is None else exp.Dot(this=_reference(key.name), expression=part.this.copy())

    def _is_grouped(self, part: exp.Column) -> bool:
        try:
            expression = compile_expression(part, self.scope)
        except PlanningError:
            return False
        grouped = {i for key in self.keys if key.expression.is_column for i in key.expression.columns}
        return set(expression.columns) <= grouped | self.scope.outer_ids()

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
        """Return whether this is `window.start` with GROUP BY window(…); Spark names that key `window`."""
        return part.parts[0].name.lower() == "window" and any(_is_window_call(key.node) for key in self.keys)

    def _result(self, node: exp.Expr) -> str:
        """Return the name of the column with the result of an aggregate."""
        text = text_of(node)
        result = self.results.get(text)
        if result is None:
            name = _marked(node, len(self.keys) + len(self.results))
            call = read_call(node)
            self._refuse_outer(call)
            result = self.results[text] = (name, bind_call(call, self.scope, self._primitive))
        return result[0]

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
        call = primitive.call
        identity = (call.function, call.argument, call.type, primitive.distinct)
        column_id, _ = self.primitives.setdefault(identity, (f"{self.number}.a{len(self.primitives)}", primitive))
        return column_id

    # -- the plan -----------------------------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        """Return the columns of the groups. Grouped columns also keep their names in FROM."""
        columns = []
        for key in self.keys:
            columns.append(Column("", key.name, key.id, key.expression.type, bounds=key.bounds))
            if key.expression.is_column:
                same = [c for c in self.scope.columns if c.id == key.expression.columns[0]]
                identifier, bounds = (key.parts[0][0], None) if key.is_validity else (key.id, key.bounds)
                columns += [replace(c, id=identifier, bounds=bounds) for c in same]
            elif _is_window_call(key.node):
                columns.append(Column("", "window", key.id, key.expression.type, bounds=key.bounds))
        for number, (name, expression) in enumerate(self.results.values()):
            columns.append(Column("", name, f"{self.number}.v{number}", expression.type))
        return replace(self.scope, columns=tuple(columns), repeats=(), computed=())

    def _outputs(self) -> tuple[tuple[str, Expression], ...]:
        """Return the columns of the groups, computed from keys and primitives."""
        outputs = []
        for key in self.keys:
            outputs += [(i, column(i, e.type)) for i, e in key.parts]
            if key.is_validity and key.bounds is not None:
                outputs.append((key.bounds.end, column(key.bounds.end, key.parts[0][1].type)))
            if key.bounds is not None:
                outputs.append((key.id, _packed(key.bounds, key.expression.type)))
        for number, (_, expression) in enumerate(self.results.values()):
            outputs.append((f"{self.number}.v{number}", expression))
        return tuple(outputs)

    def _valid(self, groups: Aggregate) -> Node:
        """Add the ends of validity windows to the groups, if they are grouped by one."""
        key = next((key for key in self.keys if key.is_validity), None)
        if key is None or key.bounds is None:
            return groups
        columns = (*((i, e.type) for i, e in groups.keys), *((i, call.type) for i, call in groups.calls))
        partition = tuple(i for other in self.keys if other is not key for i, _ in other.parts)
        return Validity(groups, columns, partition, key.bounds.start, key.bounds.end)

    def _aggregate(self) -> Aggregate:
        keys = tuple(part for key in self.keys for part in key.parts)
        listed = list(self.primitives.values())
        if not keys and not listed:
            listed = [(f"{self.number}.a0", Primitive(Call("count", None, spark_types.BIGINT)))]
        if not any(primitive.distinct for _, primitive in listed):
            return Aggregate(self.root, keys, tuple((i, primitive.call) for i, primitive in listed))
        return DistinctAggregates(self.root, keys, listed, self.number).aggregate()


def _packed(bounds: ColumnBounds, kind: pa.DataType) -> Expression:
    time = kind.field("start").type
    start, end = (Term(expressions.Column(name, time)) for name in (bounds.start, bounds.end))
    return Expression(pack(start, end).node)


def _marked(node: exp.Expr, number: int) -> str:
    """Return the name of a column of the groups: its text, for messages, and a number in invisible characters."""
    return marked_name(text_of(node), number)


def _reference(name: str) -> exp.Expr:
    return exp.column(exp.to_identifier(name, quoted=True))


def _unaliased(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _is_window_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def _no_sets(group: exp.Expr) -> Unsupported:
    return Unsupported(
        "ROLLUP, CUBE and GROUPING SETS are not supported",
        detail=text_of(group),
        hint="write one SELECT … GROUP BY for each, and combine them with UNION ALL",
    )
