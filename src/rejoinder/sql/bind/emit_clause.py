"""EMIT: when a view emits its changes. The clause ends a query and is split off before sqlglot parses the query.

    EMIT CHANGES                          -- in the epoch of the change: the default
    EMIT EVERY INTERVAL 10 SECONDS        -- consolidated, at every tenth second of the clock
    EMIT WHEN WATERMARK PAST expression   -- once the watermark has passed the expression
    EMIT FINAL                            -- once the row cannot change any more

The binder adds the emit time of a row as a hidden output and removes it after binding:

    SELECT k, w, COUNT(*) FROM t GROUP BY k, TUMBLE(ts, …) AS w EMIT FINAL
    SELECT k, w, COUNT(*), WINDOW_END(TUMBLE(ts, …)) AS __emit_at_end FROM t GROUP BY k, TUMBLE(ts, …) AS w
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, Unsupported
from rejoinder.ir.logical import EMIT_AT, Emission, Policy, Query, after
from rejoinder.sql.bind.groups.aggregate_functions import aggregates_in
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.types.interval_literals import interval_of
from rejoinder.sql.types.spark_types import is_integer, spark_name

_HINT = "EMIT CHANGES, EMIT EVERY INTERVAL …, EMIT WHEN WATERMARK PAST …, or EMIT FINAL"
_POLICIES: dict[Policy, tuple[str, ...]] = {
    "changes": ("EMIT", "CHANGES"),
    "every": ("EMIT", "EVERY"),
    "watermark": ("EMIT", "WHEN", "WATERMARK", "PAST"),
    "final": ("EMIT", "FINAL"),
}
_ON_CLOSE = ["EMIT", "ON", "WINDOW", "CLOSE"]
"""RisingWave's spelling of EMIT FINAL."""
_LENGTH = "as in INTERVAL 10 SECONDS"
_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "VALIDITY_WINDOW", "VALIDITY", "WINDOW")
_END = f"{EMIT_AT}_end"
"""The name of the hidden output if it is the end of a window: the watermark must reach it, not pass it."""


@dataclass(frozen=True)
class Clause:
    """An EMIT clause: the policy, and the text of its interval or expression."""

    policy: Policy
    argument: str = ""


def split_emission(text: str) -> tuple[str, Clause | None]:
    """Split the EMIT clause off a query.

    >>> split_emission("SELECT id FROM t EMIT EVERY INTERVAL 1 MINUTE")
    ('SELECT id FROM t', Clause(policy='every', argument='INTERVAL 1 MINUTE'))
    """
    depth = 0
    tokens = sqlglot.tokenize(text, read=SparkSql)
    for position, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        starts = token.text.upper() == "EMIT" and token.token_type != TokenType.IDENTIFIER
        if depth == 0 and starts and _is_clause(tokens[position:]):
            return text[: token.start].rstrip(), _clause(text, tokens[position:])
    return text, None


def defers_emission(query: str) -> bool:
    """Return whether a query emits its changes later than in their own epoch."""
    _, clause = split_emission(query)
    return clause is not None and clause.policy != "changes"


def emits_final(query: str) -> bool:
    """Return whether a query has EMIT FINAL."""
    _, clause = split_emission(query)
    return clause is not None and clause.policy == "final"


def _is_clause(tokens: list[Token]) -> bool:
    return len(tokens) == 1 or tokens[1].text.upper() in ("CHANGES", "EVERY", "WHEN", "FINAL", "AFTER", "ON")


def _clause(text: str, tokens: list[Token]) -> Clause:
    words = [token.text.upper() for token in tokens]
    end = next((t.start for t in tokens if t.token_type == TokenType.SEMICOLON), len(text))
    if words[:4] == _ON_CLOSE and not text[tokens[3].end + 1 : end].strip():
        return Clause("final")
    for policy, start in _POLICIES.items():
        if words[: len(start)] != list(start):
            continue
        argument = text[tokens[len(start) - 1].end + 1 : end].strip()
        if bool(argument) == (policy in ("every", "watermark")):
            return Clause(policy, argument)
    raise InvalidSql("unknown EMIT clause", detail=text[tokens[0].start : end], hint=_HINT)


def interval_microseconds(clause: Clause, words: str = "EMIT EVERY", *, least: int = 1) -> int:
    """Return the length of an interval. Raises `InvalidSql` if it is less than `least`; `words` name the clause."""
    try:
        length, why = interval_of(sqlglot.parse_one(clause.argument, read=SparkSql)), "it is not an interval"
    except SqlglotError as failure:
        raise InvalidSql(f"{words} takes an interval", detail=clause.argument, hint=_LENGTH) from failure
    except PlanningError as refused:
        length, why = None, refused.fact
    if length is not None and length.months:
        length, why = None, "months have no fixed length"
    elif length is not None and length.micros < least:
        length, why = None, f"it must {'be positive' if least else 'not be negative'}"
    if length is None:
        raise InvalidSql(f"{words} {clause.argument} is not a length of time", detail=why, hint=_LENGTH)
    return length.micros


def with_emit_time(node: exp.Query, clause: Clause) -> exp.Query:
    """Add the hidden output with the emit time of a row."""
    if not isinstance(node, exp.Select) or node.args.get("distinct"):
        raise Unsupported(
            f"EMIT {clause.policy.upper()} after UNION or DISTINCT is not supported",
            detail=text_of(node),
            hint="write SELECT … FROM (…) AS q EMIT …",
        )
    item = _emit_time(clause) if clause.policy == "watermark" else _window_end(node)
    assert item is not None
    name = EMIT_AT if clause.policy == "watermark" else _END
    return node.select(exp.alias_(item, name, quoted=True), append=True, copy=True)


