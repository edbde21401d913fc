"""Expressions that fail on some rows: which rows these are, and what failed on each.

A row on which an expression fails is not an error yet. It may be retracted in the same epoch, or be in no snapshot at
all: added by one path and cancelled by another. So the row continues with the error in `__error`, and counts only if it
is left at the end (`runtime.failed_rows`). For the count to be exact, the error of a row must depend on the row alone,
never on the order in which a path tests its conditions:

- a condition that is FALSE or NULL removes the row, whatever else fails on it;
- a condition that fails counts as TRUE for what follows;
- of several errors of a row the smallest, by its text, is kept.

Cost: none while nothing fails, since the plain evaluation comes first. After a failure every expression is evaluated
once more, under DuckDB's TRY.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import EvaluationError, FunctionFailed, SeveralRows
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Attempt, Call, walk
from rejoinder.kernels.arrow.columns import ERROR, contiguous, replaced, single_chunk, take, without
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.duckdb.evaluate import filter_project, project, select_rows
from rejoinder.kernels.duckdb.functions.logic import several_rows_text
from rejoinder.kernels.duckdb.render import duckdb_text

SAMPLED = 32
"""Rows of a batch that are evaluated one by one for the text of their error; the others share the smallest text."""

_KINDS = {kind.code: kind for kind in (EvaluationError, FunctionFailed, SeveralRows)}
_OPTIONAL = "__optional"
_SEPARATOR = "\x1f"

Outputs = Sequence[tuple[str, Expression]]


def or_null(expression: Expression) -> Expression:
    """Make the expression that is NULL on the rows on which the given one fails."""
    return _attempt(expression) if expression.can_fail else expression


def truths(table: pa.Table, condition: Expression) -> tuple[Mask, pa.Array | None]:
    """The rows on which a condition is TRUE or fails, and the error of each; None instead of errors if none fails."""
    try:
        passed = project(table, [("passed", condition)]).column("passed")
        return np.asarray(passed.fill_null(False)), None
    except EvaluationError:
        pass
    mask = np.ones(table.num_rows, bool)
    errors = pa.nulls(table.num_rows, pa.string())
    for part in condition.conjuncts:
        failed = _failed(table, [part])[0]
        tried = project(table, [("passed", _attempt(part))])
        mask &= failed | np.asarray(tried.column("passed").fill_null(False))
        errors = _smaller(errors, _texts(table, part, failed))
    return mask, pc.if_else(pa.array(mask), errors, pa.scalar(None, pa.string()))


def possible(table: pa.Table, condition: Expression) -> pa.Table:
    """Keep the rows on which a condition is TRUE or fails, as they are."""
    try:
        return select_rows(table, condition)
    except EvaluationError:
        mask, _ = truths(table, condition)
        return take(table, np.flatnonzero(mask))


def satisfying(table: pa.Table, condition: Expression) -> tuple[pa.Table, pa.Table | None]:
    """Split the rows into those for which a condition is TRUE and those on which it fails, marked; None if none do.

    Rows that were marked before keep their mark.
    """
    try:
        return filter_project(table, condition, (), keep=tuple(table.column_names)), None
    except EvaluationError:
        mask, errors = truths(table, condition)
    failed = np.zeros(table.num_rows, bool) if errors is None else np.asarray(errors.is_valid())
    passed = take(table, np.flatnonzero(mask & ~failed))
    if errors is None:
        return passed, None
    return passed, take(marked(table, errors), np.flatnonzero(mask & failed))


def filter_project_marked(
    table: pa.Table,
    predicate: Expression | None,
    outputs: Outputs,
    keep: Sequence[str] = (),
    optional: Expression | None = None,
) -> pa.Table:
    """Select and project as `filter_project` does; a row on which something fails stays, marked in `__error`.

    In such a row the outputs that fail are NULL. Rows for which `optional` is TRUE are left out instead.
    """
    keep = (*keep, ERROR) if ERROR in table.column_names else keep
    try:
        return filter_project(table, predicate, outputs, keep)
    except EvaluationError:
        pass
    if optional is not None:
        is_optional, _ = truths(table, optional)
        table, keep = replaced(table, _OPTIONAL, pa.array(is_optional)), (*keep, _OPTIONAL)
    if predicate is not None:
        mask, errors = truths(table, predicate)
        table = take(table if errors is None else marked(table, errors), np.flatnonzero(mask))
    computed = [expression for _, expression in outputs if not expression.is_column]
    failures = _failed(table, computed)
    for expression, failed in zip(computed, failures, strict=True):
        table = marked(table, _texts(table, expression, failed))
    bad = np.zeros(table.num_rows, bool)
    if ERROR in table.column_names:
        bad = np.asarray(table.column(ERROR).is_valid())
        keep = (*(name for name in keep if name != ERROR), ERROR)
    sound = project(take(table, np.flatnonzero(~bad)), outputs, keep)
    result = contiguous([sound, _without_values(take(table, np.flatnonzero(bad)), outputs, keep)])
    if optional is not None:
        left_out = np.asarray(result.column(_OPTIONAL)) & np.asarray(result.column(ERROR).is_valid())
        result = without(take(result, np.flatnonzero(~left_out)), [_OPTIONAL])
    return result


def marked(table: pa.Table, errors: pa.Array) -> pa.Table:
    """Add errors to those that rows already have."""
    if ERROR in table.column_names:
        errors = _smaller(single_chunk(table.column(ERROR)), errors)
    return replaced(table, ERROR, errors)


def split_marked(table: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """Split the rows into those on which nothing failed, without the mark, and the others; None if there are none."""
    if ERROR not in table.column_names:
        return table, None
    bad = np.asarray(table.column(ERROR).is_valid())
    sound = without(take(table, np.flatnonzero(~bad)), [ERROR])
    return sound, take(table, np.flatnonzero(bad)) if bad.any() else None


def error_of(text: str) -> EvaluationError:
    """Make the exception that a mark stands for."""
    fact, code, detail, hint, values = text.split(_SEPARATOR, 4)
    return _KINDS[code](fact, detail=detail or None, hint=hint or None, values=values or None)


def _attempt(expression: Expression) -> Expression:
    return Expression(Attempt(expression.node, is_test=False), expression.text, expression.repeats)


def _failed(table: pa.Table, expressions: Sequence[Expression]) -> list[Mask]:
    """The rows on which each expression fails."""
    tests = [Expression(Attempt(expression.node, is_test=True), expression.text) for expression in expressions]
    results = project(table, [(str(number), test) for number, test in enumerate(tests)])
    return [np.asarray(results.column(str(number))) for number in range(len(tests))]


def _texts(table: pa.Table, expression: Expression, failed: Mask) -> pa.Array:
    """The text of each row's error, NULL where the expression does not fail."""
    rows = np.flatnonzero(failed)
    texts = [_text(table.slice(int(row), 1), expression) for row in rows[:SAMPLED]]
    if len(rows) > SAMPLED:
        texts += [min(texts)] * (len(rows) - SAMPLED)
    place = np.zeros(table.num_rows, np.int64)
    place[rows] = np.arange(len(rows))
    return pa.array(texts, pa.string()).take(pa.array(place, mask=~failed))


