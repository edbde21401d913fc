"""Links: the conditions that connect a subquery with its outer query, and the domain in place of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rejoinder.ir.expressions.expression import Expression, column, renamed
from rejoinder.ir.logical import Filter, Join, Node, Predicate, Project
from rejoinder.plan.unnest.domains import domain_of, linked, same
from rejoinder.plan.unnest.pulled import Pulled, padded
from rejoinder.plan.unnest.tree_columns import can_fail, columns_of, identity, renamed_predicates

Keys = list[tuple[str, Expression]]


class Links:
    """The links of subqueries with the rows of `left`. `numbers` are for new identifiers."""

    def __init__(self, left: Node, numbers: Iterator[int]) -> None:
        self.left, self.numbers = left, numbers
        self.outer = columns_of(left)

    def settled(self, p: Pulled) -> Pulled:
        """A subquery whose row for outer rows without a match is a row of its tree: for each value of the domain."""
        if p.empty is None:
            return p
        needed = sorted(p.read & self.outer.keys())
        domain, names = domain_of(self.left, needed, next(self.numbers), exact=self.can_fail(p))
        right, columns = padded(p, self.identifier("present"))
        shown = {i: renamed(e, names) for i, e in columns.items()}
        joined = Join(domain, right, renamed_predicates(p.links, names), "left")
        own = identity({names[i]: self.outer[i] for i in needed})
        root = Project(joined, (*own.items(), *shown.items()))
        links = tuple(same(column(i, self.outer[i]), own[names[i]]) for i in needed)
        return Pulled(root, identity({i: e.type for i, e in shown.items()}), links)

    def keyed(self, p: Pulled, used: Iterable[Expression]) -> tuple[Pulled, Keys, tuple[Predicate, ...]]:
        """The input of an operation that is computed by key: the keys to add, and the links with them.

        `used` are the expressions of the operation on the columns of its input.
        """
        p = self.settled(p)
        computed = [p.computed(e) for e in used]
        fails = any(e.can_fail for e in computed) or self.can_fail(p)
        if fails or self.needs_domain(p) or self.reads_outer(computed):
            needed = p.read | {i for e in computed for i in e.columns}
            p = self.with_domain(p, needed & self.outer.keys(), exact=fails)
        keys, links = self.link_keys(p)
        return p, keys, links

    def link_keys(self, p: Pulled) -> tuple[Keys, tuple[Predicate, ...]]:
        """For each equality of a subquery with the outer query a key of the subquery, and the links with the keys."""
        keys: Keys = []
        links: list[Predicate] = []
        for link in p.links:
            sides = self.sides(link)
            if sides is None:
                links.append(link)
                continue
            keys.append((self.identifier("key"), sides[1]))
            key = replace(column(keys[-1][0], sides[1].type), text=sides[1].text)
            links.append(linked(sides[0], key, null_safe=link.null_safe))
        return keys, tuple(links)

    def needs_domain(self, p: Pulled) -> bool:
        """Whether a link is neither an equality of the two queries nor about the outer query alone."""
        return any(self.sides(link) is None and not self.about_outer(link) for link in p.links)

    def about_outer(self, link: Predicate) -> bool:
        return self.outer.keys() >= set(link.expression.columns)

    def sides(self, link: Predicate) -> tuple[Expression, Expression] | None:
        """The sides of an equality of the two queries, that of the outer query first; None if it is not one."""
        if link.equality is None:
            return None
        for ours, theirs in (link.equality, link.equality[::-1]):
            is_outer = bool(ours.columns) and self.outer.keys() >= set(ours.columns)
            if is_outer and theirs.columns and not self.outer.keys() & set(theirs.columns):
                return ours, theirs
        return None

    def with_domain(
        self, p: Pulled, needed: Iterable[str], *, exact: bool, names: dict[str, str] | None = None
    ) -> Pulled:
        """Join a subquery with the domain of outer columns; `names` gets what they are called in it."""
        needed = sorted(needed)
        about = tuple(
            link for link in p.links if self.about_outer(link) and set(needed) >= set(link.expression.columns)
        )
        left: Node = Filter(self.left, about) if about else self.left
        domain, renames = domain_of(left, needed, next(self.numbers), exact=exact)
        rest = tuple(link for link in p.links if not any(link is one for one in about))
        root = Join(domain, p.root, renamed_predicates(rest, renames))
        links = tuple(same(column(i, self.outer[i]), column(renames[i], self.outer[i])) for i in needed)
        if names is not None:
            names.update(renames)
        return Pulled(root, {i: renamed(e, renames) for i, e in p.columns.items()}, links, domain=renames)

    def split(self, predicates: tuple[Predicate, ...]) -> tuple[tuple[Predicate, ...], tuple[Predicate, ...]]:
        """Those that read the subquery alone, and those that link it."""
        links = tuple(p for p in predicates if self.outer.keys() & set(p.expression.columns))
        return tuple(p for p in predicates if not any(p is link for link in links)), links

    def reads_outer(self, expressions: Iterable[Expression]) -> bool:
        return any(self.outer.keys() & set(e.columns) for e in expressions)

    def can_fail(self, p: Pulled) -> bool:
        return can_fail(p.root) or any(link.expression.can_fail for link in p.links)

    def identifier(self, name: str) -> str:
        return f"{next(self.numbers)}.{name}"
