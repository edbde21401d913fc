"""Compiled pieces of an expression: nodes, and what only the compiler has to know about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir import nodes
from rejoinder.ir.monotone import Step
from rejoinder.ir.nodes import Node
from rejoinder.ir.operators import places
from rejoinder.ir.scalar_operation import MonotoneArgument, ScalarOperation
from rejoinder.sql.parse.clauses import text_of


@dataclass(frozen=True)
class Bounds:
    """Start and end of a window as terms of their own, and its length in the unit of its times where that is fixed."""

    start: Term
    end: Term
    size: int | None = None


@dataclass(frozen=True)
class Term:
    """A node whose values and type are Spark's.

    `suffixed` says that a literal was written with a suffix such as `1L`, or as `1::BIGINT`. A window that was made by
    us keeps its `bounds`.
    """

    node: Node
    suffixed: bool = False
    bounds: Bounds | None = None

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self.node.type

    @property
    def can_fail(self) -> bool:
        """Whether a row may fail, so that it must not be evaluated where Spark would not."""
        return self.node.can_fail

    @property
    def literal(self) -> bool:
        """Say whether this is a literal."""
        return self.suffixed or isinstance(self.node, nodes.Literal)

    @property
    def value(self) -> Any:
        """The value of a literal; None if it is NULL, or something else."""
        return self.node.value if isinstance(self.node, nodes.Literal) else None

    @property
    def is_null(self) -> bool:
        """Say whether this is the untyped NULL."""
        return bool(pa.types.is_null(self.type))


NULL = Term(nodes.Literal(None, pa.null()))


class Compiler(Protocol):
    """What a node's compiler may ask for: the terms of the nodes below."""

    def compile(self, node: exp.Expr) -> Term:
        """Compile a node. Raises a `PlanningError`."""
        ...

    def resolve(self, column: exp.Column) -> Term:
        """Find a column. Raises what the scope raises."""
        ...

    def repeated(self, starts: Node) -> str | None:
        """The column with the start of the window that a row was repeated for, by the list of all starts."""
        ...


def build(
    template: str,
    kind: pa.DataType,
    *terms: Term,
    name: str = "",
    can_fail: bool = False,
    right_first: bool = False,
    makes_null: bool = True,
) -> Term:
    """Make a term that is NULL if a part is, from a template with `{0}`, `{1}`, … for its parts (`ScalarOperation`).

    Spark evaluates the parts in turn, the right one first for divisions, and stops at a NULL: what comes after is not
    evaluated, and cannot fail.
    """
    operation = ScalarOperation(template, name, can_fail=can_fail, right_first=right_first, makes_null=makes_null)
    return Term(nodes.Call(operation, [term.node for term in terms], kind))


def combine(template: str, kind: pa.DataType, *terms: Term, name: str = "", is_lazy: bool = False) -> Term:
    """Make a term whose parts are all evaluated, whether or not one is NULL; `is_lazy`: until one decides."""
    operation = ScalarOperation(template, name, stops_at_null=False, is_lazy=is_lazy)
    return Term(nodes.Call(operation, [term.node for term in terms], kind))


def listed(function: str, count: int) -> str:
    """The template of a call with so many arguments.

    >>> listed("least", 2)
    'least({0}, {1})'
    """
    return f"{function}({places(count)})"


def rising(made: Term, time: Term, *steps: Step, more: int | None = 0) -> Term:
    """A term that was made from a time and is what steps make of it, or so much more."""
    node = made.node
    if not isinstance(node, nodes.Call) or time.node not in node.parts:
        return made
    monotone = MonotoneArgument(node.parts.index(time.node), steps, more)
    return replace(made, node=nodes.Call(replace(node.operation, monotone=monotone), node.parts, node.type))


def evaluated_once(term: Term, make: Callable[[Term], Term]) -> Term:
    """Make a term from another that may be used many times, so that it is evaluated once."""
    return Term(nodes.let(term.node, lambda value: make(replace(term, node=value)).node))


def choice(conditions: Sequence[Term], results: Sequence[Term], kind: pa.DataType) -> Term:
    """Take the result of the first condition that is TRUE; a last result without a condition is the default."""
    parts = [part.node for pair in zip(conditions, results, strict=False) for part in pair]
    parts += [result.node for result in results[len(conditions) :]]
    return Term(nodes.Case(parts, kind))


def once(text: str) -> tuple[str, Callable[[str], str]]:
    """Name a part of a template that is used often, and give the function that puts it around its use."""
    name = f"once_{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    return name, lambda body: f"list_transform([{text}], lambda {name}: {body})[1]"


def failing(message: str) -> str:
    """The place in a template where the row fails."""
    return f"{{!{message}}}"


def quote_text(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def relabel(term: Term, kind: pa.DataType) -> Term:
    """Give a term another type whose DuckDB values are the same."""
    if isinstance(term.node, nodes.Column):
        return Term(nodes.Column(term.node.name, kind))
    return build("{0}", kind, term, makes_null=False)


def refuse(node: exp.Expr, why: str, hint: str | None = None) -> errors.Unsupported:
    """Make the error for a piece of SQL that is not supported."""
    return errors.Unsupported(why, detail=f"in `{text_of(node)}`", hint=hint)


def mismatch(node: exp.Expr, why: str, hint: str | None = None) -> errors.TypeMismatch:
    """Make the error for types that do not fit together."""
    return errors.TypeMismatch(why, detail=f"in `{text_of(node)}`", hint=hint)


def only(node: exp.Expr, *known: str) -> None:
    """Refuse a node with an argument that its compiler does not read: ignoring it would change the meaning."""
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known:
            raise refuse(
                node, f"this form of `{node.sql_name() if isinstance(node, exp.Func) else node.key}` is not supported"
            )
