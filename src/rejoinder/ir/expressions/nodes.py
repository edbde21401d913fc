"""The nodes of an expression: a frozen tree in which each node knows its Arrow type.

A node is made of its kind, its type, its own fields and its parts. Everything else follows from these when the node is
made: the columns it reads, whether it can fail, whether it can be NULL, and what it is monotone in. No pass over the
tree is needed for them, and none recurses. Two nodes are equal if their digests are. A digest consists of stable texts
(kind, type, name of the function, literal), so renaming a class changes no name of a relation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa

from rejoinder.ir.expressions.cast_rules import cast_can_fail, cast_makes_null, cast_monotone
from rejoinder.ir.expressions.monotone import Monotone
from rejoinder.ir.expressions.scalar_operation import MonotoneArgument, ScalarOperation


class Node:
    """A part of an expression. Nodes never change.

    A subclass sets its own fields and then calls this constructor, which computes the rest.
    """

    kind: ClassVar[str]
    """The name of the kind of node in digests and canonical texts."""
    fields: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that `make` needs, besides type and parts."""

    columns: tuple[str, ...]
    """The columns that it reads, in order of appearance."""
    can_fail: bool
    """Whether evaluation may fail on a row."""
    nullable: bool = True
    """Whether the value can be NULL."""
    monotone: Monotone | None = None
    """The column that the value is monotone in."""
    functions: tuple[str, ...]
    """The functions of the user that it calls, as `module:function`."""
    digest: bytes
    """A hash of the whole tree."""

    def __init__(self, type_: pa.DataType, parts: Iterable[Node] = (), *, can_fail: bool = False) -> None:
        self.type = type_
        self.parts = tuple(parts)
        self.can_fail = can_fail or any(part.can_fail for part in self.parts)
        self.columns = _merged([part.columns for part in self.parts])
        self.functions = _merged([part.functions for part in self.parts])
        text = "\x1f".join((self.kind, _name_of(type_), *self.identity())).encode()
        self.digest = hashlib.blake2b(text + b"".join(part.digest for part in self.parts), digest_size=16).digest()

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        """Make a node from its type, parts and `fields`."""
        raise NotImplementedError

    def identity(self) -> tuple[str, ...]:
        """Texts that tell the node from others of its kind, type and parts."""
        return ()

    def with_parts(self, parts: Sequence[Node]) -> Node:
        """The same node over other parts."""
        return self.make(self.type, parts, *(getattr(self, name) for name in self.fields))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (_flat(self),)


class _Named(Node):
    fields = ("name",)

    def __init__(self, name: str, type_: pa.DataType) -> None:
        self.name = name
        super().__init__(type_)

    def identity(self) -> tuple[str, ...]:
        return (self.name,)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(fields[0], type_)


class Column(_Named):
    """A column of the rows that the expression is evaluated on."""

    kind = "column"

    def __init__(self, name: str, type_: pa.DataType) -> None:
        super().__init__(name, type_)
        self.columns = (name,)
        self.monotone = Monotone(name)


class Variable(_Named):
    """What `Let` or `Lambda` binds, within its body."""

    kind = "variable"


class Literal(Node):
    """A value; None is NULL."""

    kind = "literal"
    fields = ("value",)

    def __init__(self, value: Any, type_: pa.DataType) -> None:
        self.value = value
        super().__init__(type_)
        self.nullable = value is None

    def identity(self) -> tuple[str, ...]:
        return (literal_identity(self.value),)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(fields[0], type_)


class Call(Node):
    """A function of arguments."""

    kind = "call"
    fields = ("operation",)

    def __init__(self, operation: ScalarOperation, arguments: Iterable[Node], type_: pa.DataType) -> None:
        self.operation = operation
        super().__init__(type_, arguments, can_fail=operation.can_fail)
        self.monotone = _lifted(operation.monotone, self.parts)
        is_nullable = operation.nulls == "possible" or any(part.nullable for part in self.parts)
        self.nullable = operation.nulls != "never" and is_nullable
        if operation.user is not None:
            self.functions = _merged([self.functions, (operation.user.reference,)])

    def identity(self) -> tuple[str, ...]:
        operation = self.operation
        options = (literal_identity(option) for option in operation.options)
        called = () if operation.user is None else (operation.user.identity,)
        return (operation.name, operation.evaluation, "can fail" if operation.can_fail else "", *options, *called)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(fields[0], parts, type_)


class Cast(Node):
    """A value as another type, by Spark's ANSI rules. A value that does not fit fails the row; with `is_try`: NULL."""

    kind = "cast"
    fields = ("is_try",)

    def __init__(self, value: Node, type_: pa.DataType, *, is_try: bool = False) -> None:
        self.is_try = is_try
        source = value.type
        super().__init__(type_, (value,), can_fail=cast_can_fail(source, type_, is_try=is_try))
        self.nullable = value.nullable or cast_makes_null(source, type_, is_try=is_try)
        self.monotone = _lifted(cast_monotone(source, type_, is_try=is_try), self.parts)

    def identity(self) -> tuple[str, ...]:
        return ("try",) if self.is_try else ()

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(parts[0], type_, is_try=fields[0])


class Case(Node):
    """The result of the first condition that is TRUE: parts are condition, result, condition, result, …, default."""

    kind = "case"

    def __init__(self, parts: Iterable[Node], type_: pa.DataType) -> None:
        super().__init__(type_, parts)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(parts, type_)


