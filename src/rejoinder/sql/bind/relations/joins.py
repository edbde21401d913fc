"""Bind joins: the kind, the condition, and the columns of the result.

    a RIGHT JOIN b ON c                →  b LEFT JOIN a ON c          -- `*` lists the columns of a first
    a JOIN b USING (k)                 →  a JOIN b ON a.k = b.k       -- b.k is hidden in `*`
    a FULL JOIN b USING (k)            →  a FULL JOIN b ON a.k = b.k  -- k is COALESCE(a.k, b.k)
    a NATURAL JOIN b                   →  a JOIN b USING (all common names)

SEMI and ANTI alone mean LEFT SEMI and LEFT ANTI, as in Spark. FULL ANTI JOIN is an extension: the rows of both sides
that have no match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch, UnknownName, Unsupported
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import coalesce
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Arrival, Join, JoinKind, Predicate, Project
from rejoinder.sql.bind.predicates import bind_condition, coerced, equal
from rejoinder.sql.bind.relations.arrival_joins import at_arrival, is_at_arrival
from rejoinder.sql.bind.relations.as_of_joins import as_of, is_as_of
from rejoinder.sql.bind.relations.repeated_rows import repeat_sides
from rejoinder.sql.bind.scope import Column, Scope, Side
from rejoinder.sql.functions.time.windows import ColumnBounds
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types.spark_types import common_type

KINDS: dict[tuple[str, str], tuple[JoinKind, bool]] = {
    ("", ""): ("inner", False),
    ("", "INNER"): ("inner", False),
    ("", "CROSS"): ("inner", False),
    ("LEFT", ""): ("left", False),
    ("RIGHT", ""): ("left", True),
    ("FULL", ""): ("full", False),
    ("LEFT", "OUTER"): ("left", False),
    ("RIGHT", "OUTER"): ("left", True),
    ("FULL", "OUTER"): ("full", False),
    ("", "SEMI"): ("semi", False),
    ("LEFT", "SEMI"): ("semi", False),
    ("RIGHT", "SEMI"): ("semi", True),
    ("", "ANTI"): ("anti", False),
    ("LEFT", "ANTI"): ("anti", False),
    ("RIGHT", "ANTI"): ("anti", True),
    ("FULL", "ANTI"): ("full anti", False),
}
"""By the words before JOIN (side, kind): the kind of the plan, and whether its sides are swapped."""
_SUPPORTED = "INNER, LEFT, RIGHT, FULL, [LEFT | RIGHT] SEMI, [LEFT | RIGHT | FULL] ANTI and CROSS JOIN are"


def combine(left: Side, right: Side, node: exp.Join, numbers: Iterator[int], event_time: str | None = None) -> Side:
    """Bind a JOIN (or comma); `event_time` is a column of the right side. Raises a `PlanningError`."""
    kind, is_swapped = join_kind(node)
    names = _shared_names(left.scope, right.scope, node)
    on = node.args.get("on")
    if names is not None:
        pairs = [_pair(left.scope, right.scope, name, node) for name in names]
        predicates = tuple(predicate for ours, theirs in pairs for predicate in _equal(ours, theirs, node))
    else:
        pairs = []
        if on is not None:
            left, right = (Side(*side) for side in repeat_sides(left.parts, right.parts, on, numbers))
        both = left.scope.beside(right.scope)
        predicates = bind_condition(on, both) if on is not None else ()
    if is_as_of(node):
        right, valid = as_of(left.scope, right, predicates, node, numbers, event_time)
        predicates = (*predicates, *valid)
    first, second = (right, left) if is_swapped else (left, right)
    joined: Join | Arrival = Join(first.root, second.root, predicates, kind)
    if is_at_arrival(node):
        joined = at_arrival(left.root, right.root, predicates, kind, swapped=is_swapped, node=node)
    if kind in ("semi", "anti"):
        keys = [theirs if is_swapped else ours for ours, theirs in pairs]
        kept = first.scope.without(second.scope)
        return Side(joined, kept.with_columns([*keys, *(c for c in kept.columns if c not in keys)]))
    if kind in ("full", "full anti") and pairs:
        return _coalesced(left.scope, right.scope, joined, pairs, next(numbers), node)
    shown, hidden = ([pair[i] for pair in pairs] for i in ((1, 0) if is_swapped else (0, 1)))
    return Side(joined, _merged(left.scope, right.scope, shown, hidden))


def join_kind(node: exp.Join) -> tuple[JoinKind, bool]:
    """Return the kind of a JOIN, and whether its sides are swapped. Raises `Unsupported`."""
    kind = KINDS.get((node.side.upper(), node.kind.upper()))
    if kind is None or node.method.upper() not in ("", "NATURAL", "ASOF"):
        raise Unsupported(f"{_words(node)} is not supported", detail=text_of(node), hint=_SUPPORTED)
    if is_as_of(node) and (kind[0] not in ("inner", "left") or kind[1] or node.kind.upper() == "CROSS"):
        hint = "use ASOF JOIN or ASOF LEFT JOIN, with the versions on the right"
        raise Unsupported(f"{_words(node)} as of a time is not supported", detail=text_of(node), hint=hint)
    if node.method.upper() == "NATURAL" and (kind[0] not in ("inner", "left", "full") or node.kind.upper() == "CROSS"):
        hint = "use NATURAL with INNER, LEFT, RIGHT or FULL, or name the columns with USING (…)"
        raise Unsupported(f"{_words(node)} is not supported", detail=text_of(node), hint=hint)
    return kind


def _words(node: exp.Join) -> str:
    return " ".join(word.upper() for word in (node.method, node.side, node.kind, "JOIN") if word)


def _shared_names(left: Scope, right: Scope, node: exp.Join) -> list[str] | None:
    """Return the names of USING or NATURAL; None if the join has neither."""
    if node.method.upper() == "NATURAL":
        if node.args.get("on") or node.args.get("using"):
            hint = "remove NATURAL, or ON and USING"
            raise InvalidSql(f"{_words(node)} takes no condition", detail=text_of(node), hint=hint)
        theirs = {c.name.lower() for c in right.all(None, "")}
        return [c.name for c in left.all(None, "") if c.name.lower() in theirs]
    using = node.args.get("using")
    if not using:
        return None
    names = [identifier.name for identifier in using]
    repeated = next((name for n, name in enumerate(names) if name.lower() in map(str.lower, names[:n])), None)
    if repeated is not None:
        raise InvalidSql(f"column `{repeated}` appears twice in USING", detail=text_of(node), hint="name it once")
    return names


def _pair(left: Scope, right: Scope, name: str, node: exp.Join) -> tuple[Column, Column]:
    columns = []
    for side, scope in (("left", left), ("right", right)):
        try:
            columns.append(scope.find(None, name, text_of(node)))
        except UnknownName as failure:
            fact = f"there is no column `{name}` on the {side} side of USING"
            raise UnknownName(fact, detail=failure.detail, hint=failure.hint) from failure
    return columns[0], columns[1]


def _equal(ours: Column, theirs: Column, node: exp.Join) -> list[Predicate]:
    """Return the equality of a USING pair. Windows are equal if their starts and, unless fixed, lengths are."""
    names = (f"left {ours.name}", f"right {theirs.name}")
    ids, kinds = [(ours.id, theirs.id)], (ours.type, theirs.type)
    if ours.bounds is not None and theirs.bounds is not None and ours.type == theirs.type:
        ids, kinds = [(ours.bounds.start, theirs.bounds.start)], (ours.type.field("start").type,) * 2
        if ours.bounds.size is None or ours.bounds.size != theirs.bounds.size:
            ids.append((ours.bounds.end, theirs.bounds.end))
    text = f"USING ({ours.name})"
    return [equal(column(i, kinds[0]), column(j, kinds[1]), node, names, text) for i, j in ids]


def _merged(left: Scope, right: Scope, shown: Sequence[Column], hidden: Sequence[Column]) -> Scope:
    """Return the columns of both sides, `shown` first. Only the qualified name refers to a `hidden` column."""
    rest = [replace(c, hidden=True) if c in hidden else c for c in (*left.columns, *right.columns) if c not in shown]
    return left.beside(right).with_columns((*shown, *rest))


def _coalesced(
    left: Scope,
    right: Scope,
    joined: Join | Arrival,
    pairs: Sequence[tuple[Column, Column]],
    number: int,
    node: exp.Join,
) -> Side:
    """Replace each USING pair of a FULL JOIN by `COALESCE(left, right)`, because either side can be padded."""
    outputs = {i: column(i, kind) for i, kind in left.beside(right).carried().items()}
    shown = []
    for ours, theirs in pairs:
        try:
            kind = common_type(ours.type, theirs.type)
        except TypeMismatch as failure:
            raise TypeMismatch(failure.fact, detail=text_of(node), hint=failure.hint) from failure
        merged = Column("", ours.name, column_text(number, ours.name), kind)
        outputs[merged.id] = _coalesce(column(ours.id, ours.type), column(theirs.id, theirs.type), kind, node)
        if ours.bounds is not None and theirs.bounds is not None:
            bounds = ColumnBounds.of(merged.id)
            merged = replace(merged, bounds=bounds)
            for own, which in ((bounds.start, "start"), (bounds.end, "end")):
                first, second = (outputs[getattr(c.bounds, which)] for c in (ours, theirs))
                outputs[own] = _coalesce(first, second, first.type, node)
        shown.append(merged)
    scope = _merged(left, right, (), [c for pair in pairs for c in pair])
    return Side(Project(joined, tuple(outputs.items())), scope.with_columns([*shown, *scope.columns]))


def _coalesce(left: Expression, right: Expression, kind: pa.DataType, node: exp.Join) -> Expression:
    sides = coerced(left, kind, node), coerced(right, kind, node)
    return Expression(coalesce([side.node for side in sides]), f"coalesce({left.text}, {right.text})")
