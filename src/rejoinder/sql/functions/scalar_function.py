"""The entry of a scalar function or operator in the registry: how it is called, what it takes and returns.

An ordinary function is one `ScalarFunction` in the module of its family here, and one template under the same name in
the module of the same name in `kernels.duckdb.functions`. Names, hints, compilation, the list in the documentation and
evaluation follow from the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expressions.scalar_operation import Evaluation, MonotoneArgument, Nulls
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types.terms import Compiler, Term, call, mismatch, only

NodeCompiler = Callable[[Compiler, exp.Expr], Term]
Argument = Callable[[Compiler, exp.Expr, exp.Expr], Term]
"""The type rule of an argument: compile a node of a call, coerced as Spark does. Raises a `PlanningError`."""


@dataclass(frozen=True)
class ScalarFunction:
    """A function, an operator, or a special form such as CASE."""

    signature: str
    """Name and arguments, as a hint shows them: `left(text, n)`; of an operator, an example of its form: `x + y`."""
    doc: str
    """One sentence for the list of functions."""
    example: str
    """A condition that calls the function with literals and is TRUE. The tests evaluate it."""
    arguments: tuple[Argument, ...] = ()
    """The type rule of each argument. Those at the end may be left out if they have `defaults`."""
    result: pa.DataType | Callable[[Sequence[Term]], pa.DataType] | None = None
    """The type of the result, or the rule that derives it from the arguments."""
    _: KW_ONLY
    operator: str = ""
    """The name of an operator, whose signature does not start with a name."""
    aliases: tuple[str, ...] = ()
    """Other names. An alias with other arguments is a signature of its own."""
    parsed: type[exp.Expr] | tuple[type[exp.Expr], ...] = ()
    """The classes that sqlglot parses calls to; empty for a function that it does not know."""
    order: tuple[str, ...] = ()
    """The names of the arguments in such a class, if they are not in Spark's order."""
    ignored: tuple[str, ...] = ()
    """Arguments of the class that mean nothing in Spark."""
    defaults: tuple[Term, ...] = ()
    evaluation: Evaluation = "in turn"
    nulls: Nulls = "possible"
    can_fail: bool | Callable[[Sequence[Term]], bool] = False
    """Whether a row may fail although no argument does, or the rule that derives it from the arguments."""
    monotone: Callable[[Sequence[Term]], MonotoneArgument | None] | None = None
    """The rule for the argument with which the result is monotone."""
    outside_duckdb: bool = False
    """Whether its template calls a function of Arrow arrays (`arrow_functions`)."""
    form: NodeCompiler | None = None
    """Compiles a form of its own, instead of `arguments` and `result`."""
    by_name: bool = False
    """Whether the form also compiles a call that is read as it is written, besides the `parsed` classes."""

    @property
    def name(self) -> str:
        """The name: in lower case, or of an operator."""
        return self.operator or self.signature.partition("(")[0]

    @property
    def signatures(self) -> dict[str, str]:
        """Signatures by all names; of an operator that cannot be called by name, none."""
        first = {} if self.operator else {self.name: self.signature}
        rest = self.signature.removeprefix(self.name)
        full = (alias if "(" in alias else f"{alias}{rest}" for alias in self.aliases)
        return first | {signature.partition("(")[0]: signature for signature in full}

    @property
    def node_classes(self) -> tuple[type[exp.Expr], ...]:
        """The classes that sqlglot parses calls to."""
        return self.parsed if isinstance(self.parsed, tuple) else (self.parsed,)

    @property
    def is_called_by_name(self) -> bool:
        """Whether a call that sqlglot does not know by its name can be compiled."""
        return self.form is None or not self.node_classes or self.by_name

    def compile(self, compiler: Compiler, node: exp.Expr) -> Term:
        """Compile a call. Raises a `PlanningError`."""
        try:
            return self._compiled(compiler, node)
        except errors.TypeMismatch as failure:
            if failure.hint or failure.detail != f"in `{text_of(node)}`" or not self.example:
                raise
            raise mismatch(node, failure.fact, f"write it as in {self.example}") from failure

    def _compiled(self, compiler: Compiler, node: exp.Expr) -> Term:
        if self.form is not None:
            return self.form(compiler, node)
        nodes = self._argument_nodes(node)
        terms = [rule(compiler, argument, node) for rule, argument in zip(self.arguments, nodes, strict=False)]
        terms += self.defaults[len(self.defaults) - len(self.arguments) + len(terms) :]
        return call(
            self.name,
            self.result(terms) if callable(self.result) else self.result,
            *terms,
            evaluation=self.evaluation,
            nulls=self.nulls,
            can_fail=self.can_fail(terms) if callable(self.can_fail) else self.can_fail,
            monotone=None if self.monotone is None else self.monotone(terms),
        )

    def _argument_nodes(self, node: exp.Expr) -> list[Any]:
        least, most = len(self.arguments) - len(self.defaults), len(self.arguments)
        if isinstance(node, exp.Anonymous):
            return list(arguments(node, *range(least, most + 1)))
        names = self.order or tuple(type(node).arg_types)[:most]
        only(node, *names, *self.ignored)
        required = names[:least]
        return [node.args.get(name) for name in names if name in required or node.args.get(name) is not None]


def arguments(node: exp.Expr, *counts: int) -> Sequence[exp.Expr]:
    """The arguments of a function that sqlglot does not know. Raises `TypeMismatch` for another number of them."""
    if len(node.expressions) not in counts:
        raise mismatch(
            node, f"`{node.name}` takes {' or '.join(map(str, counts))} arguments, not {len(node.expressions)}"
        )
    return list(node.expressions)


def anything(compiler: Compiler, node: exp.Expr, parent: exp.Expr) -> Term:
    """Take an argument as it is."""
    return compiler.compile(node)


def first_type(terms: Sequence[Term]) -> pa.DataType:
    """The type of the first argument."""
    return terms[0].type
