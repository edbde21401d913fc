"""Table functions in FROM: windows as columns, and watermarks declared by a query.

    TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE)          -- columns window_start and window_end
    HOP(TABLE orders, DESCRIPTOR(ts), slide, size)                   -- the same; a row once per window
    CUMULATE(TABLE orders, DESCRIPTOR(ts), step, size)               -- the same; windows that grow by the step
    SESSION(TABLE orders PARTITION BY user, DESCRIPTOR(ts), gap)     -- the same; the session of the row
    IMPOSE_ORDER(TABLE orders, DESCRIPTOR(ts), INTERVAL 5 SECONDS)   -- a watermark of ts, 5 seconds behind

TUMBLE and HOP become columns of a subquery:

    FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), size) AS o
    →  FROM (SELECT *, start of TUMBLE(ts, size) AS window_start, end of it AS window_end FROM orders) AS o

The argument is a relation (the word TABLE is optional), a query in parentheses, or another table function. The call
itself can be written in TABLE(…).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import InvalidSql, Unsupported, near_misses
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.logical import Filter, Node, Project, Query, Scan, Window
from rejoinder.sql.bind.relations.conversions import FORMS as CONVERSIONS
from rejoinder.sql.bind.relations.conversions import converted, relation_of
from rejoinder.sql.bind.relations.repeated_rows import repeat_rows
from rejoinder.sql.bind.relations.session_rows import with_sessions
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.bind.watermark_delay import delay_of
from rejoinder.sql.functions.expression_compiler import compile_window
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.dialect import PARTITION_BY
from rejoinder.sql.parse.foreign_names import foreign_function

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

FORMS = {
    "TUMBLE": "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
    "HOP": "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)",
    "CUMULATE": "CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 5 MINUTES)",
    "SESSION": "SESSION(TABLE orders PARTITION BY user, DESCRIPTOR(ts), INTERVAL 5 MINUTES)",
    "IMPOSE_ORDER": "IMPOSE_ORDER(TABLE orders, DESCRIPTOR(ts), INTERVAL 5 SECONDS)",
}


_FOREIGN = {
    "RANGE": "write the rows: VALUES (0), (1), (2), or explode(sequence(0, 2))",
    "STREAM": "remove STREAM(…): a view follows every input that it reads",
}


def is_table_function(node: exp.Table) -> bool:
    """Return whether an item of FROM is a function call."""
    return isinstance(node.this, exp.Func)


def bind_table_function(binder: Binder, node: exp.Table, ctes: Ctes) -> tuple[Node, Scope]:
    """Bind a table function. Raises a `PlanningError` that shows the syntax."""
    call = _call(node)
    name = call.name.upper() if isinstance(call, exp.Anonymous) else call.key.upper()
    if name not in FORMS and name not in CONVERSIONS:
        raise Unsupported(
            f"{name} in FROM is not supported",
            detail=text_of(node),
            hint=_FOREIGN.get(name)
            or foreign_function(name)
            or near_misses(name, [*FORMS, *CONVERSIONS])
            or f"functions over relations: {', '.join((*FORMS.values(), *CONVERSIONS.values()))}",
        )
    partition: Sequence[exp.Expr] = ()
    if name not in CONVERSIONS:
        call, partition = _without_partition(call, name)
    relation = relation_of(call, name) if name in CONVERSIONS else _arguments(call, name)[0]
    if isinstance(relation, exp.Query) and not isinstance(relation, exp.Subquery):
        relation = exp.Subquery(this=relation)
    root, scope = binder.relation(relation, ctes)
    alias = node.alias or relation.alias_or_name or next(iter({c.qualifier for c in scope.columns}), "")
    if name in CONVERSIONS:
        return binder.inlined(converted(binder, _query(root, scope), scope, call, name), alias, node)
    _, time, lengths = _arguments(call, name)
    if name == "IMPOSE_ORDER":
        return binder.inlined(_query(_ordered(root, scope, time, lengths[0], call), scope), alias, node)
    window = exp.Anonymous(this=name, expressions=[time.copy(), *(length.copy() for length in lengths)])
    if name == "SESSION":
        root, start, end = with_sessions(root, scope, window, partition, binder.numbers)
    else:
        root, scope = repeat_rows(root, scope, [window], binder.numbers)
        ends = compile_window(window, scope)
        assert ends is not None
        start, end = ends.start, ends.end
    query = _query(root, scope)
    added = (("window_start", start), ("window_end", end))
    return binder.inlined(replace(query, outputs=(*query.outputs, *added)), alias, node)


def _call(node: exp.Table) -> exp.Expr:
    """Return the call inside TABLE(…)."""
    call: exp.Expr = node.this
    while isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE" and len(call.expressions) == 1:
        call = call.expressions[0]
    return call


def _without_partition(call: exp.Expr, name: str) -> tuple[exp.Expr, Sequence[exp.Expr]]:
    """Return the call without PARTITION BY after its relation, and the expressions of that clause."""
    parts = [part for part in call.expressions if isinstance(part, exp.Anonymous) and part.name == PARTITION_BY]
    if not parts:
        return call, ()
    if name != "SESSION":
        raise InvalidSql(
            f"{name} takes no PARTITION BY",
            detail=text_of(call),
            hint=f"its windows are the same for all rows; write {FORMS[name]}",
        )
    rest = [part.copy() for part in call.expressions if part not in parts]
    return exp.Anonymous(this=call.this, expressions=rest), parts[0].expressions


def _arguments(call: exp.Expr, name: str) -> tuple[exp.Expr, exp.Column, Sequence[exp.Expr]]:
    """Return the relation, the column in DESCRIPTOR, and the remaining arguments."""
    form = f"write {FORMS[name]}"
    arguments = list(call.expressions)
    if any(isinstance(argument, exp.Kwarg) for argument in arguments):
        fact = f"named arguments of {name} are not supported"
        raise Unsupported(fact, detail=text_of(call), hint=f"pass arguments by position: {form}")
    wanted = 4 if name in ("HOP", "CUMULATE") else 3
    if len(arguments) != wanted + (name in ("TUMBLE", "HOP") and len(arguments) > wanted):
        raise InvalidSql(f"{name} takes {wanted} arguments, not {len(arguments)}", detail=text_of(call), hint=form)
    relation, descriptor, *lengths = arguments
    if isinstance(relation, exp.Column) and len(relation.parts) == 1:
        relation = exp.Table(this=relation.this.copy())  # a bare name, without TABLE before it
    if not isinstance(relation, exp.Table | exp.Query):
        raise InvalidSql(f"the first argument of {name} is a relation", detail=text_of(call), hint=form)
    if isinstance(descriptor, exp.Column) and len(descriptor.parts) == 1:
        return relation, descriptor, lengths  # RisingWave's form, without DESCRIPTOR
    named = descriptor.expressions if isinstance(descriptor, exp.Anonymous) else []
    is_descriptor = isinstance(descriptor, exp.Anonymous) and descriptor.name.upper() == "DESCRIPTOR"
    if not is_descriptor or len(named) != 1 or not isinstance(named[0], exp.Column):
        raise InvalidSql(f"the second argument of {name} names one column", detail=text_of(call), hint=form)
    return relation, named[0], lengths


def _query(root: Node, scope: Scope) -> Query:
    """Return the columns of a scope as a query, with the starts and ends of its windows."""
    listed = scope.all(None, "")
    windows = {}
    for c in listed:
        if c.bounds is not None:
            start, end = (column(i, c.type.field("start").type) for i in (c.bounds.start, c.bounds.end))
            windows[c.name] = Window(start, end, c.bounds.size)
    return Query(root, tuple((c.name, column(c.id, c.type)) for c in listed), windows)


def _ordered(root: Node, scope: Scope, time: exp.Column, lag: exp.Expr, call: exp.Expr) -> Node:
    """Declare a watermark on the scan that a column comes from."""
    identifier, _ = scope.resolve(time)
    ordered = _imposed(root, identifier, text_of(lag))
    if ordered is None:
        raise Unsupported(
            f"IMPOSE_ORDER on `{text_of(time)}`, which is not a plain column of one stream",
            detail=text_of(call),
            hint="impose the order on the stream itself, in a view that others read: "
            "CREATE VIEW ordered AS SELECT * FROM IMPOSE_ORDER(TABLE stream, DESCRIPTOR(column), lag)",
        )
    return ordered


def _imposed(node: Node, identifier: str, lag: str) -> Node | None:
    match node:
        case Scan():
            name = dict(node.columns)[identifier]
            delay = delay_of(str(node.relation), name, node.schema, lag, "IMPOSE_ORDER")
            assert delay is not None
            return replace(node, imposed=tuple(sorted({**dict(node.imposed), name: delay}.items())))
        case Filter():
            inner = _imposed(node.input, identifier, lag)
            return None if inner is None else replace(node, input=inner)
        case Project():
            source = dict(node.outputs)[identifier]
            inner = _imposed(node.input, source.columns[0], lag) if source.is_column else None
            return None if inner is None else replace(node, input=inner)
        case _:
            return None
