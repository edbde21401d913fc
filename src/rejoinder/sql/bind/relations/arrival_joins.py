"""Joins at arrival: each row is joined once, with the other side as it is in the epoch in which the row arrives.

    orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP AS r ON o.currency = r.currency

The current time is that of the epoch: rows of the same epoch match each other. The left side, and for FULL both sides,
must be append-only: to retract a row, the engine would have to know how it was joined back then.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rejoinder.errors import Unsupported
from rejoinder.ir import logical
from rejoinder.ir.identities import UnitRow
from rejoinder.ir.logical import Node
from rejoinder.plan.operations.set_operations import SET_OPERATIONS
from rejoinder.sql.parse.clauses import text_of

_KINDS: dict[logical.JoinKind, logical.ArrivalKind] = {
    "inner": "inner",
    "left": "left",
    "full": "full",
    "semi": "semi",
    "anti": "anti",
}


def is_at_arrival(node: exp.Join) -> bool:
    """Return whether a join is FOR SYSTEM_TIME AS OF the current time."""
    version = node.this.args.get("version") if isinstance(node.this, exp.Table) else None
    if not isinstance(version, exp.Version) or version.name.upper() != "TIMESTAMP":
        return False
    time = version.expression
    named = isinstance(time, exp.Anonymous) and time.name.upper() in ("NOW", "PROCTIME")
    return named or isinstance(time, exp.CurrentTimestamp)


def at_arrival(
    left: Node,
    right: Node,
    predicates: tuple[logical.Predicate, ...],
    kind: logical.JoinKind,
    *,
    swapped: bool,
    node: exp.Join,
) -> logical.Arrival:
    """Build the join. Raises `Unsupported` for kinds that are not supported."""
    arrival_kind = _KINDS.get(kind)
    if arrival_kind is None or swapped:
        raise Unsupported(
            f"{node.side.upper()} {node.kind.upper()}".strip() + " JOIN as of the current time is not supported",
            detail=text_of(node),
            hint="use JOIN, LEFT, FULL, SEMI or ANTI JOIN: rows of the left side are looked up in the right side",
        )
    return logical.Arrival(left, right, predicates, arrival_kind)


def refuse_changing(side: Node, which: str, place: str, is_stream: Callable[[str], bool]) -> None:
    """Raise `Unsupported` unless an input is append-only; `is_stream` answers for the relations that it scans."""
    changing = _changing(side, is_stream)
    if changing is not None:
        raise Unsupported(
            f"{which} must be append-only, and {changing} is not",
            detail=place,
            hint="use a STREAM, or the changes of a table: CHANGES(TABLE name)",
        )


def _changing(node: Node, is_stream: Callable[[str], bool]) -> str | None:
    """Return the part of a plan that is not append-only, for a message; None if all of it is."""
    match node:
        case logical.Scan(relation=UnitRow()):
            return None
        case logical.Scan():
            return None if is_stream(str(node.relation)) else f"`{node.relation}`"
        case logical.Filter() | logical.Project() | logical.Distinct() | logical.Expand() | logical.Enrich():
            return _changing(node.input, is_stream)
        case logical.Join() if node.kind in ("inner", "semi"):
            return _changing(node.left, is_stream) or _changing(node.right, is_stream)
        case logical.Join():
            return f"the {node.kind.upper()} JOIN"
        case logical.SetOperation():
            if not SET_OPERATIONS[node.operation].is_append_only(input_is=True):
                return node.operation
            return next((text for part in node.inputs if (text := _changing(part, is_stream)) is not None), None)
        case logical.Arrival() | logical.Records():
            return None
        case logical.Aggregate():
            return "a GROUP BY"
        case logical.AtMostOne():
            return "a scalar subquery"
        case logical.Latest():
            return "LATEST"
        case logical.Current():
            return "a filter by the current time"
        case logical.Session():
            return "a session"
        case logical.Validity():
            return "a validity window"
        case logical.WindowCalls():
            return "a window function"
