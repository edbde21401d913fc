"""The logical plan: a query as a tree of relational operators, as the binder made it.

Columns have identifiers that are unique within a query (`3.o_custkey`: scan number and name), so that trees can be
put together and taken apart without renaming. Expressions refer to identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from rejoinder.kernels.evaluate import Comparison, Expression, quoted

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


@dataclass(frozen=True)
class Predicate:
    """One conjunct of a condition; `equality` holds its two sides where it is one, cast to a common key type."""

    expression: Expression
    equality: tuple[Expression, Expression] | None = None


@dataclass(frozen=True)
class Scan:
    """The rows of a source, or of a view that is kept as a relation of its own."""

    relation: str
    columns: tuple[tuple[str, str], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class Filter:
    """The rows for which all predicates are true."""

    input: Node
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class Project:
    """New columns from old ones."""

    input: Node
    outputs: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Join:
    """Pairs of rows for which all predicates are true: an inner join."""

    left: Node
    right: Node
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class UnionAll:
    """The rows of all inputs; columns go by position and take new identifiers."""

    inputs: tuple[Node, ...]
    selected: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True)
class Distinct:
    """Each row once; `columns` are the identifiers that make a row."""

    input: Node
    columns: tuple[tuple[str, pa.DataType], ...]


Node = Scan | Filter | Project | Join | UnionAll | Distinct


@dataclass(frozen=True)
class Query:
    """A tree with the names and identifiers of its result columns."""

    root: Node
    outputs: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the result."""
        return pa.schema([(name, expression.type) for name, expression in self.outputs])


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Put expressions in the place of columns. What is not mentioned stays."""
    if not any(name in columns for name in expression.columns):
        return expression
    if expression.is_column:
        return columns[expression.columns[0]]

    def swap(token: re.Match[str]) -> str:
        text = token.group()
        if text.startswith("'"):
            return text
        inner = columns.get(text[1:-1].replace('""', '"'))
        if inner is None:
            return text
        return inner.sql if inner.is_column else f"({inner.sql})"

    needed: dict[str, None] = {}
    for name in expression.columns:
        needed |= dict.fromkeys(columns[name].columns if name in columns else (name,))
    comparisons: list[Comparison] = []
    for comparison in expression.comparisons:
        inner = columns.get(comparison.column)
        if inner is not None and not inner.is_column:
            comparisons = []
            break
        comparisons.append(replace(comparison, column=inner.columns[0]) if inner is not None else comparison)
    return replace(
        expression, sql=_TOKEN.sub(swap, expression.sql), columns=tuple(needed), comparisons=tuple(comparisons)
    )


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Rename columns of an expression."""
    kinds = {old: Expression(quoted(new), expression.type, (new,), text=new) for old, new in names.items()}
    if expression.is_column and expression.columns[0] in names:
        return replace(kinds[expression.columns[0]], text=expression.text)
    return substitute(expression, kinds)


def conjunction(predicates: list[Expression]) -> Expression | None:
    """All of the predicates as one; None stands for true."""
    if not predicates:
        return None
    if len(predicates) == 1:
        return predicates[0]
    columns = dict.fromkeys(name for predicate in predicates for name in predicate.columns)
    comparable = all(predicate.comparisons for predicate in predicates)
    return Expression(
        " AND ".join(f"({predicate.sql})" for predicate in predicates),
        pa.bool_(),
        tuple(columns),
        text=" AND ".join(predicate.text or predicate.sql for predicate in predicates),
        comparisons=tuple(c for p in predicates for c in p.comparisons) if comparable else (),
    )
