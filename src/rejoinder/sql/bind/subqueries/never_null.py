"""Which columns of a logical tree are never NULL, as far as its text proves it.

The primary key of a table is never NULL: an epoch with such a row fails. A column that an equality compares is not NULL
in the rows that pass it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import Aggregate, Distinct, Filter, Join, Node, Predicate, Project, Scan

_NONE: frozenset[str] = frozenset()


def is_never_null(value: Expression, rows: Node, catalog: Catalog) -> bool:
    """Whether an expression on the rows of a tree is proven to be never NULL."""
    return not value.node.nullable or (value.is_column and value.columns[0] in _never_null(rows, catalog))


def _never_null(node: Node, catalog: Catalog) -> frozenset[str]:
    match node:
        case Scan():
            source = catalog.find(str(node.relation))
            key = source.primary_key if isinstance(source, Source) and source.kind == "table" else ()
            return frozenset(i for i, name in node.columns if name in key)
        case Filter():
            return _never_null(node.input, catalog).union(_compared(node.predicates))
        case Project():
            return _among(node.outputs, node.input, catalog)
        case Aggregate():
            return _among(node.keys, node.input, catalog)
        case Distinct():
            return _never_null(node.input, catalog).intersection(i for i, _ in node.columns)
        case Join() if node.kind == "inner":
            both = _never_null(node.left, catalog) | _never_null(node.right, catalog)
            return both.union(_compared(node.predicates))
        case Join() if node.kind in ("left", "semi", "anti"):
            return _never_null(node.left, catalog)
        case _:
            return _NONE


def _among(outputs: Sequence[tuple[str, Expression]], inner: Node, catalog: Catalog) -> frozenset[str]:
    return frozenset(i for i, e in outputs if is_never_null(e, inner, catalog))


def _compared(predicates: Sequence[Predicate]) -> Iterator[str]:
    """The columns that are sides of an equality."""
    for predicate in predicates:
        if predicate.equality is not None and not predicate.null_safe:
            yield from (side.columns[0] for side in predicate.equality if side.is_column)
