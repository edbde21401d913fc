"""The domain of a subquery: the distinct values, in the rows of the outer query, of the columns that it reads.

A subquery that is joined with its domain no longer depends on the outer query. It is computed once for each
combination of values, however many rows have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import NULL_SAFE, compared
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Bound, Distinct, Filter, Join, Node, Predicate, Project
from rejoinder.plan.blocks.normal_form import inlined
from rejoinder.plan.unnest.tree_columns import columns_of


def domain_of(node: Node, columns: Sequence[str], number: int, *, exact: bool) -> tuple[Node, dict[str, str]]:
    """The domain of some columns of a tree, and what they are called in it.

    Unless it has to be `exact`, it may have values that no row of the tree has: those of the input that the columns
    come from. Then no join has to be computed a second time.

    >>> # SELECT DISTINCT o.k, o.t FROM o JOIN … WHERE …    exact
    >>> # SELECT DISTINCT o.k, o.t FROM o WHERE …           otherwise
    """
    types = columns_of(node)
    source = node if exact else _narrowed(node, frozenset(columns), ())
    names = {i: column_text(number, f"d{place}") for place, i in enumerate(columns)}
    outputs = tuple((names[i], column(i, types[i])) for i in columns)
    return Distinct(Project(source, outputs), tuple((names[i], types[i]) for i in columns)), names


def same(ours: Expression, theirs: Expression) -> Predicate:
    """The predicate that a column of the outer query and one of its domain are equal, or both NULL."""
    return linked(ours, theirs, null_safe=True)


def linked(ours: Expression, theirs: Expression, *, null_safe: bool) -> Predicate:
    """The predicate that two expressions of different inputs are equal."""
    sign, written = (NULL_SAFE, "<=>") if null_safe else ("=", "=")
    text = f"{ours.text} {written} {theirs.text}" if ours.text and theirs.text else ""
    whole = Expression(compared(ours.node, sign, theirs.node), text)
    bounds = (Bound(ours, theirs), Bound(theirs, ours)) if ours.is_column and theirs.is_column else ()
    return Predicate(whole, equality=(ours, theirs), null_safe=null_safe, bounds=bounds)


def _narrowed(node: Node, columns: frozenset[str], filters: tuple[Predicate, ...]) -> Node:
    """The smallest tree below a node that has some columns with all values that they have in the node.

    Filters on the way down are kept where they read nothing else.
    """
    match node:
        case Filter():
            return _narrowed(node.input, columns, (*filters, *node.predicates))
        case Project():
            outputs = dict(node.outputs)
            if all(outputs[i].is_column for i in columns) and len({outputs[i].columns[0] for i in columns}) == len(
                columns
            ):
                inner = _narrowed(
                    node.input, frozenset(outputs[i].columns[0] for i in columns), inlined(filters, outputs)
                )
                return Project(inner, tuple((i, outputs[i]) for i in outputs if i in columns))
        case Join() if node.kind in ("inner", "left", "semi", "anti"):
            for side in (node.left, node.right)[: 2 if node.kind == "inner" else 1]:
                if columns <= columns_of(side).keys():
                    return _narrowed(side, columns, (*filters, *(node.predicates if node.kind == "inner" else ())))
        case _:
            pass
    types = columns_of(node)
    kept = tuple(p for p in filters if types.keys() >= set(p.expression.columns) and not p.expression.can_fail)
    return Filter(node, kept) if kept else node
