"""The binder: a parsed query becomes a logical plan, in which every name is resolved and every expression has a type.

It refuses what is not supported, with a pointer into the text, so that nothing of a query fails at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.host.caps import cap_reached, caps
from rejoinder.ir.catalog import Catalog, Source, View
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.identities import column_text, side_output
from rejoinder.ir.logical import Distinct, Filter, Node, Project, Query, Scan, Window
from rejoinder.plan.operations.set_operations import SET_OPERATIONS
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.sql.bind.column_lists import with_column_names, with_item_names
from rejoinder.sql.bind.emit_clause import (
    defers_emission,
    emits_final,
    resolve_emit_time,
)
from rejoinder.sql.bind.groups.group_by import bind_groups, is_grouped
from rejoinder.sql.bind.query_parser import parse_query
from rejoinder.sql.bind.relations.arrival_joins import is_at_arrival, refuse_changing
from rejoinder.sql.bind.relations.as_of_joins import event_time_of, has_version
from rejoinder.sql.bind.relations.constant_rows import NO_COLUMNS, bind_values, one_row
from rejoinder.sql.bind.relations.enrich_call import bind_enrichment, is_enrichment
from rejoinder.sql.bind.relations.generators import (
    bind_generator,
    bind_generator_join,
    bind_selected,
    generator_name,
    is_lateral_generator,
)
from rejoinder.sql.bind.relations.laterals import bind_lateral, lateral_without_left_side
from rejoinder.sql.bind.relations.pivots import bind_pivot
from rejoinder.sql.bind.relations.repeated_rows import repeat_rows
from rejoinder.sql.bind.relations.table_functions import bind_table_function, is_table_function
from rejoinder.sql.bind.scope import Column, Scope, Side
from rejoinder.sql.bind.select_list import plain_select_list
from rejoinder.sql.bind.set_queries import BRANCH, bind_set_operation, refuse_incomparable, untyped
from rejoinder.sql.bind.subqueries.conditions import bind_where
from rejoinder.sql.bind.subqueries.join_conditions import combine_with_subqueries
from rejoinder.sql.bind.subqueries.subquery_values import without_subqueries
from rejoinder.sql.bind.temporal_filters import bind_current
from rejoinder.sql.bind.windows.order_and_limit import has_limit, with_limit, with_positions, without_order
from rejoinder.sql.bind.windows.select_windows import SelectWindows, bind_qualify, no_windows
from rejoinder.sql.bind.windows.window_syntax import has_windows, with_named_windows
from rejoinder.sql.functions.expression_compiler import compile_expression, compile_window, output_name
from rejoinder.sql.functions.time.windows import ColumnBounds, ends_of_column
from rejoinder.sql.parse.clauses import (
    ONE_OF_EACH,
    distinct_names,
    refuse_recursion,
    refuse_subqueries,
    refuse_unread_clauses,
    relation_name,
    text_of,
)
from rejoinder.sql.parse.foreign_spellings import foreign_relation

Ctes = Mapping[str, "_Cte"]


@dataclass
class Binder:
    """Binds one query."""

    catalog: Catalog
    kept: frozenset[str] = frozenset()
    """Views that are scanned instead of inlined."""
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers of scans and projections, which make column ids unique."""
    is_final: bool = False
    """Whether the query ends in EMIT FINAL."""
    relations: int = 0
    """How many relations the query has read so far, counted for `max_query_relations`."""
    outer: Scope | None = None
    """The scope of the outer query, while a subquery is bound."""
    has_subqueries: bool = False
    """Whether a part of the query was bound inside of another."""

    @contextmanager
    def inside(self, scope: Scope | None) -> Iterator[None]:
        """Bind queries in which the columns of a scope resolve; None: no outer query, as in a view."""
        outer, self.outer = self.outer, scope
        self.has_subqueries |= scope is not None
        try:
            yield
        finally:
            self.outer = outer

    def query(self, node: exp.Expr, ctes: Ctes) -> Query:
        """Bind a query expression."""
        if isinstance(node, exp.Values):
            return bind_values(node, self.numbers)
        if not isinstance(node, exp.Select | exp.SetOperation | exp.Subquery):
            hint = f"SELECT, {', '.join(SET_OPERATIONS)} are"
            raise Unsupported(f"{node.key.upper()} is not supported", detail=text_of(node), hint=hint)
        refuse_unread_clauses(node)
        ctes = self.with_ctes(node, ctes)
        node = with_limit(node) if has_limit(node) else without_order(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes)
        if isinstance(node, exp.SetOperation):
            return bind_set_operation(self, node, ctes)
        assert isinstance(node, exp.Select)
        return self.select(node, ctes)

    def with_ctes(self, node: exp.Expr, ctes: Ctes) -> Ctes:
        """Add the names of a query's WITH."""
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is not None:
            for cte in with_.expressions:
                is_known = cte.alias.lower() in ctes or self.catalog.find(cte.alias) is not None
                if with_.args.get("recursive") or not is_known:
                    refuse_recursion(cte)
                names = tuple(name.name for name in cte.args["alias"].columns)
                ctes = {**ctes, cte.alias.lower(): _Cte(with_item_names(cte.this, names), ctes, names, self.outer)}
        return ctes

    def select(self, node: exp.Select, ctes: Ctes) -> Query:
        """Bind SELECT … FROM … WHERE …."""
        is_branch = BRANCH in node.meta
        root, scope = self.sources(node, ctes)
        node = with_positions(plain_select_list(node, scope), scope)
        node = resolve_emit_time(with_named_windows(node), scope)
        where = node.args.get("where")
        root, scope = repeat_rows(root, scope, [where, node.args.get("group"), *node.expressions], self.numbers)
        if where is not None:
            root, condition = bind_current(root, scope, where.this, self.numbers)
            if condition is not None:
                root, scope = bind_where(self, root, scope, condition, ctes)
        if is_grouped(node):
            root, scope, node = without_subqueries(self, root, scope, node, ctes, in_aggregates=True)
            root, scope, node = bind_groups(root, scope, node, self.numbers)
            if node.args.get("having"):
                root, scope = bind_where(self, root, scope, node.args["having"].this, ctes)
        root, scope, node = without_subqueries(self, root, scope, node, ctes)
        root, scope, node = bind_selected(root, scope, node, self.numbers)
        functions = SelectWindows(root, scope, self.numbers) if has_windows(node) else None
        if functions is not None:
            node, scope = functions.rewritten(node), functions.scope
        elif node.args.get("qualify"):
            raise no_windows(node)
        outputs, windows = self.outputs(node, scope, may_be_null=is_branch), self.windows(node, scope)
        if functions is not None:
            predicates = bind_qualify(node, scope)
            ends = [end for window in windows.values() for end in (window.start, window.end)]
            root = functions.plan([*(e for _, e in outputs), *ends, *(p.expression for p in predicates)])
            root = Filter(root, predicates) if predicates else root
        distinct = node.args.get("distinct")
        if distinct is None:
            return Query(root, outputs, windows)
        if distinct.args.get("on"):
            raise Unsupported("DISTINCT ON is not supported", detail=text_of(node), hint=ONE_OF_EACH)
        return self.distinct(Query(root, outputs))

    def sources(self, node: exp.Select, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind FROM with its joins."""
        source = node.args.get("from_") or node.args.get("from")
        root, scope = (one_row(self.numbers), NO_COLUMNS) if source is None else self.relation(source.this, ctes)
        scope = scope.inside(self.outer)
        for join in node.args.get("joins") or []:
            root, scope = self.join(root, scope, join, ctes)
        for view in node.args.get("laterals") or []:
            root, scope = bind_generator(root, scope, view, self.numbers)
        return root, scope

    def distinct(self, query: Query) -> Query:
        """Remove duplicate rows from a query."""
        number = next(self.numbers)
        ids = [column_text(number, name) for name in distinct_names([name for name, _ in query.outputs])]
        named = tuple((i, e) for i, (_, e) in zip(ids, query.outputs, strict=True))
        columns = tuple((i, e.type) for i, e in named)
        refuse_incomparable("DISTINCT", columns)
        root = Distinct(Project(query.root, named), columns)
        return Query(root, tuple((name, column(i, e.type)) for i, (name, e) in zip(ids, query.outputs, strict=True)))

    # -- FROM -------------------------------------------------------------------------------------------------------

    def relation(self, node: exp.Expr, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind one item of FROM."""
        if isinstance(node, exp.Values):
            return self.inlined(bind_values(node, self.numbers), node.alias, node)
        if is_lateral_generator(node):
            return bind_generator(one_row(self.numbers), NO_COLUMNS, node, self.numbers)
        if isinstance(node, exp.Lateral):
            raise lateral_without_left_side(node)
        if not isinstance(node, exp.Table | exp.Subquery):
            hint = "a relation or a subquery is"
            raise Unsupported(f"{node.key.upper()} in FROM is not supported", detail=text_of(node), hint=hint)
        refuse_unread_clauses(node)
        root, scope = self.table(node, ctes) if isinstance(node, exp.Table) else self.parenthesised(node, ctes)
        for join in node.args.get("joins") or []:  # of a join in parentheses
            root, scope = self.join(root, scope, join, ctes)
        for pivot in node.args.get("pivots") or []:
            root, scope = self.inlined(bind_pivot(root, scope, pivot, self.numbers), pivot.alias, pivot)
        return root, scope

    def parenthesised(self, node: exp.Subquery, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind a subquery in FROM, or parentheses around a join."""
        inner = node.this
        if not (isinstance(inner, exp.Table) or (isinstance(inner, exp.Subquery) and inner.args.get("joins"))):
            alias = node.args.get("alias")
            names = [i.name for i in alias.columns] if isinstance(alias, exp.TableAlias) else []
            return self.inlined(self.query(with_item_names(inner, names), ctes), node.alias, node)
        if node.alias:
            raise Unsupported(
                f"an alias for parentheses around relations, `{node.alias}`, is not supported",
                detail=text_of(node),
                hint="name the relations inside, or write a subquery: (SELECT … FROM …) AS name",
            )
        return self.relation(inner, ctes)

    def table(self, node: exp.Table, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind a name in FROM: a CTE, a view or a source. CTEs and views are inlined."""
        self.relations += 1
        if self.relations > caps().max_query_relations:
            raise cap_reached("a query reads too many relations", "max_query_relations", f"at `{text_of(node)}`")
        if generator_name(node.this) is not None:
            return bind_generator(one_row(self.numbers), NO_COLUMNS, node, self.numbers)
        if is_enrichment(node):
            return bind_enrichment(self, node, ctes)
        if is_table_function(node):
            return bind_table_function(self, node, ctes)
        named = node.args.get("alias")
        plain = isinstance(node.this, exp.Identifier) and (named is None or isinstance(named.this, exp.Identifier))
        foreign = node.args.get("db") is not None and side_output(relation_name(node)) is None
        if node.args.get("catalog") or foreign or not plain:
            raise Unsupported(
                f"`{text_of(node)}` is not a plain name",
                detail=f"in FROM {text_of(node)}",
                hint="relations of a flow have plain names; side outputs are view.late and source.rejected",
            )
        joined = node.parent if isinstance(node.parent, exp.Join) else None
        if node.args.get("version") and not (joined and (has_version(joined) or is_at_arrival(joined))):
            raise Unsupported(
                "AS OF is supported on the right side of a join only",
                detail=text_of(node),
                hint="… JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON …; flow.table(view, as_of=…) reads a past epoch",
            )
        name, alias = relation_name(node), node.alias or node.name
        cte = ctes.get(name.lower())
        if cte is not None:
            with self.inside(cte.outer):
                query = self.query(cte.query, cte.ctes)
            return self.inlined(with_column_names(query, cte.names, name), alias, node)
        refusal = None if self.catalog.find(name) else foreign_relation(name, text_of(node))
        if refusal is not None:
            raise refusal
        relation = readable(self.catalog, name)
        kept = any(index.relation.lower() == relation.name.lower() for index in self.catalog.indexes)
        kept |= relation.name in self.kept
        if isinstance(relation, Source) or kept:
            number = next(self.numbers)
            ids = tuple((column_text(number, field.name), field.name) for field in relation.schema)
            scan: Node = Scan(relation.relation, ids, relation.schema)
            windows = {} if isinstance(relation, Source) else self.view(relation).windows
            ends = {name: ColumnBounds.of(column_text(number, name), windows[name].size) for name in windows}
            if ends:
                outputs = [(i, column(i, relation.schema.field(n).type)) for i, n in ids]
                for name, window in windows.items():
                    times = ends_of_column(column_text(number, name), window.start.type, window.size)
                    outputs += zip((ends[name].start, ends[name].end), times, strict=True)
                scan = Project(scan, tuple(outputs))
            columns = [Column(alias, n, i, relation.schema.field(n).type, bounds=ends.get(n)) for i, n in ids]
            return scan, Scope.of(self.aliased(columns, node))
        if defers_emission(relation.query) and not (self.is_final and emits_final(relation.query)):
            raise Unsupported(
                f"`{relation.name}` has an EMIT clause, and not every view can read it",
                detail=f"{relation.name}: {relation.query}",
                hint="only a view with EMIT FINAL can read a view with EMIT FINAL; otherwise remove EMIT from "
                f"`{relation.name}`, and add it to the last view",
            )
        return self.inlined(self.view(relation), alias, node)

    def view(self, view: View) -> Query:
        """Bind the query of a view, to inline it."""
        with self.inside(None):
            query = self.query(with_item_names(parse_query(view.query, self.catalog.functions), view.names), {})
        return with_column_names(query, view.names, view.name)

    def inlined(self, query: Query, alias: str, node: exp.Expr) -> tuple[Node, Scope]:
        """Inline a query as an item of FROM."""
        number = next(self.numbers)
        ids = [column_text(number, name) for name in distinct_names([name for name, _ in query.outputs])]
        named = [(i, e) for i, (_, e) in zip(ids, query.outputs, strict=True)]
        bounds = {}
        for name, window in query.windows.items():
            bounds[name] = ColumnBounds.of(column_text(number, name), window.size)
            named += [(bounds[name].start, window.start), (bounds[name].end, window.end)]
        columns = [
            Column(alias, name, i, e.type, bounds=bounds.get(name))
            for i, (name, e) in zip(ids, query.outputs, strict=True)
        ]
        return Project(query.root, tuple(named)), Scope.of(self.aliased(columns, node))

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
        return [replace(c, name=n) for c, n in zip(columns, names, strict=True)]

    def join(self, left: Node, scope: Scope, node: exp.Join, ctes: Ctes) -> tuple[Node, Scope]:
        """Bind one JOIN (or comma); `left` is everything to its left."""
        refuse_unread_clauses(node)
        if is_lateral_generator(node.this):
            return bind_generator_join(left, scope, node, self.numbers)
        if isinstance(node.this, exp.Lateral):
            right, other = bind_lateral(self, scope, node, ctes)
        else:
            right, other = self.relation(node.this, ctes)
        if is_at_arrival(node):
            self.refuse_changing(left, "the left side of a join as of the current time", node)
            if node.side.upper() == "FULL":
                self.refuse_changing(right, "the right side of a FULL JOIN as of the current time", node)
        versions = readable(self.catalog, relation_name(node.this)) if has_version(node) else None
        event_time = None if versions is None else event_time_of(node, versions)
        joined = combine_with_subqueries(self, Side(left, scope), Side(right, other), node, ctes, event_time)
        return joined.root, joined.scope

    def refuse_changing(self, side: Node, which: str, node: exp.Expr) -> None:
        """Raise `Unsupported` unless a relation is append-only."""
        refuse_changing(side, which, text_of(node), self.is_stream)

    def is_stream(self, relation: str) -> bool:
        """Return whether a source or view is append-only."""
        definition = readable(self.catalog, relation)
        if isinstance(definition, Source):
            return definition.kind == "stream"
        try:
            self.refuse_changing(self.view(definition).root, relation, parse_query(definition.query))
        except Unsupported:
            return False
        return True

    # -- expressions ------------------------------------------------------------------------------------------------

    def outputs(self, node: exp.Select, scope: Scope, *, may_be_null: bool) -> tuple[tuple[str, Expression], ...]:
        """Bind the SELECT list; expand stars. `may_be_null`: a column may be a NULL without a type."""
        result: list[tuple[str, Expression]] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                qualifier = item.table if isinstance(item, exp.Column) else None
                result += [(c.name, column(c.id, c.type)) for c in scope.all(qualifier, text_of(item))]
                continue
            refuse_subqueries(item)
            inner = item.this if isinstance(item, exp.Alias) else item
            expression = compile_expression(inner, scope)
            if pa.types.is_null(expression.type) and not may_be_null:
                raise untyped(text_of(item))
            result.append((item.alias if isinstance(item, exp.Alias) else output_name(item, scope), expression))
        return tuple(result)

    @staticmethod
    def windows(node: exp.Select, scope: Scope) -> dict[str, Window]:
        """Return the start and end of each window in a SELECT list, by the name of its column."""
        result = {}
        for item in node.expressions:
            if item.is_star:
                listed = scope.all(item.table or None if isinstance(item, exp.Column) else None, text_of(item))
                for c, bounds in ((c, c.bounds) for c in listed if c.bounds is not None):
                    start, end = (column(i, c.type.field("start").type) for i in (bounds.start, bounds.end))
                    result[c.name] = Window(start, end, bounds.size)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            window = compile_window(inner, scope)
            if window is not None:
                result[item.alias if isinstance(item, exp.Alias) else output_name(item, scope)] = window
        return result


@dataclass(frozen=True)
class _Cte:
    query: exp.Query
    ctes: Ctes
    names: tuple[str, ...] = ()
    outer: Scope | None = None
