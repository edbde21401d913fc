"""OVER and WINDOW as syntax: windows that are named, the parts of a call, and who has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from rejoinder.errors import InvalidSql, near_misses
from rejoinder.sql.parse.clauses import text_of

_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_PARTS = ("partition_by", "order", "spec")


def windows_in(node: exp.Expr) -> Iterator[exp.Window]:
    """The window calls of an expression; those of subqueries are not its own."""
    for found in node.walk(prune=lambda inner: isinstance(inner, exp.Query | exp.Window)):
        if isinstance(found, exp.Window):
            yield found


def has_windows(node: exp.Select) -> bool:
    """Say whether a SELECT has window functions."""
    parts = [*node.expressions, *([node.args["qualify"]] if node.args.get("qualify") else [])]
    return any(True for part in parts for _ in windows_in(part))


@dataclass(frozen=True)
class Called:
    """The function of a window call, without what stands around it."""

    function: exp.Expr
    condition: exp.Expr | None
    skips_nulls: bool

    @classmethod
    def of(cls, window: exp.Window) -> Called:
        """Take a call apart."""
        inner, condition, skips_nulls = window.this, None, False
        while isinstance(inner, _WRAPPERS):
            if isinstance(inner, exp.Filter):
                condition = inner.expression.this
            skips_nulls |= isinstance(inner, exp.IgnoreNulls)
            inner = inner.this
        return cls(inner, condition, skips_nulls)


def operands(window: exp.Window) -> Iterator[exp.Expr]:
    """The expressions in a window call that are about a row: arguments, conditions, partition and order."""
    called = Called.of(window)
    yield from called.function.iter_expressions()
    if called.condition is not None:
        yield called.condition
    for name in _PARTS[:2]:
        value = window.args.get(name)
        yield from (value if isinstance(value, list) else [] if value is None else [value])


def with_operands(window: exp.Window, change: Callable[[exp.Expr], exp.Expr]) -> exp.Window:
    """The same call with its operands changed."""
    result = window.copy()
    for operand in list(operands(result)):
        operand.replace(change(operand.copy()))
    return result


def with_named_windows(node: exp.Select) -> exp.Select:
    """The same SELECT with every window written in its OVER, and no WINDOW clause.

        SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY g)   →   SELECT sum(x) OVER (PARTITION BY g) FROM t

    Raises `InvalidSql` for a name that is not defined, or defined twice.
    """
    defined = node.args.get("windows")
    if not defined:
        for window in _own_windows(node):
            if window.args.get("alias"):
                raise _unknown(window, [])
        return node
    node = node.copy()
    known: dict[str, exp.Window] = {}
    for window in node.args.pop("windows"):
        name = window.name.lower()
        if name in known:
            hint = "give one of them another name"
            raise InvalidSql(f"window `{window.name}` is defined twice", detail=text_of(window), hint=hint)
        known[name] = _complete(window, known)
    for window in list(_own_windows(node)):
        window.replace(_complete(window, known))
    return node


def _own_windows(node: exp.Select) -> Iterator[exp.Window]:
    for part in (*node.expressions, *([node.args["qualify"]] if node.args.get("qualify") else [])):
        yield from windows_in(part)
    order = node.args.get("order")
    if order is not None:
        yield from windows_in(order)


def _complete(window: exp.Window, known: dict[str, exp.Window]) -> exp.Window:
    """A window with the clauses of the one that it names."""
    alias = window.args.get("alias")
    if alias is None:
        return window
    base = known.get(alias.name.lower())
    if base is None:
        raise _unknown(window, list(known))
    result = window.copy()
    result.set("alias", None)
    for name in _PARTS:
        ours, theirs = result.args.get(name), base.args.get(name)
        if ours and theirs:
            word = {"partition_by": "PARTITION BY", "order": "ORDER BY", "spec": "a frame"}[name]
            raise InvalidSql(
                f"window `{alias.name}` has {word} already",
                detail=text_of(window),
                hint="write the whole window in OVER",
            )
        if theirs:
            result.set(name, [part.copy() for part in theirs] if isinstance(theirs, list) else theirs.copy())
    return result


def _unknown(window: exp.Window, known: list[str]) -> InvalidSql:
    name = window.args["alias"].name
    hint = near_misses(name, known) or "define it: … WINDOW w AS (PARTITION BY … ORDER BY …)"
    return InvalidSql(f"there is no window `{name}`", detail=text_of(window), hint=hint)