class _Connective(Node):
    """Conditions that are evaluated in turn, until one decides; conditions of the same connective are one list.

    `texts` are what the user wrote, one for each part, for messages. They are not part of the identity.
    """

    fields = ("texts",)
    texts: tuple[str, ...]

    def __init__(self, parts: Iterable[Node], texts: Sequence[str] = ()) -> None:
        listed = list(parts)
        flat: list[tuple[Node, str]] = []
        for part, text in zip(listed, texts or [""] * len(listed), strict=True):
            inner = zip(part.parts, part.texts, strict=True) if isinstance(part, type(self)) else [(part, "")]
            flat += [(condition, own or text) for condition, own in inner]
        self.texts = tuple(text for _, text in flat)
        super().__init__(pa.bool_(), [condition for condition, _ in flat])
        self.nullable = any(part.nullable for part in self.parts)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(parts, fields[0])


class And(_Connective):
    """All conditions are TRUE; conditions after one that is FALSE are not evaluated."""

    kind = "and"


class Or(_Connective):
    """A condition is TRUE; conditions after it are not evaluated."""

    kind = "or"


class Let(Node):
    """The value of a body in which a variable stands for a value that is evaluated once."""

    kind = "let"
    fields = ("variable",)

    def __init__(self, variable: str, value: Node, body: Node) -> None:
        self.variable = variable
        super().__init__(body.type, (value, body))

    def identity(self) -> tuple[str, ...]:
        return (self.variable,)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(fields[0], *parts)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return let(parts[0], lambda name: rewrite(parts[1], _renaming(self.variable, name)))


class Lambda(Node):
    """A function of typed variables, as an argument of a function on arrays; its type is that of the results."""

    kind = "lambda"
    fields = ("variables",)

    def __init__(self, variables: Sequence[Variable], body: Node) -> None:
        self.variables = tuple(variables)
        super().__init__(body.type, (body,))

    def identity(self) -> tuple[str, ...]:
        return tuple(f"{variable.name}: {_name_of(variable.type)}" for variable in self.variables)

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(fields[0], parts[0])


class Attempt(Node):
    """A value, NULL where its evaluation fails; with `is_test`, whether it fails. Stands at the top of a tree."""

    kind = "attempt"
    fields = ("is_test",)

    def __init__(self, inner: Node, *, is_test: bool) -> None:
        self.is_test = is_test
        super().__init__(pa.bool_() if is_test else inner.type, (inner,))
        self.can_fail = False

    def identity(self) -> tuple[str, ...]:
        return ("test",) if self.is_test else ()

    @classmethod
    def make(cls, type_: pa.DataType, parts: Sequence[Node], *fields: Any) -> Node:
        return cls(parts[0], is_test=fields[0])


def let(value: Node, make: Callable[[Node], Node]) -> Node:
    """Make a body that may use a value often, so that the value is evaluated once."""
    if isinstance(value, Column | Literal | Variable):
        return make(value)
    variable = Variable(f"once_{value.digest.hex()[:12]}", value.type)
    return Let(variable.name, value, make(variable))


def walk(root: Node) -> list[Node]:
    """Every different node of a tree, parts before what they are part of."""
    order: list[Node] = []
    visited: set[bytes] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_open = stack.pop()
        if is_open:
            order.append(node)
        elif node.digest not in visited:
            visited.add(node.digest)
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(node.parts))
    return order


def rewrite(root: Node, leaf: Callable[[Node], Node]) -> Node:
    """The tree with other leaves: columns, literals and variables go through `leaf`."""
    results: dict[bytes, Node] = {}
    for node in walk(root):
        if not node.parts:
            results[node.digest] = leaf(node)
            continue
        parts = [results[part.digest] for part in node.parts]
        is_unchanged = all(new is old for new, old in zip(parts, node.parts, strict=True))
        results[node.digest] = node if is_unchanged else node.with_parts(parts)
    return results[root.digest]


def uses(root: Node) -> dict[str, int]:
    """How often each column is an argument in a tree, each shared part counted once."""
    counts: dict[str, int] = {}
    for node in walk(root):
        for part in node.parts:
            if isinstance(part, Column):
                counts[part.name] = counts.get(part.name, 0) + 1
    return counts


def literal_identity(value: Any) -> str:
    """A stable text of a value; values of one type have different texts.

    >>> literal_identity(None), literal_identity("NULL"), literal_identity(date(2020, 1, 2))
    ('NULL', "'NULL'", '2020-01-02')
    """
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'"
    return value.isoformat() if isinstance(value, date) else str(value)


def _lifted(rule: MonotoneArgument | None, parts: Sequence[Node]) -> Monotone | None:
    """What a rule says about the column that the argument is monotone in."""
    inner = None if rule is None else parts[rule.argument].monotone
    return None if rule is None or inner is None else inner.then(*rule.steps, more=rule.more)


def _renaming(old: str, new: Node) -> Callable[[Node], Node]:
    return lambda node: new if isinstance(node, Variable) and node.name == old else node


def _merged(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Each name once. Along a deep chain the list stays the same object, and nothing is copied."""
    longest = max(lists, key=len, default=())
    if all(columns is longest or columns == longest for columns in lists):
        return longest
    return tuple(dict.fromkeys(name for columns in lists for name in columns))


@lru_cache(maxsize=4096)
def _name_of(type_: pa.DataType) -> str:
    return str(type_)


def _flat(root: Node) -> list[tuple[Any, ...]]:
    """A tree as a list, so that pickling does not recurse: class, type, positions of the parts, and fields."""
    nodes = walk(root)
    positions = {node.digest: position for position, node in enumerate(nodes)}
    return [
        (type(n), n.type, [positions[part.digest] for part in n.parts], [getattr(n, name) for name in n.fields])
        for n in nodes
    ]


def _restore(flat: list[tuple[Any, ...]]) -> Node:
    nodes: list[Node] = []
    for node_class, type_, positions, fields in flat:
        nodes.append(node_class.make(type_, [nodes[position] for position in positions], *fields))
    return nodes[-1]
