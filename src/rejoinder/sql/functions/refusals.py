"""Why an expression is not supported, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.function_registry import meant_functions
from rejoinder.sql.functions.refused_functions import REASONS, SPELLED
from rejoinder.sql.functions.user_calls import meant_declared
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.foreign_names import foreign_function
from rejoinder.sql.types.terms import refuse

_TEMPORAL = ("now", "current_timestamp")
"""Supported as the bound of a temporal filter."""
LONGEST = 120
_OWN = "in a function of yours (CREATE FUNCTION)"
_FORMAT_NODES = (exp.StrToTime,)


def _clause(node: exp.Expr) -> str:
    """The whole condition or item of a list that a node stands in."""
    while isinstance(node.parent, exp.Condition | exp.If) and not isinstance(node.parent, exp.Query):
        node = node.parent
    text = text_of(node)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def unsupported(node: exp.Expr) -> errors.Unsupported:
    """Make the error for a node that no function compiles."""
    text = text_of(node)
    name = text.split("(", 1)[0].strip().lower() if isinstance(node, exp.Func) and "(" in text else ""
    refused = REASONS.get(name or text.lower())
    if refused is not None:
        where = "here" if name in _TEMPORAL else "in a view"
        return errors.Unsupported(
            f"`{name or text}` is not supported {where}",
            detail=f"in `{_clause(node)}`: {refused.reason}",
            hint=refused.instead,
        )
    if isinstance(node, exp.AggFunc):
        return refuse(
            node,
            f"the aggregate `{name}` is not supported here",
            foreign_function(name)
            or "aggregates stand in SELECT and HAVING, beside a GROUP BY; elsewhere, compute them in a subquery",
        )
    if isinstance(node, exp.Window):
        return refuse(
            node,
            "a window function is not supported here",
            "window functions stand in SELECT and QUALIFY; elsewhere, compute them in a subquery",
        )
    if isinstance(node, exp.Query) or (isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)):
        return refuse(node, "a subquery in an expression is not supported", "join it in FROM")
    if isinstance(node, exp.Interval):
        return refuse(
            node, "an interval is supported beside a date or a timestamp only", "use it as in ts + INTERVAL 1 DAY"
        )
    if isinstance(node, _FORMAT_NODES):
        return refuse(node, f"`{name}` with a format is not supported", "CAST it, and use LEFT, SUBSTRING or EXTRACT")
    if isinstance(node, exp.Func) and name:
        spelling = SPELLED.get(name)
        hint = (
            (f"write {spelling.how}" if spelling is not None else "")
            or foreign_function(name)
            or meant_declared(node)
            or meant_functions(name)
            or f"compute it before the rows come, {_OWN}, or when the view is read"
        )
        return refuse(node, f"the function `{name}` is not supported", hint)
    return refuse(node, "this is not supported in an expression")
