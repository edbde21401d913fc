"""One entry per scalar function: how it is called, what it takes and gives, and how DuckDB computes it.

An ordinary function is one `ScalarFunction` in the file of its family, and lines in `tests/spark/expressions.yaml` that
prove it equal to Spark. Names, signatures for hints, compilation and evaluation all follow from the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.types.terms import Compiler, Term, build, mismatch, only

NodeCompiler = Callable[[Compiler, exp.Expr], Term]
Argument = Callable[[Compiler, exp.Expr, exp.Expr], Term]
"""The type rule of an argument: compile a node of a call, coerced as Spark does. Raises a `PlanningError`."""


@dataclass(frozen=True)
class ScalarFunction:
    """A function that is NULL if an argument is, unless its template says otherwise.

    - `signature`: name and arguments, as a hint shows them; `aliases` are other names for the same.
    - `arguments`: the type rule of each argument. Those at the end may be left out if they have `defaults`.
    - `result`: the type, or what makes it of the arguments.
    - `template`: DuckDB text (`ScalarOperation`), or what makes it of the arguments.
    - `can_fail`: whether a row may fail though no argument does, or what tells it of the arguments.
    - `parsed`: the class and, where the order of Spark differs, the names of the arguments that sqlglot gives the call;
      none for a function that sqlglot does not know. `ignored` are arguments that mean nothing in Spark.
    """

    signature: str
    arguments: tuple[Argument, ...]
    result: pa.DataType | Callable[[Sequence[Term]], pa.DataType]
    template: str | Callable[[Sequence[Term]], str]
    doc: str
    parsed: type[exp.Expr] | None = None
    order: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    defaults: tuple[Term, ...] = ()
    can_fail: bool | Callable[[Sequence[Term]], bool] = False
    makes_null: bool = True

    @property
    def name(self) -> str:
        """The name, in lower case."""
        return self.signature.partition("(")[0]

    @property
    def signatures(self) -> dict[str, str]:
        """Signatures by all names."""
        rest = self.signature.removeprefix(self.name)
        return {name: f"{name}{rest}" for name in (self.name, *self.aliases)}

    def compile(self, compiler: Compiler, node: exp.Expr) -> Term:
        """Compile a call. Raises a `PlanningError`."""
        given = self._given(node)
        terms = [rule(compiler, each, node) for rule, each in zip(self.arguments, given, strict=False)]
        terms += self.defaults[len(self.defaults) - len(self.arguments) + len(terms) :]
        template = self.template if isinstance(self.template, str) else self.template(terms)
        result = self.result(terms) if callable(self.result) else self.result
        can_fail = self.can_fail(terms) if callable(self.can_fail) else self.can_fail
        return build(template, result, *terms, name=self.name, can_fail=can_fail, makes_null=self.makes_null)

    def _given(self, node: exp.Expr) -> list[Any]:
        least, most = len(self.arguments) - len(self.defaults), len(self.arguments)
        if isinstance(node, exp.Anonymous):
            return list(arguments(node, *range(least, most + 1)))
        names = self.order or tuple(type(node).arg_types)[:most]
        only(node, *names, *self.ignored)
        return [node.args.get(name) for at, name in enumerate(names) if at < least or node.args.get(name) is not None]


def arguments(node: exp.Expr, *counts: int) -> Sequence[exp.Expr]:
    """Give the arguments of a function that sqlglot does not know."""
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


def parsed_as_nodes(functions: Iterable[ScalarFunction]) -> dict[type[exp.Expr], NodeCompiler]:
    """The compilers of functions that sqlglot knows, by its class."""
    return {function.parsed: function.compile for function in functions if function.parsed is not None}


def called_by_name(functions: Iterable[ScalarFunction]) -> dict[str, NodeCompiler]:
    """The compilers of the other functions, by name."""
    unparsed = [function for function in functions if function.parsed is None]
    return {name: function.compile for function in unparsed for name in function.signatures}
