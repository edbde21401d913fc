"""ENRICH in FROM: a relation with columns that a Python function computes for each row.

    ENRICH(TABLE orders, 'shop.rates:lookup', 'rate DOUBLE, source STRING', concurrency => 8, retries => 2)

The arguments are the relation, the function as `module:name`, and the columns of its answers. Optional arguments, by
name: `concurrency`, `timeout`, `retries`, and `batch` for a function over tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import InvalidSql, PlanningError, TypeMismatch, UnknownName, near_misses
from rejoinder.ir.function_reference import PythonFunction, checked_reference
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Enrich, Node
from rejoinder.kernels.arrow.columns import RESERVED
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.parse.clauses import refuse_duplicate_names, text_of
from rejoinder.sql.types.interval_literals import interval_of
from rejoinder.sql.types.spark_types import comparable, parse_type, spark_name

if TYPE_CHECKING:
    from rejoinder.sql.bind.binder import Binder, Ctes

NAME = "ENRICH"
_FORM = "write ENRICH(TABLE orders, 'module:function', 'column TYPE, …', concurrency => 16)"
_OPTIONS = ("concurrency", "timeout", "retries", "batch")


def is_enrichment(node: exp.Table) -> bool:
    """Return whether an item of FROM is a call of ENRICH."""
    return isinstance(node.this, exp.Anonymous) and node.this.name.upper() == NAME


def bind_enrichment(binder: Binder, node: exp.Table, ctes: Ctes) -> tuple[Node, Scope]:
    """Bind a call of ENRICH. Raises a `PlanningError` that shows the syntax."""
    call = node.this
    plain = [argument for argument in call.expressions if not isinstance(argument, exp.Kwarg)]
    if len(plain) != 3:
        fact = f"ENRICH takes a relation, a function and its columns, not {len(plain)} arguments"
        raise InvalidSql(fact, detail=text_of(call), hint=_FORM)
    relation, function, columns = plain
    if not isinstance(relation, exp.Table | exp.Query):
        raise InvalidSql("the first argument of ENRICH is a relation", detail=text_of(call), hint=_FORM)
    if isinstance(relation, exp.Query) and not isinstance(relation, exp.Subquery):
        relation = exp.Subquery(this=relation)
    root, scope = binder.relation(relation, ctes)
    listed = scope.all(None, text_of(call))
    refuse_duplicate_names([c.name for c in listed], "in the relation of ENRICH", call)
    _refuse_maps(listed, call)
    answers = _answers(_text(columns, call), [c.name for c in listed], call)
    options = {argument.this.name.lower(): argument.expression for argument in call.find_all(exp.Kwarg)}
    number = next(binder.numbers)
    named = tuple((column_text(number, field.name), field.name, field.type) for field in answers)
    alias = node.alias or relation.alias_or_name
    shown = [Column(alias, c.name, c.id, c.type, bounds=c.bounds) for c in listed]
    shown += [Column(alias, name, i, kind) for i, name, kind in named]
    arguments = tuple((c.id, c.name) for c in listed)
    root = Enrich(root, arguments, named, _function(_text(function, call), options, call))
    return root, Scope.of(binder.aliased(shown, node))


def _text(node: exp.Expr, call: exp.Expr) -> str:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise InvalidSql(f"`{text_of(node)}` is not a string", detail=text_of(call), hint=_FORM)
    return str(node.this)


def _answers(text: str, taken: Sequence[str], call: exp.Expr) -> pa.Schema:
    """Return the columns of a function's answers."""
    try:
        kind = parse_type(f"STRUCT<{text}>")
    except PlanningError as failure:
        raise type(failure)(failure.fact, detail=f"'{text}' in {text_of(call)}", hint=_FORM) from failure
    lowered = [name.lower() for name in taken]
    for field in kind:
        if field.name.lower() in lowered or field.name.lower() in RESERVED:
            why = "is already a column of its relation" if field.name.lower() in lowered else "has a reserved name"
            raise InvalidSql(
                f"column `{field.name}` of ENRICH {why}", detail=text_of(call), hint="use another name for the answer"
            )
    refuse_duplicate_names([field.name for field in kind], "in the answers of ENRICH", call)
    return pa.schema(list(kind))


def _refuse_maps(columns: Sequence[Column], call: exp.Expr) -> None:
    for c in columns:
        if not comparable(c.type, c.type):
            raise TypeMismatch(
                f"ENRICH of column `{c.name}` of type {spark_name(c.type)}",
                detail=f"answers are stored by row, and maps cannot be compared; {text_of(call)}",
                hint="remove it: ENRICH(TABLE (SELECT … FROM …), …), or select values from it",
            )


def _function(name: str, options: Mapping[str, exp.Expr], call: exp.Expr) -> PythonFunction:
    checked_reference(name, text_of(call))
    unknown = [option for option in options if option not in _OPTIONS]
    if unknown:
        hint = near_misses(unknown[0], _OPTIONS) or f"one of {', '.join(_OPTIONS)}"
        raise UnknownName(f"ENRICH has no argument `{unknown[0]}`", detail=text_of(call), hint=hint)
    numbers = {
        option: _number(option, options[option], least, call)
        for option, least in (("concurrency", 1), ("retries", 0), ("batch", 1))
        if option in options
    }
    timeout = _seconds(options["timeout"], call) if "timeout" in options else None
    return PythonFunction(name, timeout=timeout, **numbers)


def _number(option: str, node: exp.Expr, least: int, call: exp.Expr) -> int:
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or int(text) < least:
        fact = f"`{option}` of ENRICH is a whole number, {least} or more"
        raise InvalidSql(fact, detail=text_of(call), hint=f"as in {option} => 16")
    return int(text)


def _seconds(node: exp.Expr, call: exp.Expr) -> float:
    interval = interval_of(node)
    if interval is None or interval.months or interval.micros <= 0:
        raise InvalidSql(
            "`timeout` of ENRICH is a positive interval",
            detail=text_of(call),
            hint="as in timeout => INTERVAL 5 SECONDS",
        )
    return interval.micros / 1_000_000
