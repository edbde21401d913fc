"""A tree after unnesting as SQL: what is joined, grouped and compared. Projections are left out."""

from __future__ import annotations

import re

from rejoinder.ir.logical import (
    Aggregate,
    AtMostOne,
    Distinct,
    Filter,
    Join,
    Node,
    Predicate,
    Project,
    Scan,
    SetOperation,
)
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.plan.unnest.tree_columns import free_columns, inputs_of
from rejoinder.sql.bind.bind_query import bind
from tests.unit.sql.trees import CATALOG

_IDENTIFIER = re.compile(r'"([^"]+)"')


def unnested(query: str) -> str:
    """The relations that a query is made of. No join of them reads its left side on its right one."""
    root = bind(query, CATALOG).root
    assert not free_columns(root)
    _refuse_dependent(root)
    names: dict[str, str] = {}
    text = _text(root, names)
    return _IDENTIFIER.sub(lambda match: names.get(match[1], match[1].split(".", 1)[-1]), text)


def _refuse_dependent(node: Node) -> None:
    for part in inputs_of(node):
        assert not free_columns(part), "a part of the tree reads columns that it does not have"
        _refuse_dependent(part)


def _text(node: Node, names: dict[str, str]) -> str:
    match node:
        case Scan():
            names.update({identifier: f"{node.relation}.{name}" for identifier, name in node.columns})
            return str(node.relation)
        case Filter():
            return f"({_text(node.input, names)} WHERE {_listed(node.predicates)})"
        case Project():
            return _text(node.input, names)
        case Join():
            on = f" ON {_listed(node.predicates)}" if node.predicates else ""
            return f"({_text(node.left, names)} {node.kind.upper()} JOIN {_text(node.right, names)}{on})"
        case Aggregate():
            keys = ", ".join(duckdb_text(e.node) for _, e in node.keys)
            return f"({_text(node.input, names)} GROUP BY {keys or 'ALL ROWS'})"
        case Distinct():
            return f"DISTINCT {_text(node.input, names)}"
        case AtMostOne():
            return f"ONE ROW OF {_text(node.input, names)}"
        case SetOperation():
            return f"({f' {node.operation.upper()} '.join(_text(part, names) for part in node.inputs)})"
        case _:
            return f"{type(node).__name__.upper()} {_text(inputs_of(node)[0], names)}"


def _listed(predicates: tuple[Predicate, ...]) -> str:
    return " AND ".join(duckdb_text(predicate.expression.node) for predicate in predicates)
