"""Checks of a syntax tree before it is bound: every clause that the binder does not read is refused, never ignored."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.kernels.arrow.columns import RESERVED

MARKS = "\u2063\u2061\u2062"
"""Invisible characters, which make generated names unique without changing how they look."""
_UNSEEN = str.maketrans("01", MARKS[1:])
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
_CLAUSES = (
    "a query has WITH, SELECT, DISTINCT, FROM, JOIN, LATERAL VIEW, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, "
    "LIMIT, OFFSET and set operations"
)
_ORDERED = frozenset({"order", "limit", "offset"})
_SET_OPERATION = _ORDERED | {"this", "expression", "distinct", "with"}
# Hints are advice about how to run a query; they never change its rows.
_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: _ORDERED
    | {"expressions", "from", "joins", "laterals", "where", "group", "having", "qualify", "windows", "distinct"}
    | {"with", "hint"},
    exp.Union: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Subquery: _ORDERED | {"this", "alias", "with", "joins", "pivots"},
    exp.Table: frozenset({"this", "alias", "db", "catalog", "joins", "version", "pivots"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using", "match_condition"}),
}


def refuse_unread_clauses(node: exp.Expr) -> None:
    """Raise `Unsupported` if a node has a clause that the binder would ignore."""
    for name, value in node.args.items():
        clause = name.rstrip("_")
        if value in (None, False, []) or clause in _READ[type(node)]:
            continue
        words = _WORDS.get(clause, clause.upper().replace("_", " "))
        raise Unsupported(f"{words} is not supported in a view", detail=text_of(node), hint=_CLAUSES)


def refuse_subqueries(node: exp.Expr) -> None:
    """Raise `Unsupported` if an expression contains a subquery."""
    inner = node.find(exp.Query)
    if inner is None:
        return
    parent = inner.parent
    if isinstance(parent, exp.Exists) or (isinstance(parent, exp.In) and parent.args.get("query") is inner):
        raise Unsupported(
            f"{'EXISTS' if isinstance(parent, exp.Exists) else 'IN'} with a subquery is not supported here",
            detail=text_of(node),
            hint="use it as a condition of WHERE, alone or combined with AND",
        )
    fact = "a subquery as a value is not supported"
    raise Unsupported(fact, detail=text_of(inner), hint="join it in FROM: … JOIN (SELECT …) AS name ON …")


def refuse_duplicate_names(names: Sequence[str], place: str, node: exp.Expr | None = None) -> None:
    """Raise `InvalidSql` if two columns have the same name."""
    lowered = [name.lower() for name in names]
    duplicate = next((name for name in names if lowered.count(name.lower()) > 1), None)
    if duplicate is not None:
        raise InvalidSql(
            f"column `{duplicate}` appears twice {place}",
            detail=text_of(node) if node is not None else f"columns: {', '.join(names)}",
            hint="give one of them another name with AS",
        )


def refuse_reserved(names: Sequence[str], place: str, also: Sequence[str] = ()) -> None:
    """Raise `InvalidSql` for names of columns that tasks add to rows, or `also` names, which a rendering adds."""
    taken = (*sorted(RESERVED), *also)
    reserved = next((name for name in names if name.lower() in taken), None)
    if reserved is not None:
        raise InvalidSql(
            f"column `{reserved}` {place} has a reserved name",
            detail=f"reserved: {', '.join(taken)}",
            hint="give it another name with AS",
        )


def refuse_recursion(cte: exp.CTE) -> None:
    """Raise `Unsupported` for a CTE that refers to itself."""
    for table in cte.this.find_all(exp.Table):
        if relation_name(table).lower() == cte.alias.lower():
            raise Unsupported(
                f"`{cte.alias}` refers to itself",
                detail=f"in `{text_of(cte)}`",
                hint="recursion is not supported: join the relation once for each level; or, if another relation is "
                "meant, give the CTE another name",
            )


def marked_name(text: str, number: int) -> str:
    """The name of a column that nobody can write: a text, for messages, and after it a number that nobody sees."""
    return f"{text}{MARKS[0]}{f'{number:b}'.translate(_UNSEEN)}"


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of columns as parts of ids: one that was there before, in any case, gets a mark that nobody sees."""
    seen: set[str] = set()
    result = []
    for number, name in enumerate(names):
        result.append(marked_name(name, number) if name.lower() in seen else name)
        seen.add(name.lower())
    return result


def relation_name(table: exp.Table) -> str:
    """Return the name of a relation in FROM; that of a side output has a dot, as in `view.late`."""
    return ".".join(part.name for part in table.parts)


def text_of(node: exp.Expr) -> str:
    """Return a node as SQL for messages, without the invisible marks of generated names."""
    return _MARKED.sub(r"\1", node.sql(dialect="spark", unsupported_level=ErrorLevel.IGNORE))
