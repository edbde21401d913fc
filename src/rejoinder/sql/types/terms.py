"""Compiled pieces of an expression, and the words of DuckDB that they are put together from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.ir.expression import BINDER, Comparison, once, quoted
from rejoinder.ir.monotone import Rising, Step
from rejoinder.sql.parse.clauses import text_of

_PLACE = re.compile(r"\{([0-9])\}")


@dataclass(frozen=True)
class Bounds:
    """Start and end of a window as terms of their own, and its length in the unit of its times where that is fixed."""

    start: Term
    end: Term
    size: int | None = None


@dataclass(frozen=True)
class Term:
    """DuckDB text whose values and type are Spark's.

    `throws` says that a row may fail, so that it must not be evaluated where Spark would not. A literal keeps its
    `value`; `suffixed` says that it was written with a suffix such as `1L`, or as `1::BIGINT`. A predicate that Arrow
    can answer keeps its `comparisons`, a window that was made by us its `bounds`, a time made from another what it is
    `rising` with.
    """

    sql: str
    type: pa.DataType
    columns: tuple[str, ...] = ()
    throws: bool = False
    literal: bool = False
    suffixed: bool = False
    value: Any = None
    comparisons: tuple[Comparison, ...] = ()
    bounds: Bounds | None = None
    rising: Rising | None = None

    @property
    def is_column(self) -> bool:
        """Say whether this is a bare column."""
        return len(self.columns) == 1 and self.sql == quoted(self.columns[0])

    @property
    def is_null(self) -> bool:
        """Say whether this is the untyped NULL."""
        return bool(pa.types.is_null(self.type))


class Compiler(Protocol):
    """What a node's compiler may ask for: the terms of the nodes below."""

    def compile(self, node: exp.Expr) -> Term:
        """Compile a node. Raises a `PlanningError`."""
        ...

    def resolve(self, column: exp.Column) -> Term:
        """Find a column. Raises what the scope raises."""
        ...

    def repeated(self, starts: str) -> str | None:
        """The column with the start of the window that a row was repeated for, by the text of all starts."""
        ...


def merge_columns(terms: Iterable[Term]) -> tuple[str, ...]:
    """List the columns of several terms, each once, in order of appearance."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def build(template: str, kind: pa.DataType, *terms: Term, throws: bool = False, right_first: bool = False) -> Term:
    """Make a term that is NULL if a part is, from a template with `{0}`, `{1}`, … for the texts of its parts.

    (A repetition in a regular expression must not look like them: `{2,2}`, not `{2}`.)

    Spark evaluates the parts in turn, the right one first for divisions, and stops at a NULL: what comes after is not
    evaluated, and cannot fail.
    """
    turns = list(reversed(range(len(terms)))) if right_first else list(range(len(terms)))
    failing_turns = [turn for turn, place in enumerate(turns) if terms[place].throws]
    guarded = {
        place
        for place in turns[: max(failing_turns, default=0)]
        if not (terms[place].literal and terms[place].value is not None)
    }
    sql = _filled(template, terms, turns, guarded)
    return Term(sql, kind, merge_columns(terms), throws=throws or bool(failing_turns))


def rising(made: Term, time: Term, *steps: Step, more: int | None = 0) -> Term:
    """A term that was made from a time and is what steps make of it, or so much more; if that is made of a column."""
    below = Rising(time.columns[0]) if time.is_column else time.rising
    return made if below is None else replace(made, rising=below.then(*steps, more=more))


def combine(template: str, kind: pa.DataType, *terms: Term) -> Term:
    """Make a term whose parts are all evaluated, whether or not one is NULL."""
    throws = any(term.throws for term in terms)
    return Term(_filled(template, terms, range(len(terms)), set()), kind, merge_columns(terms), throws=throws)


def evaluated_once(term: Term, make: Callable[[Term], Term]) -> Term:
    """Make a term from another that may be used many times, so that it is evaluated once."""
    name, wrap = once(term.sql)
    if name == term.sql:
        return make(term)
    made = make(Term(name, term.type))
    columns = merge_columns((term, made))
    return Term(wrap(made.sql), made.type, columns, throws=term.throws or made.throws)


def _filled(template: str, terms: Sequence[Term], turns: Sequence[int], guarded: Collection[int]) -> str:
    """Fill a template in; a part that is used more than once is evaluated once, a guarded one before those after it.

    The smaller of two long parts is written twice instead: DuckDB's cost doubles with each text that is evaluated once
    inside of another, and the larger one must not be inside.
    """
    uses = [template.count(f"{{{place}}}") + (place in guarded) for place in range(len(terms))]
    names = [term.sql for term in terms]
    wraps: dict[int, Callable[[str], str]] = {}
    for place, term in enumerate(terms):
        inside = max((len(other.sql) for other in terms if other is not term and BINDER in other.sql), default=0)
        if uses[place] > 1 and (uses[place] > 2 or len(term.sql) > inside):
            names[place], wraps[place] = once(term.sql)
    sql = _PLACE.sub(lambda found: names[int(found.group(1))], template)
    for place in reversed(turns):
        if place in guarded:
            sql = f"CASE WHEN {names[place]} IS NOT NULL THEN {sql} END"
        if place in wraps:
            sql = wraps[place](sql)
    return sql


def failing(message: str) -> str:
    """Write the call that fails the row."""
    return f"error({quote_text(message)})"


def quote_text(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def relabel(term: Term, kind: pa.DataType) -> Term:
    """Give a term another type whose DuckDB values are the same."""
    return replace(term, type=kind, comparisons=(), bounds=None, rising=None)


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
