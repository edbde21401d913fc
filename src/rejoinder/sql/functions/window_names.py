"""Spark's name of a window function: the call, the window and the frame, with all that was left out written.

lag(x) OVER (PARTITION BY g ORDER BY x DESC)
lag(x, 1, NULL) OVER (PARTITION BY g ORDER BY x DESC NULLS LAST ROWS BETWEEN -1 FOLLOWING AND -1 FOLLOWING)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.types import spark_types

Naming = Callable[[exp.Expr], str | None]
"""Gives Spark's name of an expression; None if it is not certain."""
_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number()",
    exp.Rank: "RANK()",
    exp.DenseRank: "DENSE_RANK()",
    exp.PercentRank: "PERCENT_RANK()",
    exp.CumeDist: "cume_dist()",
}
_VALUES: dict[type[exp.Expr], str] = {
    exp.First: "first",
    exp.FirstValue: "first_value",
    exp.Last: "last",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}
_TO_ROW = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_UNITS = {"DAY": 1, "HOUR": 2, "MINUTE": 2, "SECOND": 2}
"""Units of intervals, and how many digits Spark writes at least."""


def window_name(window: exp.Window, name_of: Naming) -> str | None:
    """Give Spark's name of a window function; None if it is not certain."""
    call = _call_name(window.this, name_of)
    partition = [name_of(part) for part in window.args.get("partition_by") or []]
    order = window.args.get("order")
    sorted_by = [_order_name(part, name_of) for part in ([] if order is None else order.expressions)]
    frame = _frame_name(window, name_of, is_ordered=bool(sorted_by))
    if None in (call, frame, *partition, *sorted_by):
        return None
    clauses = [
        f"PARTITION BY {', '.join(map(str, partition))}" if partition else "",
        f"ORDER BY {', '.join(map(str, sorted_by))}" if sorted_by else "",
        str(frame),
    ]
    return f"{call} OVER ({' '.join(clause for clause in clauses if clause)})"


def with_converted_distances(node: exp.Expr, type_of: Callable[[exp.Expr], pa.DataType | None]) -> exp.Expr:
    """The expression with distances of RANGE as Spark converts them to the type of ORDER BY.

    Only a distance that has this type already keeps the word PRECEDING:

    sum(x) OVER (ORDER BY d RANGE 3 PRECEDING)
    sum(x) OVER (ORDER BY d RANGE BETWEEN (- 3) FOLLOWING AND CURRENT ROW)
    """

    def convert(part: exp.Expr) -> exp.Expr:
        spec = part.args.get("spec") if isinstance(part, exp.Window) else None
        order = part.args.get("order")
        if spec is None or order is None or str(spec.args.get("kind")).upper() != "RANGE":
            return part
        kind = type_of(order.expressions[0].this)
        for end in ("start", "end"):
            distance = spec.args.get(end)
            is_before = str(spec.args.get(f"{end}_side")).upper() == "PRECEDING"
            is_plain = isinstance(distance, exp.Literal) and is_before
            if is_plain and kind not in (spark_types.INT, spark_types.DATE):
                spec.set(end, exp.Neg(this=exp.paren(distance)))
                spec.set(f"{end}_side", "FOLLOWING")
        return part

    return node.transform(convert) if node.find(exp.WindowSpec) else node


def _call_name(node: exp.Expr, name_of: Naming) -> str | None:
    if isinstance(node, exp.RespectNulls):
        return _call_name(node.this, name_of)
    if isinstance(node, exp.IgnoreNulls):
        if isinstance(node.this, exp.FirstValue | exp.LastValue):
            return None  # with TRUE as argument the name is another, and sqlglot does not say which was written
        name = _call_name(node.this, name_of)
        return f"{name} ignore nulls" if name and isinstance(node.this, exp.NthValue) else name
    if type(node) in _RANKS:
        return _RANKS[type(node)]
    if isinstance(node, exp.Ntile):
        return "ntile(1)" if node.this is None else _around("ntile({})", name_of(node.this))
    if isinstance(node, exp.Lag | exp.Lead):
        return _listed(node.key, [node.this, _offset(node), node.args.get("default") or exp.null()], name_of)
    if type(node) in _VALUES:
        offset = node.args.get("offset")
        return _listed(_VALUES[type(node)], [node.this, *([] if offset is None else [offset])], name_of)
    return name_of(node)


def _order_name(part: exp.Expr, name_of: Naming) -> str | None:
    direction = "DESC" if part.args.get("desc") else "ASC"
    nulls = "FIRST" if part.args.get("nulls_first") else "LAST"
    return _around(f"{{}} {direction} NULLS {nulls}", name_of(part.this))


def _frame_name(window: exp.Window, name_of: Naming, *, is_ordered: bool) -> str | None:
    spec = window.args.get("spec")
    inner = window.this
    while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    if isinstance(inner, exp.Lag | exp.Lead):
        return _offset_frame(inner, name_of)
    if isinstance(inner, exp.Ntile) or (type(inner) in _RANKS and not isinstance(inner, exp.CumeDist)):
        return f"ROWS {_TO_ROW}"
    if spec is None:
        return f"RANGE {_TO_ROW}" if is_ordered else "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    ends = [_end_name(spec, end, name_of) for end in ("start", "end")]
    return None if None in ends else f"{str(spec.args.get('kind')).upper()} BETWEEN {ends[0]} AND {ends[1]}"


def _offset_frame(node: exp.Expr, name_of: Naming) -> str | None:
    """The frame of LAG and LEAD: the one row at a distance."""
    distance = _offset(node)
    if isinstance(node, exp.Lag) and distance.name != "0":
        distance = distance.this if isinstance(distance, exp.Neg) else exp.Neg(this=distance.copy())
    return _around("ROWS BETWEEN {0} FOLLOWING AND {0} FOLLOWING", name_of(distance))


def _offset(node: exp.Expr) -> exp.Expr:
    return node.args.get("offset") or exp.Literal.number(1)


def _end_name(spec: exp.Expr, end: str, name_of: Naming) -> str | None:
    value = spec.args.get(end)
    if value is None or value == "CURRENT ROW":
        return "CURRENT ROW"
    side = str(spec.args.get(f"{end}_side")).upper()
    if value == "UNBOUNDED":
        return f"UNBOUNDED {side}"
    distance = _interval_name(value) if isinstance(value, exp.Interval) else name_of(value)
    return _around(f"{{}} {side}", distance)


def _interval_name(node: exp.Interval) -> str | None:
    """An interval of one unit; Spark writes others in ways of their own."""
    unit = str(node.args["unit"].name).upper().removesuffix("S") if node.args.get("unit") else ""
    number = cast(exp.Expr, node.this).name
    if unit not in _UNITS or not number.isdigit():
        return None
    return f"INTERVAL '{number.zfill(_UNITS[unit])}' {unit}"


def _listed(name: str, arguments: list[exp.Expr], name_of: Naming) -> str | None:
    parts = [name_of(argument) for argument in arguments]
    return None if None in parts else f"{name}({', '.join(map(str, parts))})"


def _around(template: str, inner: str | None) -> str | None:
    return None if inner is None else template.format(inner)
