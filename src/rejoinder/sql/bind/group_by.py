"""GROUP BY, HAVING, and SELECT lists with aggregates: from a query over rows to one over groups.

A grouped SELECT is rewritten: every aggregate and every grouping expression in it becomes a column of the groups, and
the rest is bound on those columns like any other SELECT. So `sum(a) / count(*) + 1` needs nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, Unsupported
from rejoinder.ir import nodes as expressions
from rejoinder.ir.expression import Expression, column
from rejoinder.ir.logical import Aggregate, Call, Filter, Node, Project, Validity
from rejoinder.sql.bind.aggregate_functions import Primitive, aggregates_in, bind_call, is_aggregate, read_call
from rejoinder.sql.bind.distinct_aggregates import DistinctAggregates
from rejoinder.sql.bind.predicates import bind_condition
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.bind.windows.window_syntax import with_operands
from rejoinder.sql.functions import output_names
from rejoinder.sql.functions.expression_compiler import compile_expression, compile_validity_time, compile_window
from rejoinder.sql.functions.function_names import SIGNATURES
from rejoinder.sql.functions.refusals import not_offered
from rejoinder.sql.functions.time.window_functions import ColumnBounds, is_validity, pack, window_type
from rejoinder.sql.parse.clauses import MARKS, text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, relabel

_UNSEEN = str.maketrans("01", MARKS[1:])


def is_grouped(node: exp.Select) -> bool:
    """Say whether a SELECT is about groups of rows."""
    return bool(node.args.get("group") or node.args.get("having")) or any(
        True for item in node.expressions for _ in aggregates_in(item)
    )


def bind_groups(root: Node, scope: Scope, node: exp.Select, numbers: Iterator[int]) -> tuple[Node, Scope, exp.Select]:
    """The groups of a SELECT, restricted by HAVING; their columns; and the SELECT list on these."""
    return _Groups(root, scope, node, numbers).bind()


@dataclass
class _Key:
    """A grouping expression, and what of it is a key: a window is known by its two ends.

    Of a validity window only the start is one, the time itself; its end depends on the other rows of the group.
    """

    node: exp.Expr
    expression: Expression
    name: str
    id: str
    parts: list[tuple[str, Expression]]
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
        found = [call for item in self.items for call in aggregates_in(item)]
        for clause in (having, self.node.args.get("qualify")):
            found += [] if clause is None else aggregates_in(clause.this)
        if self.node.args.get("group") is None and not found:
            raise InvalidSql(
                "HAVING without an aggregate or a GROUP BY",
                detail=text_of(having or self.node),
                hint="a condition on rows stands in WHERE",
            )
        self._bind_keys()
        listed = [self._named(item) for item in self.items]
        condition = None if having is None else self._rewritten(having.this, aliases=True)
        qualify = self.node.args.get("qualify")
        if qualify is not None:
            qualify = exp.Qualify(this=self._rewritten(qualify.this, aliases=True))
        scope = self._scope()
        root: Node = Project(self._valid(self._aggregate()), self._outputs())
        if condition is not None:
            root = Filter(root, bind_condition(condition, scope))
        select = exp.Select(expressions=listed, distinct=self.node.args.get("distinct"), qualify=qualify)
        return root, scope, select

    # -- GROUP BY -----------------------------------------------------------------------------------------------------

    def _items(self) -> Iterator[exp.Expr]:
        """The SELECT list, stars expanded."""
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
        nodes += [given for given in group.expressions if not (isinstance(given, exp.Tuple) and not given.expressions)]
        for given in nodes:
            if isinstance(given, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise _no_sets(group)
            if isinstance(given, exp.Tuple):
                hint = "write them without parentheses, or group by a struct"
                raise Unsupported("a list in GROUP BY is not supported", detail=text_of(group), hint=hint)
            self._bind_key(self._meant(given), given)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """A grouping expression: a position or an alias of the SELECT list stands for what is there."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            at = int(node.this)
            if not 1 <= at <= len(self.items):
                raise InvalidSql(
                    f"GROUP BY {at}: there are {len(self.items)} columns",
                    detail=text_of(self.node.args["group"]),
                    hint="positions start at 1",
                )
            return _unaliased(self.items[at - 1])
        if isinstance(node, exp.Column) and not node.table:
            found = self._alias(node)
            if found is not None and not self.scope.knows(node):
                return found
        return node

    def _alias(self, node: exp.Column) -> exp.Expr | None:
        found = [i.this for i in self.items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower()]
        return found[0] if found else None

    def _bind_key(self, node: exp.Expr, given: exp.Expr) -> None:
        for call in aggregates_in(node):
            raise InvalidSql(
                f"`{text_of(call)}` is an aggregate, and GROUP BY makes the groups it is about",
                detail=f"GROUP BY {text_of(given)}",
                hint="group by columns; compute the aggregate in a subquery to group by its result",
            )
        if is_validity(node):
            self._bind_validity(node, given)
            return
        expression = compile_expression(node, self.scope)
        if pa.types.is_null(expression.type) or not spark_types.comparable(expression.type, expression.type):
            raise TypeMismatch(
                f"GROUP BY `{text_of(node)}` of type {spark_types.spark_name(expression.type)}",
                detail="maps cannot be compared, and NULL has no type",
                hint="group by values that are in it, or CAST it",
            )
        if any(known.expression == expression for known in self.keys):
            return
        at = len(self.keys)
        identifier = f"{self.number}.k{at}"
        key = _Key(node, expression, _marked(node, at), identifier, [(identifier, expression)])
        window = compile_window(node, self.scope)
        if window is not None:
            key.bounds = ColumnBounds(f"{identifier}/start", f"{identifier}/end", window.size)
            key.parts = [(key.bounds.start, window.start), (key.bounds.end, window.end)]
        self.keys.append(key)

    def _bind_validity(self, node: exp.Expr, given: exp.Expr) -> None:
        if any(key.is_validity for key in self.keys):
            raise Unsupported(
                "two validity windows in one GROUP BY are not supported",
                detail=f"GROUP BY {text_of(given)}",
                hint="compute one of them in a subquery",
            )
        time = compile_validity_time(node, self.scope)
        at = len(self.keys)
        identifier = f"{self.number}.k{at}"
        bounds = ColumnBounds(f"{identifier}/start", f"{identifier}/end")
        name = _marked(node, at)
        window = Expression(relabel(Term(time.node), window_type(time.type)).node, time.text)
        self.keys.append(_Key(node, window, name, identifier, [(bounds.start, time)], bounds, is_validity=True))

    # -- SELECT and HAVING --------------------------------------------------------------------------------------------

    def _named(self, item: exp.Expr) -> exp.Expr:
        """An item of the SELECT list on the columns of the groups, with the name that Spark would give it."""
        inner = _unaliased(item)
        made = self._rewritten(inner, aliases=False)
        name = item.alias if isinstance(item, exp.Alias) else output_names.output_name(self._bare(inner), self._is_time)
        return exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True))

    def _bare(self, node: exp.Expr) -> exp.Expr:
        """The expression with its columns named as Spark does in a generated name: without their relation."""

        def bare(part: exp.Expr) -> exp.Expr:
            known = isinstance(part, exp.Column) and bool(part.table) and self.scope.knows(part)
            return exp.column(part.this.copy()) if known else part

        return node if isinstance(node, exp.Column) else node.transform(bare)

    def _is_time(self, part: exp.Expr) -> bool:
        try:
            return spark_types.is_datetime(compile_expression(self._rewritten(part, aliases=False), self._scope()).type)
        except PlanningError:
            return isinstance(part, exp.Interval)

    def _rewritten(self, node: exp.Expr, *, aliases: bool) -> exp.Expr:
        """An expression on the columns of the groups; in HAVING, `aliases` of the SELECT list are known too."""

        def swap(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Window):
                return with_operands(part, lambda operand: self._rewritten(operand, aliases=aliases))
            if is_aggregate(part):
                return _reference(self._result(part))
            if isinstance(part, exp.Query):
                return part
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

        return node.transform(swap)

    def _key_of(self, part: exp.Expr) -> _Key | None:
        """The grouping expression that a part of an expression is."""
        if not isinstance(part, exp.Condition) or isinstance(part, exp.Literal | exp.Boolean | exp.Null):
            return None
        try:
            if is_validity(part):
                time = compile_validity_time(part, self.scope)
                return next((k for k in self.keys if k.is_validity and k.parts[0][1] == time), None)
            made = compile_expression(part, self.scope)
        except PlanningError:  # it holds an aggregate, or is wrong; then its parts say so
            return None
        return next((k for k in self.keys if k.expression == made), None)

    def _field_of_key(self, part: exp.Column) -> exp.Expr | None:
        """A field of a grouped column, as in `w.start`."""
        if not part.table or self.scope.knows(part):
            return None
        key = self._key_of(exp.column(part.args["table"], table=part.args.get("db")))
        return None if key is None else exp.Dot(this=_reference(key.name), expression=part.this.copy())

    def _is_grouped(self, part: exp.Column) -> bool:
        try:
            made = compile_expression(part, self.scope)
        except PlanningError:
            return False
        return set(made.columns) <= {i for key in self.keys if key.expression.is_column for i in key.expression.columns}

    def _check_grouped(self, part: exp.Column) -> None:
        if self._is_grouped(part) or self._is_field_of_window(part):
            return
        compile_expression(part, self.scope)  # says so if there is no such column
        name = text_of(part)
        call = part.find_ancestor(exp.Anonymous, exp.Select)
        if isinstance(call, exp.Anonymous) and call.name.lower() not in SIGNATURES:
            raise not_offered(call)  # it would be an aggregate: that it does not exist is what matters
        raise InvalidSql(
            f"column `{name}` is neither grouped nor aggregated",
            detail=f"in `{text_of(part.parent) if part.parent is not None else name}`: a group has many values of it",
            hint=f"add it to GROUP BY, or take one value: ANY_VALUE({name}), MIN({name}), MAX({name})",
        )

    def _is_field_of_window(self, part: exp.Column) -> bool:
        """Whether this is `window.start` beside GROUP BY window(…): Spark calls that key `window`."""
        return part.parts[0].name.lower() == "window" and any(_is_window_call(key.node) for key in self.keys)

    def _result(self, node: exp.Expr) -> str:
        """The name of the column that holds the result of an aggregate."""
        text = text_of(node)
        known = self.results.get(text)
        if known is None:
            name = _marked(node, len(self.keys) + len(self.results))
            known = self.results[text] = (name, bind_call(read_call(node), self.scope, self._primitive))
        return known[0]

    def _primitive(self, primitive: Primitive) -> str:
        call = primitive.call
        identity = (call.function, call.argument, call.type, primitive.distinct)
        known = self.primitives.setdefault(identity, (f"{self.number}.a{len(self.primitives)}", primitive))
        return known[0]

    # -- the plan -----------------------------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        """The columns of the groups: under names of their own, and grouped columns under theirs too."""
        columns = []
        for key in self.keys:
            columns.append(Column("", key.name, key.id, key.expression.type, bounds=key.bounds))
            if key.expression.is_column:
                same = [c for c in self.scope.columns if c.id == key.expression.columns[0]]
                identifier, bounds = (key.parts[0][0], None) if key.is_validity else (key.id, key.bounds)
                columns += [replace(c, id=identifier, bounds=bounds) for c in same]
            elif _is_window_call(key.node):
                columns.append(Column("", "window", key.id, key.expression.type, bounds=key.bounds))
        for at, (name, expression) in enumerate(self.results.values()):
            columns.append(Column("", name, f"{self.number}.v{at}", expression.type))
        return replace(self.scope, columns=tuple(columns), repeats=())

    def _outputs(self) -> tuple[tuple[str, Expression], ...]:
        """The columns of the groups, from keys and primitives."""
        outputs = []
        for key in self.keys:
            outputs += [(i, column(i, e.type)) for i, e in key.parts]
            if key.is_validity and key.bounds is not None:
                outputs.append((key.bounds.end, column(key.bounds.end, key.parts[0][1].type)))
            if key.bounds is not None:
                outputs.append((key.id, _packed(key.bounds, key.expression.type)))
        for at, (_, expression) in enumerate(self.results.values()):
            outputs.append((f"{self.number}.v{at}", expression))
        return tuple(outputs)

    def _valid(self, groups: Aggregate) -> Node:
        """The groups with the ends of their validity windows, if they have some."""
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
    """The name of a column of the groups: the text, for messages, and after it a number that nobody sees or writes."""
    return f"{text_of(node)}{MARKS[0]}{f'{number:b}'.translate(_UNSEEN)}"


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
        hint="write one SELECT … GROUP BY for each, and connect them with UNION ALL",
    )
