"""What a query may hold: every clause that the binder does not read is refused here, never passed over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.kernels.arrow.columns import RESERVED

MARKS = "\u2063\u2061\u2062"
"""Characters that nobody sees or writes."""
_MARKED = re.compile(f"`([^`]*?)[{MARKS}]+`")
_WORDS = {
    "by_name": "BY NAME",
    "cluster": "CLUSTER BY",
    "connect": "CONNECT BY",
    "distribute": "DISTRIBUTE BY",
    "laterals": "LATERAL VIEW",
    "locks": "FOR UPDATE",
    "match": "MATCH_RECOGNIZE",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "version": "AS OF",
    "windows": "WINDOW",
}
ONE_OF_EACH = "LATEST(TABLE name, DESCRIPTOR(key), DESCRIPTOR(time)) in FROM gives the last row of each key"
_SET_OPERATION = frozenset({"this", "expression", "distinct", "with"})
# Hints are advice about how to run a query; they never change its rows.
_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from", "joins", "where", "group", "having", "qualify", "windows", "distinct", "with", "hint"}
    ),
    exp.Union: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Subquery: frozenset({"this", "alias", "with", "joins"}),
    exp.Table: frozenset({"this", "alias", "db", "catalog", "joins", "version"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using", "match_condition"}),
}


def refuse_unread_clauses(node: exp.Expr) -> None:
    """Refuse a node of a query with a clause that the binder would pass over."""
    for name, value in node.args.items():
        clause = name.rstrip("_")
        if value in (None, False, []) or clause in _READ[type(node)]:
            continue
        words = _WORDS.get(clause, clause.upper().replace("_", " "))
        raise Unsupported(f"{words} is not supported in a view", detail=text_of(node), hint=_hint(clause))


def _hint(clause: str) -> str:
    if clause in ("order", "limit"):
        return "a view has no order; ORDER BY and LIMIT work in a SELECT that is run once"
    return "a view has SELECT, DISTINCT, FROM, JOIN, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, WITH and UNION"


def refuse_subqueries(node: exp.Expr) -> None:
    """Refuse an expression with a query inside."""
    inner = node.find(exp.Query)
    if inner is None:
        return
    around = inner.parent
    if isinstance(around, exp.Exists) or (isinstance(around, exp.In) and around.args.get("query") is inner):
        raise Unsupported(
            f"{'EXISTS' if isinstance(around, exp.Exists) else 'IN'} with a subquery is not supported here",
            detail=text_of(node),
            hint="it can be a condition of WHERE, alone or connected with AND",
        )
    fact = "a subquery as a value is not supported"
    raise Unsupported(fact, detail=text_of(inner), hint="join it in FROM: … JOIN (SELECT …) AS name ON …")


def refuse_doubles(names: Sequence[str], place: str, node: exp.Expr | None = None) -> None:
    """Refuse two columns of one name."""
    lowered = [name.lower() for name in names]
    double = next((name for name in names if lowered.count(name.lower()) > 1), None)
    if double is not None:
        raise InvalidSql(
            f"column `{double}` appears twice {place}",
            detail=text_of(node) if node is not None else f"columns: {', '.join(names)}",
            hint="give one of them another name with AS",
        )


def refuse_reserved(names: Sequence[str], place: str, also: Sequence[str] = ()) -> None:
    """Refuse columns that are called like those that tasks add to rows, or like `also`, which a rendering adds."""
    taken = (*sorted(RESERVED), *also)
    reserved = next((name for name in names if name.lower() in taken), None)
    if reserved is not None:
        raise InvalidSql(
            f"column `{reserved}` {place} has a reserved name",
            detail=f"reserved: {', '.join(taken)}",
            hint="give it another name with AS",
        )


def relation_name(table: exp.Table) -> str:
    """The name of a relation in FROM; with a dot, if it is that of notes."""
    return ".".join(part.name for part in table.parts)


def text_of(node: exp.Expr) -> str:
    """A piece of SQL as text, for messages: without the marks that tell columns of groups apart."""
    return _MARKED.sub(r"\1", node.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE))