def _text(row: pa.Table, expression: Expression) -> str:
    try:
        project(row, [("value", expression)])
    except EvaluationError as error:
        values = _outer_values(row, expression, error) if isinstance(error, SeveralRows) else error.values
        return _SEPARATOR.join((error.fact, error.code, error.detail or "", error.hint or "", values or ""))
    raise AssertionError(f"`{duckdb_text(expression.node)}` fails under TRY, and not without it")


def _outer_values(row: pa.Table, expression: Expression, error: SeveralRows) -> str | None:
    """The columns of the outer row that a scalar subquery with several rows reads, with their values."""
    for node in walk(expression.node):
        if isinstance(node, Call) and several_rows_text(node) == error.detail:
            names, keys = node.operation.options[1:], node.parts[2:]
            values = project(row, [(str(name), Expression(key)) for name, key in zip(names, keys, strict=True)])
            return ", ".join(f"{name} = {value!r}" for name, value in values.to_pylist()[0].items()) if names else None
    return None


def _smaller(errors: pa.Array, others: pa.Array) -> pa.Array:
    return pc.min_element_wise(errors, others)


def _without_values(rows: pa.Table, outputs: Outputs, keep: Sequence[str]) -> pa.Table:
    """Project rows on which something failed: columns as they are, NULL for what would have to be computed."""
    columns = {
        name: project(rows, [(name, e)]).column(0) if e.is_column else pa.nulls(rows.num_rows, e.type)
        for name, e in outputs
    }
    return pa.table({**columns, **{name: rows.column(name) for name in keep}})
