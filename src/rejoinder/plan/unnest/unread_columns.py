"""Leave out columns that nothing reads, where rows are repeated.

    before: SELECT auction, count(*) FROM HOP(bid, ts, …) GROUP BY auction, window    -- repeats all columns of bid
    after:  SELECT auction, count(*) FROM HOP((SELECT auction, ts FROM bid), ts, …) GROUP BY auction, window

Repeated rows are a relation of their own, with each of its columns. Within a block, columns that nothing reads cost
nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rejoinder.ir.logical import Aggregate, Expand, Filter, Join, Node, Project, Query
from rejoinder.plan.unnest.tree_columns import columns_of, expressions_of, inputs_of, with_inputs


def without_unread_columns(query: Query) -> Query:
    """Return the query, in which repeated rows have only the columns that are read."""
    expressions = [e for _, e in query.outputs]
    expressions += [e for window in query.windows.values() for e in (window.start, window.end)]
    if query.emission is not None:
        emitted = (query.emission.emit_time, query.emission.gate, *query.emission.times)
        expressions += [e for e in emitted if e is not None]
    return replace(query, root=_pruned(query.root, {i for e in expressions for i in e.columns}))


def _pruned(node: Node, read: Collection[str]) -> Node:
    """Return a tree of which only the columns in `read` are needed."""
    own = {i for e in expressions_of(node) for i in e.columns}
    match node:
        case Filter() | Join():
            below = {*read, *own}
        case Project():
            below = {i for name, e in node.outputs if name in read for i in e.columns}
        case Aggregate() if node.session is None:
            below = own
        case Expand():
            names = columns_of(node.input)
            kept = tuple(name for name in names if name in read)
            if len(kept) < len(names):
                node = replace(node, kept=kept)
            below = {*kept, *own}
        case _:
            return with_inputs(node, [_pruned(part, columns_of(part)) for part in inputs_of(node)])
    return with_inputs(node, [_pruned(part, below) for part in inputs_of(node)])
