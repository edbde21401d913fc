"""The join graph: the conditions of a block, classified by their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

from rejoinder.ir.expressions.canonical import canonical_text
from rejoinder.ir.expressions.expression import Expression, renamed
from rejoinder.ir.expressions.operators import NULL_SAFE, compared
from rejoinder.ir.identities import column_id
from rejoinder.ir.logical import Predicate
from rejoinder.plan.blocks.containment import containment
from rejoinder.plan.blocks.normal_form import Block


@dataclass(frozen=True)
class Link:
    """An equality of two expressions, each over one input."""

    sides: tuple[Expression, Expression]
    null_safe: bool = False

    def of(self, at: int) -> tuple[Expression, Expression] | None:
        """The side that reads input `at`, and the other one; None if no side does."""
        for here, there in (self.sides, self.sides[::-1]):
            if inputs_of(here) == {at}:
                return here, there
        return None

    @property
    def condition(self) -> Expression:
        """The equality as a condition."""
        return equal(*self.sides, null_safe=self.null_safe)


@dataclass(frozen=True)
class EqualityClass:
    """Expressions that are equal in every row of the result, by input."""

    members: tuple[tuple[Expression, ...], ...]
    null_safe: bool = False

    @cached_property
    def inputs(self) -> frozenset[int]:
        """The inputs that have a member."""
        return frozenset(at for at, members in enumerate(self.members) if members)


@dataclass(frozen=True)
class Window:
    """A condition on pairs: the window [`start`, `end`) of an input of versions contains a time of another input.

    Windows of one partition do not overlap, so that the one in question is the latest that starts up to that time.
    `strict`: the window is (`start`, `end`].
    """

    input: int
    start: Expression
    end: Expression
    time: Expression
    partition: frozenset[str]
    strict: bool = False

    @property
    def conditions(self) -> tuple[Expression, Expression]:
        """The condition in two parts."""
        signs = ("<", "<=") if self.strict else ("<=", "<")
        return _compared(self.start, signs[0], self.time), _compared(self.time, signs[1], self.end)

    def within(self, start: Expression, end: Expression) -> Window:
        """The same with other bounds."""
        return replace(self, start=start, end=end)


@dataclass(frozen=True)
class Condition:
    """What the `on` of an input with a mode says: its key, what guards the lookup, and which inputs that needs.

    `pairs` are conditions on pairs besides the key, and those that can fail on a row. Then all conditions need one
    input, or the one with the mode is met at arrival.
    """

    links: tuple[Link, ...] = ()
    guards: tuple[Expression, ...] = ()
    needs: frozenset[int] = frozenset()
    window: Window | None = None
    pairs: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class JoinGraph:
    """A block's conditions. `filters` read one input and hold before it is joined, `residual` hold afterwards."""

    filters: tuple[tuple[Expression, ...], ...]
    classes: tuple[EqualityClass, ...]
    residual: tuple[Expression, ...]
    on: tuple[Condition, ...]
    windows: tuple[Window, ...] = ()


def input_of(i: str) -> int:
    """The number of the input that a column of a canonical block belongs to."""
    return column_id(i).input


def inputs_of(expression: Expression) -> set[int]:
    """The inputs that an expression of a canonical block reads."""
    return {input_of(name) for name in expression.columns}


def join_graph(block: Block) -> JoinGraph:
    """Sort predicates into filters of one input, classes of equal expressions, conditions of modes, and the rest."""
    filters: list[list[Expression]] = [[] for _ in block.inputs]
    residual: list[Expression] = []
    members: list[tuple[set[tuple[int, Expression]], bool]] = []
    windows, predicates = _windows(block, block.predicates)
    for predicate in predicates:
        used = inputs_of(predicate.expression)
        sides = predicate.equality
        if len(used) == 1 and block.inputs[min(used)].mode == "inner":
            filters[used.pop()].append(predicate.expression)
        elif sides is not None and all(len(inputs_of(s)) == 1 for s in sides) and len(used) == 2:
            joined = {(inputs_of(side).pop(), side) for side in sides}
            members = _joined(members, joined, null_safe=predicate.null_safe)
        else:
            residual.append(predicate.expression)
    classes = []
    for group, null_safe in members:
        by_input: list[list[Expression]] = [[] for _ in block.inputs]
        for at, side in sorted(group, key=lambda m: (m[0], canonical_text(m[1].node))):
            if all(side != other for other in by_input[at]):
                by_input[at].append(side)
        for at, sides_here in enumerate(by_input):
            same = [equal(sides_here[0], other, null_safe=null_safe) for other in sides_here[1:]]
            (filters[at] if block.inputs[at].mode == "inner" else residual).extend(same)
        classes.append(EqualityClass(tuple(map(tuple, by_input)), null_safe))
    on = tuple(_condition(block, at, filters[at]) for at in range(len(block.inputs)))
    _propagate(block, filters, classes, on)
    return JoinGraph(tuple(map(tuple, filters)), tuple(classes), tuple(residual), on, windows)