def _emit_time(clause: Clause) -> exp.Expr:
    hint = "use an event-time column, or the end of a window: WINDOW_END(w)"
    try:
        item = sqlglot.parse_one(clause.argument, read=SparkSql)
    except SqlglotError as failure:
        raise InvalidSql("EMIT WHEN WATERMARK PAST takes one time", detail=clause.argument, hint=hint) from failure
    if isinstance(item, exp.Alias):
        raise InvalidSql("EMIT WHEN WATERMARK PAST takes one time", detail=clause.argument, hint=hint)
    for call in aggregates_in(item):
        raise InvalidSql(
            f"EMIT WHEN WATERMARK PAST `{text_of(call)}`: an aggregate changes with every row of its group",
            detail=clause.argument,
            hint=hint,
        )
    return item


def resolve_emit_time(node: exp.Select, scope: Scope) -> exp.Select:
    """Replace names of other outputs in the emit time by their expressions.

        before: SELECT a.w AS w, w.end AS __emit_at     FROM a JOIN b …
        after:  SELECT a.w AS w, a.w.end AS __emit_at_end FROM a JOIN b …

    Outputs take precedence over the columns of FROM, because EMIT is about the rows of the view. A qualified column,
    `a.ts`, is a column of FROM.
    """
    if node.expressions[-1].alias != EMIT_AT:
        return node
    outputs = _named_outputs(node.expressions[:-1])

    def meant(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or (part.table and scope.knows(part)):
            return part
        first, *fields = part.parts
        output = outputs.get(first.name.lower())
        if output is None:
            return part
        for name in fields:
            output = exp.Dot(this=output.copy(), expression=name.copy())
        return output.copy()

    item = node.expressions[-1].this.copy().transform(meant)
    named = exp.alias_(item, _END if _is_end(item, node, scope) else EMIT_AT, quoted=True)
    return node.select(*node.expressions[:-1], named, append=False, copy=True)


def _named_outputs(items: Sequence[exp.Expr]) -> dict[str, exp.Expr]:
    """Return the expressions of a SELECT list by lower-case name, without duplicate names and aggregates."""
    names = [item.alias_or_name.lower() for item in items]
    outputs = {
        name: item.this if isinstance(item, exp.Alias) else item
        for name, item in zip(names, items, strict=True)
        if names.count(name) == 1 and isinstance(item, exp.Alias | exp.Column) and not item.is_star
    }
    return {name: output for name, output in outputs.items() if next(aggregates_in(output), None) is None}


def _is_end(item: exp.Expr, node: exp.Select, scope: Scope) -> bool:
    """Return whether an emit time is the end of a window plus a constant: WINDOW_END(w), w.end, or such a column."""
    while isinstance(item, exp.Add | exp.Sub | exp.Paren):
        item = item.this
    if isinstance(item, exp.Dot) or (isinstance(item, exp.Column) and item.table and not scope.knows(item)):
        return str(item.parts[-1].name).lower() == "end"
    return (isinstance(item, exp.Anonymous) and item.name.upper() == "WINDOW_END") or _is_window_end(item, node)


def groups_by_window(node: exp.Query) -> bool:
    """Return whether a query groups by a window. Its rows are final at the end of the window."""
    return isinstance(node, exp.Select) and _window_end(node) is not None


def _window_end(node: exp.Select) -> exp.Expression | None:
    """Return the end of the window that a query groups by."""
    group = node.args.get("group")
    for key in group.expressions if group is not None else []:
        name = key.name if isinstance(key, exp.Anonymous) else key.sql_name() if isinstance(key, exp.Func) else ""
        if name.upper() in _WINDOWS:
            return exp.Anonymous(this="WINDOW_END", expressions=[key.copy()])
        if isinstance(key, exp.Column) and _is_window_end(key, node):
            return key.copy()
    return None


def _is_window_end(item: exp.Expr, node: exp.Query) -> bool:
    """Return whether a column is `window_end` of TUMBLE(TABLE …) or HOP(TABLE …) in FROM."""
    if not isinstance(item, exp.Column) or item.name.lower() != "window_end" or not isinstance(node, exp.Select):
        return False
    items = [node.args.get("from_") or node.args.get("from"), *(node.args.get("joins") or [])]
    functions = [item.this.this for item in items if item is not None and isinstance(item.this, exp.Table)]
    calls = [call for function in functions for call in function.find_all(exp.Anonymous)]
    return any(call.name.upper() in ("TUMBLE", "HOP", "CUMULATE") for call in calls)


def take_emit_time(query: Query, clause: Clause) -> Query:
    """Move the hidden output into the query's `Emission`, as the first watermark at which a row is emitted."""
    name, time = query.outputs[-1]
    assert name in (EMIT_AT, _END)
    kind = time.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or is_integer(kind)):
        raise TypeMismatch(
            f"EMIT WHEN WATERMARK PAST a value of type {spark_name(kind)}",
            detail=clause.argument,
            hint="use an event-time column, or the end of a window: WINDOW_END(w)",
        )
    emit_time = time if name == _END else after(time)
    return replace(query, outputs=query.outputs[:-1], emission=Emission(clause.policy, emit_time=emit_time))
