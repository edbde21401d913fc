"""Compiled parts of an expression: nodes, and what only the compiler has to know about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.nodes import Node
from rejoinder.ir.expressions.scalar_operation import Evaluation, MonotoneArgument, Nulls, Option, ScalarOperation
from rejoinder.kernels.duckdb.functions.function_templates import RENDERINGS
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

    `suffixed`: a literal was written with a suffix such as `1L`, or as `1::BIGINT`. `bounds`: the ends of a window that
    TUMBLE, HOP or `window` made.
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
    """What the compiler of a function may ask for: the terms of its arguments."""

    def compile(self, node: exp.Expr) -> Term:
        """Compile a node. Raises a `PlanningError`."""
        ...

    def resolve(self, column: exp.Column) -> Term:
        """Find a column. Raises what the scope raises."""
        ...

    @property
    def depth(self) -> int:
        """In how many lambdas the node is."""
        ...

    def with_variables(self, terms: Mapping[str, Term]) -> Compiler:
        """The compiler for the body of a lambda: names in lower case, and what they stand for."""
        ...

    def repeated(self, starts: Node) -> str | None:
        """The column with the start of the window that a row was repeated for, by the list of all starts."""
        ...


def call(
    name: str,
    kind: pa.DataType,
    *terms: Term,
    options: tuple[Option, ...] = (),
    evaluation: Evaluation = "in turn",
    nulls: Nulls = "possible",
    can_fail: bool = False,
    monotone: MonotoneArgument | None = None,
) -> Term:
    """Make the term that calls a function (`ScalarOperation`), which has a template in `kernels.duckdb.functions`."""
    assert name in RENDERINGS, f"{name} has no template"
    operation = ScalarOperation(name, options, evaluation, nulls, can_fail, monotone)
    return Term(nodes.Call(operation, [term.node for term in terms], kind))


def evaluated_once(term: Term, make: Callable[[Term], Term]) -> Term:
    """Make a term from another that may be used many times, so that it is evaluated once."""
    return Term(nodes.let(term.node, lambda value: make(replace(term, node=value)).node))


def choice(conditions: Sequence[Term], results: Sequence[Term], kind: pa.DataType) -> Term:
    """Take the result of the first condition that is TRUE; a last result without a condition is the default."""
    parts = [part.node for pair in zip(conditions, results, strict=False) for part in pair]
    parts += [result.node for result in results[len(conditions) :]]
    return Term(nodes.Case(parts, kind))


def relabel(term: Term, kind: pa.DataType) -> Term:
    """Give a term another type whose values are stored in the same way."""
    if isinstance(term.node, nodes.Column):
        return Term(nodes.Column(term.node.name, kind))
    return call("relabel", kind, term, nulls="propagated")


def refuse(node: exp.Expr, why: str, hint: str | None = None) -> errors.Unsupported:
    """Make the error for a piece of SQL that is not supported."""
    return errors.Unsupported(why, detail=f"in `{text_of(node)}`", hint=hint)


def mismatch(node: exp.Expr, why: str, hint: str | None = None) -> errors.TypeMismatch:
    """Make the error for types that do not fit together."""
    return errors.TypeMismatch(why, detail=f"in `{text_of(node)}`", hint=hint)


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with other arguments than `names`: to ignore one would change the meaning."""
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in names:
            raise refuse(
                node, f"this form of `{node.sql_name() if isinstance(node, exp.Func) else node.key}` is not supported"
            )
