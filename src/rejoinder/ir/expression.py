"""What a scalar expression is: DuckDB text over columns, and the type that Spark would give its values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rejoinder.ir.monotone import Rising

_SHORT = 150
_NAME = "once_"
BINDER = f"lambda {_NAME}"  # what a text has that is evaluated once
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


@dataclass(frozen=True)
class Comparison:
    """A predicate on one column that Arrow answers as Spark does: `operator` is a name of `pyarrow.compute`.

    `value` has the column's type, and is None for `is_null` and `is_valid`.
    """

    column: str
    operator: str
    value: Any = None


@dataclass(frozen=True)
class Expression:
    """DuckDB text, the type that its values have, and the columns that it reads.

    `text` is what the user wrote, for messages. `comparisons`, if given, is a conjunction with the same TRUE rows as
    `sql`. `throws` says that a row may fail. With `repeats`, `sql` is a list and `type` that of its elements: the row
    comes out once for each of them. At most one output of a projection may do that. `rising`, if given, is a column
    that the value (of a window: its start) rises with. `conjuncts` are the parts of a conjunction.
    """

    sql: str
    type: pa.DataType
    columns: tuple[str, ...]
    text: str = ""
    comparisons: tuple[Comparison, ...] = ()
    throws: bool = False
    repeats: bool = False
    rising: Rising | None = None
    conjuncts: tuple[Expression, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_column(self) -> bool:
        """Say whether this is a bare column, which needs no evaluation."""
        return len(self.columns) == 1 and self.sql == quoted(self.columns[0]) and not self.repeats

    @property
    def rises(self) -> Rising | None:
        """The column that the value rises with: itself, if it is one."""
        return Rising(self.columns[0]) if self.is_column else self.rising


def column(name: str, kind: pa.DataType) -> Expression:
    """Make the expression that is a column as it stands."""
    return Expression(quoted(name), kind, (name,), text=name)


def quoted(name: str) -> str:
    """Quote a column name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def conjunction(predicates: Sequence[Expression]) -> Expression | None:
    """Make the predicate that all of several are TRUE; later ones see only the rows that earlier ones let through.

    None stands for true.
    """
    if len(predicates) < 2:
        return predicates[0] if predicates else None
    all_comparisons = all(predicate.comparisons for predicate in predicates)
    return Expression(
        short_circuit([(f"({predicate.sql})", predicate.throws) for predicate in predicates], "AND"),
        pa.bool_(),
        tuple(dict.fromkeys(name for predicate in predicates for name in predicate.columns)),
        text=" AND ".join(predicate.text or predicate.sql for predicate in predicates),
        comparisons=tuple(one for each in predicates for one in each.comparisons) if all_comparisons else (),
        throws=any(predicate.throws for predicate in predicates),
        conjuncts=tuple(part for predicate in predicates for part in predicate.conjuncts or (predicate,)),
    )


def short_circuit(conditions: Sequence[tuple[str, bool]], word: str) -> str:
    """Connect conditions, each with whether it may fail, by AND or OR, so that a row stops where Spark would stop.

    DuckDB evaluates all of them for all rows; CASE narrows the rows down from condition to condition. Where none has
    decided, none has failed, and all of them are connected:

        CASE WHEN a THEN TRUE WHEN b THEN TRUE ELSE (a OR b OR c) END

    Where texts are long, each half of the conditions is evaluated once, the second one inside (`once`): DuckDB's cost
    doubles with each level of that, and halves make few levels.
    """
    if not any(throws for _, throws in conditions[1:]):
        return "(" + f" {word} ".join(text for text, _ in conditions) + ")"
    *before, _ = texts = [text for text, _ in conditions]
    if all(len(text) <= _SHORT for text in before):
        return _decided(before, texts[-1], word)
    half = len(conditions) // 2
    name, wrap = once(short_circuit(conditions[:half], word))
    return wrap(_decided([name], short_circuit(conditions[half:], word), word))


def _decided(tested: Sequence[str], rest: str, word: str) -> str:
    """Test conditions in turn before the rest is evaluated."""
    test, result = ("(NOT {})", "FALSE") if word == "AND" else ("{}", "TRUE")
    whens = " ".join(f"WHEN {test.replace('{}', each)} THEN {result}" for each in tested)
    return f"CASE {whens} ELSE ({f' {word} '.join([*tested, rest])}) END"


def once(sql: str, *, short: int = _SHORT) -> tuple[str, Callable[[str], str]]:
    """Name a text that is about to be used more than once, and give the function that puts it around its use.

    A short text is its own name. A long one is evaluated once: nested, texts would otherwise grow without bound.
    DuckDB has no LET, and a lambda over a list of one value is one. The name is a digest of the text, so that names
    within each other differ unless they stand for the same value.
    """
    if len(sql) <= short:
        return sql, lambda body: body
    name = f"{_NAME}{hashlib.blake2b(sql.encode(), digest_size=6).hexdigest()}"
    return name, lambda body: f"list_transform([{sql}], lambda {name}: {body})[1]"


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """Put expressions in the place of columns; a long text that is used often goes in once."""
    used = {name: columns[name] for name in expression.columns if name in columns}
    if not used:
        return expression
    if expression.is_column:
        return used[expression.columns[0]]
    texts = {name: inner.sql if inner.is_column else f"({inner.sql})" for name, inner in used.items()}
    wrappers: list[Callable[[str], str]] = []
    for name, inner in used.items():
        # evaluated ahead of its place a text could fail where it is guarded, so only what cannot fail is
        if not inner.throws and expression.sql.count(quoted(name)) > 1:
            texts[name], wrap = once(texts[name])
            wrappers.append(wrap)

    def swap(token: re.Match[str]) -> str:
        text = token.group()
        return text if text.startswith("'") else texts.get(text[1:-1].replace('""', '"'), text)

    sql = _TOKEN.sub(swap, expression.sql)
    for wrap in wrappers:
        sql = wrap(sql)
    needed: dict[str, None] = {}
    for name in expression.columns:
        needed |= dict.fromkeys(used[name].columns if name in used else (name,))
    comparisons: tuple[Comparison, ...] = ()
    if all(used[c.column].is_column for c in expression.comparisons if c.column in used):
        comparisons = tuple(
            replace(c, column=used[c.column].columns[0]) if c.column in used else c for c in expression.comparisons
        )
    throws = expression.throws or any(inner.throws for inner in used.values())
    rising = expression.rising
    if rising is not None and rising.column in used:
        below = used[rising.column].rises
        rising = None if below is None else rising.on(below)
    return replace(
        expression,
        sql=sql,
        columns=tuple(needed),
        comparisons=comparisons,
        throws=throws,
        rising=rising,
        conjuncts=tuple(substitute(part, columns) for part in expression.conjuncts),
    )


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Rename columns of an expression."""
    kinds = {old: Expression(quoted(new), expression.type, (new,), text=new) for old, new in names.items()}
    if expression.is_column and expression.columns[0] in names:
        return replace(kinds[expression.columns[0]], text=expression.text)
    return substitute(expression, kinds)