def _propagate(
    block: Block, filters: list[list[Expression]], classes: Sequence[EqualityClass], on: Sequence[Condition]
) -> None:
    """Filter each input also by what holds for columns of other inputs that its columns are equal to.

        SELECT … FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.k WHERE a.k = 5
        SELECT … FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.k AND c.k = 5 WHERE a.k = 5 AND b.k = 5

    Rows of versions are not filtered: one that is left out still ends the one before it.
    """
    pairs = [
        (ours[0], theirs[0])
        for group in classes
        if not group.null_safe
        for ours, theirs in permutations([members for members in group.members if members], 2)
    ]
    pairs += [link.sides for condition in on for link in condition.links if not link.null_safe]
    known = [list(own) for own in filters]
    for ours, theirs in pairs:
        if not (ours.is_column and theirs.is_column and ours.type == theirs.type):
            continue
        (source,), (target,) = inputs_of(ours), inputs_of(theirs)
        is_plain = block.inputs[source].mode == "inner" and block.inputs[target].versions is None
        for own in known[source] if is_plain and not block.inputs[target].arrival else ():
            if own.columns == ours.columns and not own.can_fail:
                copy = replace(renamed(own, {ours.columns[0]: theirs.columns[0]}), text="")
                if copy not in filters[target]:
                    filters[target].append(copy)


def _joined(
    groups: Sequence[tuple[set[tuple[int, Expression]], bool]], new: set[tuple[int, Expression]], *, null_safe: bool
) -> list[tuple[set[tuple[int, Expression]], bool]]:
    """Put an equality to the classes that it touches; `=` and `<=>` do not mix."""
    names = set(new)
    touching = [g for g, safe in groups if safe == null_safe and any(member in names for member in g)]
    rest = [(g, safe) for g, safe in groups if not any(g is other for other in touching)]
    return [*rest, (new.union(*touching), null_safe)]


def _condition(block: Block, at: int, filters: list[Expression]) -> Condition:
    """Sort the `on` of an input; conditions on the input alone go to its filters."""
    links: list[Link] = []
    guards: list[Expression] = []
    pairs: list[Expression] = []
    windows, predicates = _windows(block, block.inputs[at].on)
    for predicate in predicates:
        used = inputs_of(predicate.expression)
        if used == {at}:
            filters.append(predicate.expression)
        elif at in used and predicate.equality is not None:
            links.append(Link(predicate.equality, predicate.null_safe))
        elif used and (at in used or predicate.expression.can_fail):  # what can fail is asked only of pairs
            pairs.append(predicate.expression)
        else:
            guards.append(predicate.expression)
    needs = {i for link in links for i in inputs_of(link.sides[0])} | {i for g in guards for i in inputs_of(g)}
    needs |= {i for window in windows for i in inputs_of(window.time)} | {i for p in pairs for i in inputs_of(p)} - {at}
    return Condition(tuple(links), tuple(guards), frozenset(needs), next(iter(windows), None), tuple(pairs))


def _windows(block: Block, predicates: Sequence[Predicate]) -> tuple[tuple[Window, ...], list[Predicate]]:
    """Find the windows among conditions; the others are left."""
    windows: list[Window] = []
    used: list[Predicate] = []
    for at, each in enumerate(block.inputs):
        found = containment(each, predicates)
        if found is not None:
            used += found.predicates
            ids = {name: i for i, name in each.columns}
            assert each.versions is not None
            partition = frozenset(ids[name] for name in each.versions.partition)
            windows.append(Window(at, found.start, found.end, found.time, partition, found.strict))
    return tuple(windows), [p for p in predicates if not any(p is one for one in used)]


def _compared(left: Expression, sign: str, right: Expression) -> Expression:
    return Expression(compared(left.node, sign, right.node), f"{left.text} {sign} {right.text}")


def equal(left: Expression, right: Expression, *, null_safe: bool = False) -> Expression:
    """The condition that two expressions are equal."""
    sign, written = (NULL_SAFE, "<=>") if null_safe else ("=", "=")
    return Expression(compared(left.node, sign, right.node), f"{left.text} {written} {right.text}")
