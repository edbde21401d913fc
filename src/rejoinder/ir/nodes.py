"""The nodes of an expression: a frozen tree in which each node knows its Arrow type.

What a node is made of decides everything else about it. Columns, whether it can fail, and what it rises with are
computed when it is made, from the same facts about its parts: no pass over the tree is needed for them, and none
recurses. Two nodes are equal if their digests are, which is structural equality at the cost of comparing 16 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa

from rejoinder.ir.monotone import Monotone
from rejoinder.ir.scalar_operation import ScalarOperation


class Node:
    """A part of an expression. Nodes are never changed after they are made.

    A subclass sets its own fields and then calls this constructor, which computes the rest from them.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """Names of what a node is made of, besides its parts and its type."""

    columns: tuple[str, ...]
    """The columns that it reads, in order of appearance."""
    can_fail: bool
    """Whether evaluation may fail on a row."""
    digest: bytes
    """A hash of the whole tree."""

    def __init__(self, kind: pa.DataType, parts: Iterable[Node] = (), *, can_fail: bool = False) -> None:
        self.type = kind
        self.parts = tuple(parts)
        self.can_fail = can_fail or any(part.can_fail for part in self.parts)
        self.columns = _merged([part.columns for part in self.parts])
        own = [type(self).__name__, _name_of(kind), *(repr(getattr(self, name)) for name in self.fields)]
        text = "\x1f".join(own).encode()
        self.digest = hashlib.blake2b(text + b"".join(part.digest for part in self.parts), digest_size=16).digest()

    @property
    def monotone(self) -> Monotone | None:
        """The column that the value rises with."""
        return None

    @property
    def nullable(self) -> bool:
        """Whether the value can be NULL."""
        return True

    def with_parts(self, parts: Sequence[Node]) -> Node:
        """The same node over other parts."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (_flat(self),)


class Column(Node):
    """A column of the rows that the expression is evaluated on."""

    fields = ("name",)

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self.name = name
        super().__init__(kind)
        self.columns = (name,)

    @property
    def monotone(self) -> Monotone | None:
        return Monotone(self.name)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return self


class Literal(Node):
    """A value; None is NULL."""

    fields = ("value",)

    def __init__(self, value: Any, kind: pa.DataType) -> None:
        self.value = value
        super().__init__(kind)

    @property
    def nullable(self) -> bool:
        return self.value is None

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return self


class Variable(Node):
    """What `Let` or `Lambda` binds, within its body."""

    fields = ("name",)

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self.name = name
        super().__init__(kind)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return self


class Call(Node):
    """An operation on arguments."""

    fields = ("operation",)

    def __init__(self, operation: ScalarOperation, arguments: Iterable[Node], kind: pa.DataType) -> None:
        self.operation = operation
        super().__init__(kind, arguments, can_fail=operation.can_fail)
        rule = operation.monotone
        below = None if rule is None else self.parts[rule.argument].monotone
        self._monotone = None if rule is None or below is None else below.then(*rule.steps, more=rule.more)
        self._nullable = operation.makes_null or any(part.nullable for part in self.parts)

    @property
    def monotone(self) -> Monotone | None:
        return self._monotone

    @property
    def nullable(self) -> bool:
        return self._nullable

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return Call(self.operation, parts, self.type)


class Case(Node):
    """The result of the first condition that is TRUE: parts are condition, result, condition, result, …, default."""

    def __init__(self, parts: Iterable[Node], kind: pa.DataType) -> None:
        super().__init__(kind, parts)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return Case(parts, self.type)


class _Connective(Node):
    """Conditions that are evaluated in turn, until one decides; conditions of the same connective are one list."""

    def __init__(self, parts: Iterable[Node]) -> None:
        flat: list[Node] = []
        for part in parts:
            flat += part.parts if type(part) is type(self) else (part,)
        super().__init__(pa.bool_(), flat)

    @property
    def nullable(self) -> bool:
        return any(part.nullable for part in self.parts)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return type(self)(parts)


class And(_Connective):
    """All conditions are TRUE; what comes after one that is FALSE is not evaluated."""


class Or(_Connective):
    """A condition is TRUE; what comes after it is not evaluated."""


class Let(Node):
    """The value of a body in which a variable stands for a value that is evaluated once."""

    fields = ("variable",)

    def __init__(self, variable: str, value: Node, body: Node) -> None:
        self.variable = variable
        super().__init__(body.type, (value, body))

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return let(parts[0], lambda name: rewrite(parts[1], _renaming(self.variable, name)))


class Lambda(Node):
    """A function of one variable, as an argument of an operation on arrays; its type is that of the results."""

    fields = ("variable",)

    def __init__(self, variable: str, body: Node) -> None:
        self.variable = variable
        super().__init__(body.type, (body,))

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return Lambda(self.variable, parts[0])


class Attempt(Node):
    """A value, NULL where its evaluation fails; with `is_test`, whether it fails. Stands at the top of a tree."""

    fields = ("is_test",)

    def __init__(self, inner: Node, *, is_test: bool) -> None:
        self.is_test = is_test
        super().__init__(pa.bool_() if is_test else inner.type, (inner,))
        self.can_fail = False

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return Attempt(parts[0], is_test=self.is_test)


def let(value: Node, make: Callable[[Node], Node]) -> Node:
    """Make a body that may use a value often, so that the value is evaluated once."""
    if isinstance(value, Column | Literal | Variable):
        return make(value)
    variable = Variable(f"once_{value.digest.hex()[:12]}", value.type)
    return Let(variable.name, value, make(variable))


def walk(root: Node) -> list[Node]:
    """Every different node of a tree, parts before what they are part of."""
    order: list[Node] = []
    known: set[bytes] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_open = stack.pop()
        if is_open:
            order.append(node)
        elif node.digest not in known:
            known.add(node.digest)
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.parts))
    return order


def rewrite(root: Node, leaf: Callable[[Node], Node]) -> Node:
    """The tree with other leaves: columns, literals and variables go through `leaf`."""
    made: dict[bytes, Node] = {}
    for node in walk(root):
        if not node.parts:
            made[node.digest] = leaf(node)
            continue
        parts = [made[part.digest] for part in node.parts]
        unchanged = all(new is old for new, old in zip(parts, node.parts, strict=True))
        made[node.digest] = node if unchanged else node.with_parts(parts)
    return made[root.digest]


def uses(root: Node) -> dict[str, int]:
    """How often each column is an argument in a tree, each shared part counted once."""
    counts: dict[str, int] = {}
    for node in walk(root):
        for part in node.parts:
            if isinstance(part, Column):
                counts[part.name] = counts.get(part.name, 0) + 1
    return counts


def _renaming(old: str, new: Node) -> Callable[[Node], Node]:
    return lambda node: new if isinstance(node, Variable) and node.name == old else node


def _merged(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Each column once. Along a deep chain the list stays the same object, and nothing is copied."""
    longest = max(lists, key=len, default=())
    if all(columns is longest or columns == longest for columns in lists):
        return longest
    return tuple(dict.fromkeys(name for columns in lists for name in columns))


@lru_cache(maxsize=4096)
def _name_of(kind: pa.DataType) -> str:
    return str(kind)


def _flat(root: Node) -> list[tuple[Any, ...]]:
    """A tree as a list, so that pickling does not recurse: class, fields, type, and the places of the parts."""
    nodes = walk(root)
    places = {node.digest: place for place, node in enumerate(nodes)}
    return [
        (type(n), [getattr(n, name) for name in n.fields], n.type, [places[part.digest] for part in n.parts])
        for n in nodes
    ]


def _restore(flat: list[tuple[Any, ...]]) -> Node:
    nodes: list[Node] = []
    for cls, own, kind, places in flat:
        parts = [nodes[place] for place in places]
        node: Node
        if cls is Call:
            node = Call(own[0], parts, kind)
        elif cls is Case:
            node = Case(parts, kind)
        elif cls in (And, Or):
            node = cls(parts)
        elif cls is Attempt:
            node = Attempt(parts[0], is_test=own[0])
        elif cls in (Let, Lambda):
            node = cls(*own, *parts)
        else:
            node = cls(*own, kind)
        nodes.append(node)
    return nodes[-1]
