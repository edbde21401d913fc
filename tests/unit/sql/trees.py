"""Logical trees as short texts, and the catalog that the tests of the binder share."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.logical import Filter, Join, Node, Predicate, Project, Scan
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.sql.bind.bind_query import bind


def source(name: str, **columns: pa.DataType) -> Source:
    return Source(name, "changelog", pa.schema(list(columns.items())))


CATALOG = Catalog(
    (
        source("a", k=pa.int32(), x=pa.int32(), s=pa.string(), t=pa.timestamp("us", "UTC")),
        source("b", y=pa.float64(), k=pa.int64(), u=pa.timestamp("us", "UTC")),
        source("c", K=pa.int32(), z=pa.int32()),
        source("g", w=pa.int32()),
        source("h", a=pa.struct([("k", pa.int32())]), w=pa.int32()),
    )
)


def tree(query: str) -> str:
    """The tree of a query: `left(a, b | a.k = b.k)`. Columns have the name of the relation that is scanned."""
    root = bind(query, CATALOG).root
    names: dict[str, str] = {}
    text = _text(root, names)
    for identifier, name in names.items():
        text = text.replace(f'"{identifier}"', name)
    return text


def join(query: str) -> Join:
    """The outermost join of a query."""
    root = bind(query, CATALOG).root
    while not isinstance(root, Join):
        assert isinstance(root, Filter | Project)
        root = root.input
    return root


def _text(node: Node, names: dict[str, str]) -> str:
    match node:
        case Scan():
            names.update({identifier: f"{node.relation}.{name}" for identifier, name in node.columns})
            return str(node.relation)
        case Filter():
            return f"{_text(node.input, names)}[{_listed(node.predicates)}]"
        case Project():
            return f"project({_text(node.input, names)})"
        case Join():
            sides = f"{_text(node.left, names)}, {_text(node.right, names)}"
            return f"{node.kind}({sides} | {_listed(node.predicates)})"
    return type(node).__name__.lower()


def _listed(predicates: tuple[Predicate, ...]) -> str:
    return " & ".join(duckdb_text(predicate.expression.node) for predicate in predicates)
