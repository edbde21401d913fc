"""The binder: from a parsed query to the logical plan, every name resolved and every type known.

What is not offered is refused here, pointing at the text; nothing is left to fail at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.kernels.evaluate import Expression, column
from rejoinder.plan.catalog import Catalog, Source
from rejoinder.plan.logical import Distinct, Filter, Join, Node, Predicate, Project, Query, Scan, UnionAll
from rejoinder.sql.casts import coerce
from rejoinder.sql.clauses import refuse_doubles, refuse_subqueries, refuse_unread_clauses, text_of
from rejoinder.sql.expressions import compile_expression, output_name
from rejoinder.sql.scope import Column, Scope
from rejoinder.sql.statements import parse_query
from rejoinder.sql.terms import Term
from rejoinder.sql.types import common_type, comparable, is_integer, key_type, spark_name


def bind(text: str, catalog: Catalog) -> Query:
    """Bind a query. Raises a `PlanningError` that names the thing and shows the place."""
    return Binder(catalog).query(parse_query(text), {})


Ctes = Mapping[str, "_Cte"]


@dataclass
class Binder:
    """Binds one query; numbers scans and projections so that identifiers are unique."""

    catalog: Catalog
    numbers: Iterator[int] = field(default_factory=count)

    def query(self, node: exp.Expr, ctes: Ctes) -> Query:
        """Bind a query expression."""
        if not isinstance(node, exp.Select | exp.Union | exp.Subquery):
            raise Unsupported(f"{node.key.upper()} is not offered", detail=text_of(node), hint="SELECT and UNION are")
        refuse_unread_clauses(node)
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is not None:
            if with_.args.get("recursive"):
                hint = "take RECURSIVE out if no part refers to itself"
                raise Unsupported("WITH RECURSIVE is not offered", detail=text_of(node), hint=hint)
            for cte in with_.expressions:
                if cte.args["alias"].columns:
                    fact = f"column names after `{cte.alias}` are not offered"
                    raise Unsupported(fact, detail=text_of(cte), hint="use AS in its SELECT")
                ctes = {**ctes, cte.alias.lower(): _Cte(cte.this, ctes)}
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes)
        if isinstance(node, exp.Union):
            return self.union(node, ctes)
        return self.select(node, ctes)

    def select(self, node: exp.Select, ctes: Ctes) -> Query:
        """Bind SELECT … FROM … WHERE …."""
        source = node.args.get("from_") or node.args.get("from")
        if source is None:
            hint = "select from a relation of the flow"
            raise Unsupported("a query without FROM is not offered", detail=text_of(node), hint=hint)
        root, scope = self.relation(source.this, ctes)
        for join in node.args.get("joins") or []:
            root, scope = self.join(root, scope, join, ctes)
        where = node.args.get("where")
        if where is not None:
            root = Filter(root, self.predicates(where.this, scope))
        outputs = self.outputs(node, scope)
        distinct = node.args.get("distinct")
        if distinct is None:
            return Query(root, outputs)
        if distinct.args.get("on"):
            raise Unsupported("DISTINCT ON is not offered", detail=text_of(node), hint="DISTINCT of whole rows is")
        return self.distinct(Query(root, outputs))

    def distinct(self, query: Query) -> Query:
        """Each row once."""
        number = next(self.numbers)
        named = tuple((f"{number}.{name}", e) for name, e in query.outputs)
        columns = tuple((i, e.type) for i, e in named)
        for i, kind in columns:
            if not comparable(kind, kind):
                raise TypeMismatch(
                    f"DISTINCT on column `{i.split('.', 1)[1]}` of type {spark_name(kind)}",
                    detail="maps cannot be compared",
                    hint="leave it out of the SELECT, or take values out of it",
                )
        root = Distinct(Project(query.root, named), columns)
        return Query(root, tuple((name, column(f"{number}.{name}", e.type)) for name, e in query.outputs))

    def union(self, node: exp.Union, ctes: Ctes) -> Query:
        """Bind UNION [ALL]; columns go by position, names come from the first part."""
        left, right = self.query(node.left, ctes), self.query(node.right, ctes)
        if len(left.outputs) != len(right.outputs):
            raise TypeMismatch(
                f"UNION of {len(left.outputs)} and {len(right.outputs)} columns",
                detail=text_of(node),
                hint="both parts need the same number of columns",
            )
        number = next(self.numbers)
        try:
            kinds = [common_type(a.type, b.type) for (_, a), (_, b) in zip(left.outputs, right.outputs, strict=True)]
        except TypeMismatch as failure:
            raise TypeMismatch(failure.fact, detail=text_of(node), hint=failure.hint) from failure
        columns = tuple((f"{number}.{name}", kind) for (name, _), kind in zip(left.outputs, kinds, strict=True))
        parts, selected = [], []
        for part in (left, right):
            own = next(self.numbers)
            named = tuple(
                (f"{own}.c{at}", _coerced(e, kind, node))
                for at, ((_, e), kind) in enumerate(zip(part.outputs, kinds, strict=True))
            )
            parts.append(Project(part.root, named))
            selected.append(tuple(i for i, _ in named))
        root = UnionAll(tuple(parts), tuple(selected), columns)
        result = Query(root, tuple((i.split(".", 1)[1], column(i, kind)) for i, kind in columns))
        return self.distinct(result) if node.args.get("distinct") else result

    # -- FROM -------------------------------------------------------------------------------------------------------

    def relation(self, node: exp.Expr, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind one item of FROM."""
        if not isinstance(node, exp.Table | exp.Subquery):
            hint = "a relation or a subquery is"
            raise Unsupported(f"{node.key.upper()} in FROM is not offered", detail=text_of(node), hint=hint)
        refuse_unread_clauses(node)
        if isinstance(node, exp.Table):
            root, scope = self.table(node, ctes)
            for join in node.args.get("joins") or []:  # of a join in parentheses
                root, scope = self.join(root, scope, join, ctes)
            return root, scope
        if not isinstance(node.this, exp.Table):
            return self.inlined(self.query(node.this, ctes), node.alias, node)
        if node.alias:
            raise Unsupported(
                f"an alias for parentheses around relations, `{node.alias}`, is not offered",
                detail=text_of(node),
                hint="name the relations inside, or write a subquery: (SELECT … FROM …) AS name",
            )
        return self.relation(node.this, ctes)

    def table(self, node: exp.Table, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind a name in FROM: a CTE, a view (put in place) or a source."""
        given = node.args.get("alias")
        plain = isinstance(node.this, exp.Identifier) and (given is None or isinstance(given.this, exp.Identifier))
        if node.args.get("db") or not plain:
            raise Unsupported(
                f"`{text_of(node)}` is not a plain name",
                detail=f"in FROM {text_of(node)}",
                hint="relations of a flow have plain names",
            )
        name, alias = node.name, node.alias or node.name
        cte = ctes.get(name.lower())
        if cte is not None:
            return self.inlined(self.query(cte.query, cte.ctes), alias, node)
        relation = self.catalog.get(name)
        kept = any(index.relation.lower() == relation.name.lower() for index in self.catalog.indexes)
        if isinstance(relation, Source) or kept:
            number = next(self.numbers)
            ids = tuple((f"{number}.{field.name}", field.name) for field in relation.schema)
            columns = [Column(alias, n, i, relation.schema.field(n).type) for i, n in ids]
            renamed = self.aliased(columns, node)
            return Scan(relation.name, ids, relation.schema), Scope.of(renamed)
        return self.inlined(self.query(parse_query(relation.query), {}), alias, node)

    def inlined(self, query: Query, alias: str, node: exp.Expr) -> tuple[Node, Scope]:
        """A query in the place of a relation."""
        number = next(self.numbers)
        refuse_doubles([name for name, _ in query.outputs], "in a subquery", node)
        named = tuple((f"{number}.{name}", e) for name, e in query.outputs)
        columns = [Column(alias, name, f"{number}.{name}", e.type) for name, e in query.outputs]
        return Project(query.root, named), Scope.of(self.aliased(columns, node))

    @staticmethod
    def aliased(columns: list[Column], node: exp.Expr) -> list[Column]:
        """Apply the column names of `alias(a, b)`."""
        alias = node.args.get("alias")
        names = [i.name for i in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if not names:
            return columns
        if len(names) != len(columns):
            hint = f"columns: {', '.join(c.name for c in columns)}"
            raise InvalidSql(f"{len(names)} column names for {len(columns)} columns", detail=text_of(node), hint=hint)
        return [Column(c.qualifier, n, c.id, c.type) for c, n in zip(columns, names, strict=True)]

    def join(self, left: Node, scope: Scope, node: exp.Join, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind one JOIN (or comma) with what stands left of it."""
        refuse_unread_clauses(node)
        side, kind, method = node.side.upper(), node.kind.upper(), node.method.upper()
        if side or kind not in ("", "INNER", "CROSS") or method:
            words = " ".join(word for word in (method, side, kind, "JOIN") if word)
            raise Unsupported(f"{words} is not offered yet", detail=text_of(node), hint="INNER JOIN is")
        right, other = self.relation(node.this, ctes)
        scope.refuse_double_qualifiers(other, text_of(node))
        if node.args.get("using"):
            names = [identifier.name for identifier in node.args["using"]]
            predicates, both = self.using(scope, other, names, node)
            return Join(left, right, predicates), both
        both = scope.beside(other)
        on = node.args.get("on")
        return Join(left, right, self.predicates(on, both) if on is not None else ()), both

    def using(self, left: Scope, right: Scope, names: list[str], node: exp.Join) -> tuple[tuple[Predicate, ...], Scope]:
        """Equality of the named columns, each of which the result has once."""
        predicates = []
        for name in names:
            ours = left.find(None, name, text_of(node))
            theirs = right.find(None, name, text_of(node))
            kind = key_type(ours.type, theirs.type, names=(f"left {name}", f"right {name}"))
            sides = (_keyed(column(ours.id, ours.type), kind, node), _keyed(column(theirs.id, theirs.type), kind, node))
            whole = Expression(
                f"{sides[0].sql} = {sides[1].sql}", pa.bool_(), (ours.id, theirs.id), text=f"USING ({name})"
            )
            predicates.append(Predicate(whole, sides))
        return tuple(predicates), left.beside(right, merged=names)

    # -- expressions ------------------------------------------------------------------------------------------------

    def predicates(self, node: exp.Expr, scope: Scope) -> tuple[Predicate, ...]:
        """Split a condition at its ANDs and bind each part."""
        parts = node.flatten() if isinstance(node, exp.And) else [node]
        result: list[Predicate] = []
        for part in parts:
            bare = part.unnest() if isinstance(part, exp.Paren) else part
            if isinstance(bare, exp.And):
                result += self.predicates(bare, scope)
                continue
            refuse_subqueries(bare)
            whole = compile_expression(bare, scope)
            if not (pa.types.is_boolean(whole.type) or pa.types.is_null(whole.type)):
                fact = f"a condition must be boolean, not {spark_name(whole.type)}"
                raise TypeMismatch(fact, detail=text_of(bare), hint="compare it with something")
            result.append(Predicate(whole, self.equality(bare, scope)))
        return tuple(result)

    @staticmethod
    def equality(node: exp.Expr, scope: Scope) -> tuple[Expression, Expression] | None:
        """The two sides of `a = b` where they read different inputs."""
        if not isinstance(node, exp.EQ):
            return None
        sides = compile_expression(node.left, scope), compile_expression(node.right, scope)
        numbers = [{name.split(".", 1)[0] for name in side.columns} for side in sides]
        if not all(numbers) or numbers[0] & numbers[1]:
            return None
        kind = key_type(sides[0].type, sides[1].type, names=(text_of(node.left), text_of(node.right)))
        return _keyed(sides[0], kind, node), _keyed(sides[1], kind, node)

    def outputs(self, node: exp.Select, scope: Scope) -> tuple[tuple[str, Expression], ...]:
        """The SELECT list, stars expanded."""
        result: list[tuple[str, Expression]] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                star = item if isinstance(item, exp.Star) else item.this
                if star.args.get("except_") or star.args.get("except") or star.args.get("replace"):
                    hint = "list the columns"
                    raise Unsupported("* EXCEPT and REPLACE are not offered", detail=text_of(item), hint=hint)
                qualifier = item.table if isinstance(item, exp.Column) else None
                result += [(c.name, column(c.id, c.type)) for c in scope.all(qualifier, text_of(item))]
                continue
            refuse_subqueries(item)
            inner = item.this if isinstance(item, exp.Alias) else item
            expression = compile_expression(inner, scope)
            if pa.types.is_null(expression.type):
                raise TypeMismatch("a column of nothing but NULL has no type", detail=text_of(item), hint="CAST it")
            result.append((item.alias if isinstance(item, exp.Alias) else output_name(item, scope), expression))
        return tuple(result)


@dataclass(frozen=True)
class _Cte:
    query: exp.Query
    ctes: Ctes


def _keyed(side: Expression, kind: pa.DataType, node: exp.Expr) -> Expression:
    """A side of an equality in the type that both sides are compared in; integers of all widths hash alike."""
    return side if is_integer(side.type) and is_integer(kind) else _coerced(side, kind, node)


def _coerced(side: Expression, kind: pa.DataType, node: exp.Expr) -> Expression:
    """An expression as another type that Spark's rules chose. A wider integer column needs no evaluation."""
    if side.type == kind:
        return side
    if side.is_column and is_integer(side.type) and is_integer(kind):
        return Expression(side.sql, kind, side.columns, text=side.text)
    term = coerce(Term(side.sql, side.type, side.columns, throws=side.throws), kind, node)
    return Expression(term.sql, kind, term.columns, text=side.text, throws=term.throws)
