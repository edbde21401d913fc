"""Unique keys of a query that follow from its text.

A key is a set of column ids; NULL is a value. A key that cannot be proven may still be unique in the data, such as the
ids of a stream. Cost: one pass over the tree, and as many keys as the combinations of those of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from rejoinder.ir import logical
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.ir.logical import Node, Query
from rejoinder.plan.operations.set_operations import SET_OPERATIONS
from rejoinder.plan.time.finality import column_types

Ids = frozenset[str]


def is_unique(query: Query, names: Sequence[str], catalog: Catalog) -> bool:
    """Return whether some columns are a unique key of a query."""
    outputs = dict(query.outputs)
    ids = frozenset(outputs[name].columns[0] for name in names if outputs[name].is_column)
    return any(key <= ids for key in _keys(query.root, catalog))


def _keys(node: Node, catalog: Catalog) -> list[Ids]:
    match node:
        case logical.Scan():
            source = catalog.find(str(node.relation))
            named = source.primary_key if isinstance(source, Source) and source.kind == "table" else ()
            return [frozenset(i for i, name in node.columns if name in named)] if named else []
        case (
            logical.Filter()
            | logical.Validity()
            | logical.Session()
            | logical.Current()
            | logical.Enrich()
            | logical.WindowCalls()
        ):
            return _keys(node.input, catalog)
        case logical.Project():
            return [key for inner in _keys(node.input, catalog) for key in _renamed(inner, node)]
        case logical.Aggregate():
            return [frozenset(i for i, _ in node.keys)]
        case logical.Distinct():
            return [frozenset(i for i, _ in node.columns)]
        case logical.Latest() | logical.AtMostOne():
            return [frozenset(node.key)]
        case logical.Join():
            return list(_joined(node, catalog))
        case logical.SetOperation():
            return [frozenset(i for i, _ in node.columns)] if SET_OPERATIONS[node.operation].is_distinct else []
        case logical.Arrival() | logical.Expand() | logical.Records():
            return []


def _renamed(key: Ids, node: logical.Project) -> Iterator[Ids]:
    """A key in the columns of a projection; several if it shows a column twice, none if it leaves one out."""
    shown = [[i for i, e in node.outputs if e.is_column and e.columns[0] == column] for column in key]
    yield from (frozenset(chosen) for chosen in product(*shown))


def _joined(node: logical.Join, catalog: Catalog) -> Iterator[Ids]:
    left, right = _keys(node.left, catalog), _keys(node.right, catalog)
    if node.kind in ("semi", "anti"):
        yield from left
        return
    if node.kind not in ("inner", "left"):
        return  # of a row that one side alone has, NULL stands for the key of the other
    ours, theirs = column_types(node.left), column_types(node.right)
    sides = [predicate.equality for predicate in node.predicates if predicate.equality is not None]
    pairs = [(one.columns[0], other.columns[0]) for one, other in sides if one.is_column and other.is_column]
    pairs += [(other, one) for one, other in pairs]
    equal = [(a, b) for a, b in pairs if (a in ours and b in theirs) or (a in theirs and b in ours)]
    whole = [a | b for a, b in product(left, right)]
    tied = {one for one, _ in equal}
    found = [*whole, *(key for key in left if any(other <= tied for other in right))]
    if node.kind == "inner":
        found += [key for key in right if any(other <= tied for other in left)]
        found += [key - {one} | {other} for key in found for one, other in equal if one in key]
    yield from dict.fromkeys(found)
