"""Bind UNION, INTERSECT and EXCEPT [ALL]: two queries whose columns correspond by position.

    SELECT a FROM t UNION SELECT b FROM u   →  SELECT DISTINCT * FROM (SELECT a FROM t UNION ALL SELECT b AS a FROM u)

INTERSECT, EXCEPT and their ALL forms are operations of the plan. Both sides are cast to their common types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import TypeMismatch
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Project, Query, SetOperation
from rejoinder.sql.bind.column_lists import with_item_names
from rejoinder.sql.bind.predicates import converted
from rejoinder.sql.parse.clauses import distinct_names, text_of
from rejoinder.sql.types.spark_types import common_type, comparable, spark_name

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes


BRANCH = "branch"
"""Marks a SELECT that is a side of a set operation: a NULL in its list has the type of the other side."""


def bind_set_operation(binder: Binder, node: exp.SetOperation, ctes: Ctes) -> Query:
    """Bind a set operation. The names of its columns are those of the left side."""
    is_union, is_distinct = isinstance(node, exp.Union), bool(node.args.get("distinct"))
    clause = f"{node.key.upper()}{'' if is_distinct and not is_union else ' ALL'}"
    left = binder.query(_as_branch(node.left), ctes)
    unused = [f"column {at}" for at in range(len(left.outputs))]  # names that nothing in the query can mean
    right = binder.query(_as_branch(with_item_names(node.right, unused)), ctes)
    if len(left.outputs) != len(right.outputs):
        raise TypeMismatch(
            f"{node.key.upper()} of {len(left.outputs)} and {len(right.outputs)} columns",
            detail=text_of(node),
            hint="both sides need the same number of columns",
        )
    number = next(binder.numbers)
    try:
        kinds = [common_type(a.type, b.type) for (_, a), (_, b) in zip(left.outputs, right.outputs, strict=True)]
    except TypeMismatch as failure:
        raise TypeMismatch(failure.fact, detail=text_of(node), hint=failure.hint) from failure
    if any(pa.types.is_null(kind) for kind in kinds) and BRANCH not in node.meta:
        raise untyped(text_of(node))
    names = [name for name, _ in left.outputs]
    ids = [column_text(number, name) for name in distinct_names(names)]
    columns = tuple(zip(ids, kinds, strict=True))
    parts, selected = [], []
    for part in (left, right):
        own = next(binder.numbers)
        named = tuple(
            (column_text(own, f"c{position}"), converted(e, kind, node))
            for position, ((_, e), kind) in enumerate(zip(part.outputs, kinds, strict=True))
        )
        parts.append(Project(part.root, named))
        selected.append(tuple(i for i, _ in named))
    if not is_union:
        refuse_incomparable(clause, columns)
    root = SetOperation(clause, tuple(parts), tuple(selected), columns)
    result = Query(root, tuple((name, column(i, kind)) for name, (i, kind) in zip(names, columns, strict=True)))
    return binder.distinct(result) if is_union and is_distinct else result


def _as_branch(side: exp.Query) -> exp.Query:
    """Mark a SELECT or a set operation in which NULL needs no type. DISTINCT and LIMIT compare rows: they need it."""
    inner: exp.Expr = side
    while isinstance(inner, exp.Subquery) and not inner.args.get("limit"):
        inner = inner.this
    compares = inner.args.get("limit") or inner.args.get("offset") or inner.args.get("distinct")
    if not compares or (isinstance(inner, exp.SetOperation) and not inner.args.get("limit")):
        inner.meta[BRANCH] = True
    return side


def untyped(place: str) -> TypeMismatch:
    """The error for a column of NULL without a type."""
    return TypeMismatch("NULL has no type", detail=place, hint="CAST it, as in CAST(NULL AS STRING)")


def refuse_incomparable(clause: str, columns: Sequence[tuple[str, pa.DataType]]) -> None:
    """Raise `TypeMismatch` if an operation that compares rows has a column whose values cannot be compared."""
    for i, kind in columns:
        if not comparable(kind, kind):
            raise TypeMismatch(
                f"{clause} on column `{i.split('.', 1)[1]}` of type {spark_name(kind)}",
                detail="maps cannot be compared",
                hint="remove it from the SELECT list, or select values from it",
            )
