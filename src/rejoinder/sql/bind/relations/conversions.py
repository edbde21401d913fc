"""Table functions that turn a stream into a table (LATEST) and a table into a stream (CHANGES).

    LATEST(TABLE clicks, DESCRIPTOR(user))                  -- the last row of each user, in order of arrival
    LATEST(TABLE clicks, DESCRIPTOR(user), DESCRIPTOR(ts))  -- by time; by arrival where times are equal
    CHANGES(TABLE prices)                                   -- its changes as rows, with _undo, _epoch and _emit_time

The input of LATEST and the result of CHANGES are append-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Latest, Query, Records
from rejoinder.plan.blocks.normal_form import RECORDED
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.parse.clauses import refuse_duplicate_names, text_of
from rejoinder.sql.types.spark_types import TIMESTAMP, comparable, spark_name

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder

FORMS = {
    "CHANGES": "CHANGES(TABLE prices)",
    "LATEST": "LATEST(TABLE clicks, DESCRIPTOR(user)) or LATEST(TABLE clicks, DESCRIPTOR(user), DESCRIPTOR(ts))",
}


def relation_of(call: exp.Expr, name: str) -> exp.Expr:
    """Return the relation argument of a call. Raises `InvalidSql` if the arguments are not those of the function."""
    arguments = list(call.expressions)
    most = 1 if name == "CHANGES" else 3
    if not min(most, 2) <= len(arguments) <= most or not isinstance(arguments[0], exp.Table | exp.Query):
        raise InvalidSql(f"wrong arguments of {name}", detail=text_of(call), hint=f"write {FORMS[name]}")
    return arguments[0]


def converted(binder: Binder, query: Query, scope: Scope, call: exp.Expr, name: str) -> Query:
    """Apply LATEST or CHANGES to a query."""
    columns = tuple(scope.carried().items())
    if name == "CHANGES":
        return _changes(query, columns, next(binder.numbers), call)
    binder.refuse_changing(query.root, "the input of LATEST", call)
    _, *named = call.expressions
    key = _described(named[0], scope, call)
    order = _described(named[1], scope, call) if len(named) > 1 else ()
    for identifier in (*key, *order):
        kind = dict(columns)[identifier]
        if not comparable(kind, kind):
            raise TypeMismatch(
                f"LATEST by column `{identifier.split('.', 1)[1]}` of type {spark_name(kind)}",
                detail=text_of(call),
                hint="use a column whose values can be compared",
            )
    if len(order) > 1:
        fact = "LATEST orders by one column"
        raise InvalidSql(fact, detail=text_of(call), hint=f"write {FORMS[name]}")
    latest = Latest(query.root, columns, key, order[0] if order else None)
    return Query(latest, query.outputs, query.windows)


def _changes(query: Query, columns: tuple[tuple[str, pa.DataType], ...], number: int, call: exp.Expr) -> Query:
    kinds = (pa.bool_(), pa.int64(), TIMESTAMP)
    system = tuple((column_text(number, name), kind) for name, kind in zip(RECORDED, kinds, strict=True))
    added = tuple((name, column(i, kind)) for name, (i, kind) in zip(RECORDED, system, strict=True))
    refuse_duplicate_names([name for name, _ in (*query.outputs, *added)], "in CHANGES", call)
    return Query(Records(query.root, columns, system), (*query.outputs, *added), query.windows)


def _described(node: exp.Expr, scope: Scope, call: exp.Expr) -> tuple[str, ...]:
    """Return the ids of the columns that a DESCRIPTOR names."""
    named = node.expressions if isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR" else []
    if not named or not all(isinstance(column, exp.Column) for column in named):
        raise InvalidSql("LATEST takes columns as DESCRIPTOR(…)", detail=text_of(call), hint=f"write {FORMS['LATEST']}")
    return tuple(scope.resolve(column)[0] for column in named)
