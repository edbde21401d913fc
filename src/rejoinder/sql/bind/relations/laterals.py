"""LATERAL: a subquery in FROM that names columns of the relations left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.logical import Node
from rejoinder.sql.bind.column_lists import with_item_names
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.parse.clauses import text_of

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

_SUPPORTED = ("", "INNER", "CROSS", "LEFT", "OUTER")


def bind_lateral(binder: Binder, left: Scope, join: exp.Join, ctes: Ctes) -> tuple[Node, Scope]:
    """Bind the right side of a join with LATERAL, which sees the columns of the left one. Raises a `PlanningError`."""
    node = join.this
    if not isinstance(node.this, exp.Subquery):
        raise Unsupported(
            "LATERAL without a subquery is not supported", detail=text_of(node), hint="write LATERAL (SELECT …) AS name"
        )
    words = {join.side.upper(), join.kind.upper(), join.method.upper()} - {""}
    if not words <= set(_SUPPORTED) or (join.kind.upper() == "OUTER" and join.side.upper() != "LEFT"):
        listed = " ".join(word.upper() for word in (join.method, join.side, join.kind) if word)
        raise Unsupported(
            f"{listed} JOIN LATERAL is not supported",
            detail=text_of(join),
            hint="JOIN LATERAL and LEFT JOIN LATERAL are: the subquery is computed for each row of the left side",
        )
    alias = node.args.get("alias")
    names = [i.name for i in alias.columns] if isinstance(alias, exp.TableAlias) else []
    with binder.inside(left):
        query = binder.query(with_item_names(node.this.this, names), ctes)
    return binder.inlined(query, node.alias, node)


def lateral_without_left_side(node: exp.Lateral) -> InvalidSql:
    """Make the error for LATERAL with nothing left of it."""
    return InvalidSql(
        "LATERAL has no relation left of it",
        detail=text_of(node),
        hint="write FROM relation, LATERAL (SELECT …) AS name",
    )
