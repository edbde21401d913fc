"""Unnesting: every join whose right side reads its left side becomes joins of independent relations.

After Neumann and Kemper (Unnesting Arbitrary Queries, BTW 2015), from the other end. Conditions on the outer query
are pulled up through the subquery (`Pulled`). An operation that such a condition cannot pass is computed for each value
of the outer columns: by the columns that an equality links with them,

    SELECT o.id, (SELECT sum(x) FROM l WHERE l.k = o.k) FROM o
    SELECT o.id, s FROM o LEFT JOIN (SELECT k, sum(x) AS s FROM l GROUP BY k) ON k = o.k

or else by the columns of a domain, with which any condition is an equality:

    SELECT o.id, (SELECT sum(x) FROM l WHERE l.k < o.k) FROM o
    SELECT o.id, s FROM o LEFT JOIN (
      SELECT d.k, sum(x) AS s FROM (SELECT DISTINCT k FROM o) d JOIN l ON l.k < d.k GROUP BY d.k
    ) d ON d.k <=> o.k

An expression that can fail is evaluated only for rows that the outer query asks for, so a subquery with one is always
computed for the exact domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from rejoinder.errors import Unsupported
from rejoinder.ir.expressions.expression import Expression, column, literal
from rejoinder.ir.expressions.operators import coalesce
from rejoinder.ir.identities import column_id
from rejoinder.ir.logical import (
    Aggregate,
    AtMostOne,
    Distinct,
    Expand,
    Filter,
    Join,
    JoinKind,
    Node,
    Predicate,
    Project,
    Session,
    SetOperation,
    Validity,
    WindowCalls,
)
from rejoinder.plan.unnest.domains import linked, same
from rejoinder.plan.unnest.links import Links
from rejoinder.plan.unnest.null_rejection import strengthened
from rejoinder.plan.unnest.pulled import Pulled, padded
from rejoinder.plan.unnest.tree_columns import (
    can_fail,
    columns_of,
    free_columns,
    identity,
    inputs_of,
    renamed_predicates,
    with_inputs,
    with_renamed,
)


def unnest(node: Node, numbers: Iterator[int]) -> Node:
    """A tree with the same rows and columns, in which no right side of a join reads the left one.

    `numbers` are for new identifiers. Raises `Unsupported` if a subquery reads columns of the outer query below an
    operation that cannot be computed for each of their values.
    """
    if isinstance(node, Join):
        left = unnest(node.left, numbers)
        if free_columns(node.right) & columns_of(left).keys():
            return _dependent(left, node.right, node.predicates, node.kind, numbers)
        right = unnest(node.right, numbers)
        if node.kind == "left" and not node.predicates and isinstance(right, Project) and _is_one_row(right.input):
            total = Pulled.of(_only_values(right)).projected(right.outputs)
            return _Pulling(left, numbers).joined(total, (), "inner")
        return replace(node, left=left, right=right)
    inner = with_inputs(node, [unnest(part, numbers) for part in inputs_of(node)])
    return strengthened(inner) if isinstance(inner, Filter) else inner


def _dependent(
    left: Node, right: Node, predicates: tuple[Predicate, ...], kind: JoinKind, numbers: Iterator[int]
) -> Node:
    """The join of an independent left side with a right side that reads it."""
    pulling = _Pulling(left, numbers)
    return pulling.joined(pulling.pull(right), predicates, kind)


class _Pulling(Links):
    """Pulls what depends on the rows of `left` out of a subquery."""

    def joined(self, p: Pulled, predicates: tuple[Predicate, ...], kind: JoinKind) -> Node:
        """Join the left side with a subquery. The result has the columns of both, as far as the kind keeps them."""
        if p.empty is not None and (kind in ("semi", "anti") or (kind == "left" and predicates)):
            p = self.settled(p)
        on = (*p.links, *p.inlined(predicates))
        if kind in ("semi", "anti"):
            return Join(self.left, p.root, on, kind)
        if p.empty is not None:
            whole = self._padded(p, p.links)
            return Filter(whole, predicates) if predicates else whole
        if kind == "left":
            return self._padded(p, on)
        if kind != "inner":
            raise _not_below(f"{kind.upper()} JOIN LATERAL", p.read & self.outer.keys())
        return self._shown(Join(self.left, p.root, on), p.columns)

    def _padded(self, p: Pulled, on: tuple[Predicate, ...]) -> Node:
        right, columns = padded(p, self.identifier("present"))
        return self._shown(Join(self.left, right, on, "left"), columns)

    def _shown(self, joined: Node, columns: Mapping[str, Expression]) -> Node:
        if all(e.is_column and e.columns == (i,) for i, e in columns.items()):
            return joined
        return Project(joined, (*identity(self.outer).items(), *columns.items()))

    # -- rules, one for each kind of node ------------------------------------------------------------------------------

    def pull(self, node: Node) -> Pulled:
        """Take a tree apart into one that reads nothing of the left side, and what depends on it."""
        if not free_columns(node):
            return Pulled.of(unnest(node, self.numbers))
        match node:
            case Filter():
                return self._filter(node)
            case Project():
                return self.pull(node.input).projected(node.outputs)
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case Distinct():
                return self._distinct(node)
            case AtMostOne():
                return self._at_most_one(node)
            case SetOperation():
                return self._set_operation(node)
            case Expand():
                return self._expand(node)
            case Validity() | Session() | WindowCalls():
                return self._in_partitions(node)
            case _:
                raise _not_below(type(node).__name__.lower(), free_columns(node))

    def _filter(self, node: Filter) -> Pulled:
        p = self.settled(self.pull(node.input))
        own, links = self.split(p.inlined(node.predicates))
        return replace(p, root=Filter(p.root, own) if own else p.root, links=(*p.links, *links))

    def _aggregate(self, node: Aggregate) -> Pulled:
        """Group by the linked columns too. Where an outer row has no group, COUNT is 0 and everything else NULL."""
        p, keys, links = self.keyed(self.pull(node.input), [*(e for _, e in node.keys), *node.arguments])
        same = node.with_arguments(p.computed)
        root = replace(same, input=p.root, keys=(*((i, p.computed(e)) for i, e in node.keys), *keys))
        empty = None
        if not node.keys:
            empty = {i: literal(0 if call.function == "count" else None, call.type) for i, call in node.calls}
        return Pulled(root, identity(columns_of(node)), links, empty)

    def _distinct(self, node: Distinct) -> Pulled:
        p, keys, links = self.keyed(self.pull(node.input), identity(dict(node.columns)).values())
        columns = [*((i, p.columns[i]) for i, _ in node.columns), *keys]
        root = Distinct(Project(p.root, tuple(columns)), tuple((i, e.type) for i, e in columns))
        return Pulled(root, identity(columns_of(node)), links)

    def _at_most_one(self, node: AtMostOne) -> Pulled:
        """At most one row for each value of the linked columns. What its columns compute is computed above."""
        p, keys, links = self.keyed(
            self.pull(node.input), identity({i: dict(node.columns)[i] for i in node.key}).values()
        )
        shown = {i: p.columns[i] for i, _ in node.columns}
        types = columns_of(p.root)
        held = dict.fromkeys(i for e in shown.values() for i in e.columns if i in types)
        own = [(i, shown[i]) for i in node.key] + keys
        columns = [*own, *identity({i: types[i] for i in held if i not in dict(own)}).items()]
        input_ = Project(p.root, tuple(columns))
        key = tuple(i for i, _ in own)
        root = AtMostOne(input_, tuple((i, e.type) for i, e in columns), key, node.many)
        return Pulled(root, {**shown, node.many: column(node.many, pa.bool_())}, links)

    def _set_operation(self, node: SetOperation) -> Pulled:
        """Compare and unite rows for each value of the outer columns, which are columns of every part."""
        parts = [self.settled(self.pull(part)) for part in node.inputs]
        parts = [
            replace(p, columns={i: p.columns[i] for i in ids}, links=tuple(sorted(p.links, key=self._place)))
            for p, ids in zip(parts, node.selected, strict=True)
        ]
        exact = any(map(self.can_fail, parts))
        asked = [[(self._place(link), link.null_safe) for link in p.links] for p in parts]
        is_plain = all(self.sides(link) is not None for p in parts for link in p.links)
        if (
            exact
            or not is_plain
            or asked != [asked[0]] * len(parts)
            or any(self.reads_outer(p.columns.values()) for p in parts)
        ):
            needed = {i for p in parts for i in p.read & self.outer.keys()}
            parts = [self.with_domain(p, needed, exact=exact) for p in parts]
        keyed = [self.link_keys(p) for p in parts]
        inputs = [Project(p.root, (*p.columns.items(), *keys)) for p, (keys, _) in zip(parts, keyed, strict=True)]
        selected = tuple(tuple(i for i, _ in part.outputs) for part in inputs)
        keys = tuple((self.identifier("key"), e.type) for _, e in keyed[0][0])
        root = SetOperation(node.operation, tuple(inputs), selected, (*node.columns, *keys))
        sides = [link.equality[0] for link in keyed[0][1] if link.equality is not None]
        links = tuple(
            linked(ours, column(*key), null_safe=link.null_safe)
            for ours, key, link in zip(sides, keys, keyed[0][1], strict=True)
        )
        return Pulled(root, identity(dict(node.columns)), links)

    def _place(self, link: Predicate) -> str:
        """What a link says about the outer query, as far as it is an equality with it."""
        sides = self.sides(link)
        return "" if sides is None else sides[0].key

    def _expand(self, node: Expand) -> Pulled:
        p = self.settled(self.pull(node.input))
        if self.reads_outer([p.computed(node.elements)]):
            p = self.with_domain(p, p.read & self.outer.keys(), exact=node.elements.can_fail or self.can_fail(p))
        root = Expand(p.root, node.output, p.computed(node.elements))
        return replace(p, root=root, columns={**p.columns, **identity({node.output: node.elements.type.value_type})})

    def _in_partitions(self, node: Validity | Session | WindowCalls) -> Pulled:
        """Compute for each value of the linked columns, which become columns of the partition."""
        p, keys, links = self.keyed(self.pull(node.input), identity(dict(node.columns)).values())
        columns = [*((i, p.columns[i]) for i, _ in node.columns), *keys]
        types = tuple((i, e.type) for i, e in columns)
        partition = (*node.partition, *(i for i, _ in keys))
        root = replace(node, input=Project(p.root, tuple(columns)), columns=types, partition=partition)
        return Pulled(root, identity(columns_of(node)), links)

    def _join(self, node: Join) -> Pulled:
        """A join below: what its right side reads of the outer query becomes columns of its left side."""
        p = self.settled(self.pull(node.left))
        own = columns_of(node.left)
        is_dependent = bool(free_columns(node.right) & own.keys())
        if not is_dependent and node.kind == "inner":
            right = self.settled(self.pull(node.right))
            columns = {**p.columns, **right.columns}
            on, links = self.split(Pulled(node, columns).inlined(node.predicates))
            return Pulled(Join(p.root, right.root, on), columns, (*p.links, *right.links, *links))
        if node.kind in ("full", "full anti"):
            return self._full(node, p)
        needed = free_columns(node.right) | {i for q in node.predicates for i in q.expression.columns}
        needed &= self.outer.keys()
        names: dict[str, str] = {}
        if needed or self.reads_outer(p.columns.values()):
            p = self.with_domain(p, needed | p.read & self.outer.keys(), exact=can_fail(node), names=names)
        left: Node = p.root
        if not all(e.is_column and e.columns == (i,) for i, e in p.columns.items()):
            kept = {i: kind for i, kind in columns_of(p.root).items() if i not in p.columns}
            left = Project(p.root, (*p.columns.items(), *identity(kept).items()))
            p = replace(p, root=left, columns=identity({i: e.type for i, e in p.columns.items()}))
        right_side, on = with_renamed(node.right, names), renamed_predicates(node.predicates, names)
        inner = _Pulling(left, self.numbers)
        root: Node
        if free_columns(right_side):
            root = inner.joined(inner.pull(right_side), on, node.kind)
        else:
            root = Join(left, unnest(right_side, self.numbers), on, node.kind)
        return Pulled(
            root, {**p.columns, **identity({i: k for i, k in columns_of(node).items() if i not in own})}, p.links
        )

    def _full(self, node: Join, left: Pulled) -> Pulled:
        """A FULL join for each value of the outer columns, which both sides have."""
        right = self.settled(self.pull(node.right))
        needed = {i for i in left.read | right.read if i in self.outer}
        needed |= {i for p in node.predicates for i in p.expression.columns if i in self.outer}
        ours: dict[str, str] = {}
        theirs: dict[str, str] = {}
        exact = can_fail(node)
        left = self.with_domain(left, needed, exact=exact, names=ours)
        right = self.with_domain(right, needed, exact=exact, names=theirs)
        sides = [
            Project(p.root, (*p.columns.items(), *identity({i: self.outer[o] for o, i in names.items()}).items()))
            for p, names in ((left, ours), (right, theirs))
        ]
        pairs = [(o, column(ours[o], self.outer[o]), column(theirs[o], self.outer[o])) for o in ours]
        on = (*renamed_predicates(node.predicates, ours), *(same(one, two) for _, one, two in pairs))
        values = {self.identifier("key"): Expression(coalesce([a.node, b.node])) for _, a, b in pairs}
        shown = identity(columns_of(node))
        root = Project(Join(sides[0], sides[1], on, node.kind), (*shown.items(), *values.items()))
        links = tuple(
            same(column(o, self.outer[o]), column(i, e.type))
            for (o, _, _), (i, e) in zip(pairs, values.items(), strict=True)
        )
        return Pulled(root, shown, links)


def _is_one_row(node: Node) -> bool:
    """Whether a tree has exactly one row, whatever its inputs are: that of an aggregate without keys."""
    match node:
        case Aggregate():
            return not node.keys
        case Project():
            return not any(e.can_fail for _, e in node.outputs) and _is_one_row(node.input)
        case _:
            return False


def _only_values(node: Project) -> Node:
    """The row that a projection reads, without its other columns, so that it changes only if these values do.

    The row of an aggregate has the number of rows, too, and every row of the outer query meets it when it changes.
    """
    types = columns_of(node.input)
    read = {i: types[i] for i in dict.fromkeys(i for _, e in node.outputs for i in e.columns)}
    if not read:
        return node.input
    return Distinct(Project(node.input, tuple(identity(read).items())), tuple(read.items()))


def _not_below(operation: str, columns: Iterable[str]) -> Unsupported:
    listed = ", ".join(sorted(f"`{column_id(i).name}`" for i in columns))
    return Unsupported(
        f"{operation} cannot be computed for each row of the outer query",
        detail=f"a subquery reads columns of the outer query below it: {listed}",
        hint="put the condition on these columns outside of it",
    )
