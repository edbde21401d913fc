"""Scalar expressions on Arrow tables: DuckDB evaluates (`duckdb_session`).

`render` writes the text of an `Expression` so that DuckDB's answer is Spark's; this module runs it. Two contracts hold
between them:

- timestamps are microseconds in UTC, and DuckDB sees them without a zone. The declared type adds the zone again;
- the output of a row depends on that row alone, rows keep their order, and an expression cannot read files or networks.

Cost: a bare column is not copied, a conjunction of simple `Comparison`s runs in Arrow, and anything else costs one
DuckDB query: about 0.2 ms plus the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder import errors
from rejoinder.host.caps import cap_reached, caps
from rejoinder.host.memory import out_of_memory
from rejoinder.ir.expressions.comparisons import Comparison
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.expressions.nodes import Attempt, Call
from rejoinder.kernels.arrow.columns import DIFF, Int64, diffs, replaced, single_chunk, take, without
from rejoinder.kernels.arrow.groups import group_rows
from rejoinder.kernels.duckdb.duckdb_session import session
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.functions.logic import SEVERAL_ROWS
from rejoinder.kernels.duckdb.render import duckdb_text, messages, render
from rejoinder.kernels.duckdb.staged_run import run_nodes
from rejoinder.kernels.user_functions.function_failures import decoded
from rejoinder.kernels.zones.zone_labels import typed, without_zones

_ROW = "__row"
_FIRST = "__first"
_WINDOWS = ("hop_starts", "cumulate_ends")
LONGEST = 500
_KINDS = {
    "Conversion Error": "a value cannot be converted",
    "Out of Range Error": "a result is out of the range of its type",
    "Invalid Input Error": "an argument is not valid",
}


def project(table: pa.Table, outputs: Sequence[tuple[str, Expression]], keep: Sequence[str] = ()) -> pa.Table:
    """Evaluate all outputs for every row, and append the `keep` columns untouched. Raises `EvaluationError`."""
    if any(expression.repeats for _, expression in outputs):
        return _repeated(table, outputs, keep)
    computed = [(name, expression) for name, expression in outputs if not expression.is_column]
    evaluated = iter(_evaluate(table, [expression for _, expression in computed]))
    arrays = [
        typed(table.column(expression.columns[0]), expression.type) if expression.is_column else next(evaluated)
        for _, expression in outputs
    ]
    return _assembled(table, [name for name, _ in outputs], arrays, keep)


def select_rows(table: pa.Table, predicate: Expression) -> pa.Table:
    """Keep the rows for which the predicate is TRUE, in their order; FALSE and NULL go. Raises `EvaluationError`."""
    if table.num_rows == 0:
        return table
    if predicate.comparisons:
        mask = _compared(table, predicate.comparisons[0])
        for comparison in predicate.comparisons[1:]:
            mask = pc.and_(mask, _compared(table, comparison))
    elif predicate.is_column:
        mask = table.column(predicate.columns[0])
    else:
        (mask,) = _evaluate(table, [predicate])
    return table if not mask.null_count and pc.all(mask).as_py() else table.filter(mask)


def filter_project(
    table: pa.Table,
    predicate: Expression | None,
    outputs: Sequence[tuple[str, Expression]],
    keep: Sequence[str] = (),
) -> pa.Table:
    """Select, then project, with one query: outputs are evaluated for the selected rows only.

    Raises `EvaluationError`.
    """
    computed = [expression for _, expression in outputs if not expression.is_column]
    if predicate is None:
        return project(table, outputs, keep)
    if not computed or predicate.comparisons or predicate.is_column or table.num_rows == 0:
        return project(select_rows(table, predicate), outputs, keep)
    if not all(map(_is_one_query, (*computed, predicate))):
        return project(select_rows(table, predicate), outputs, keep)
    rows, evaluated = _evaluate_selected(table, predicate, computed)
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[rows] = True
    needed = {*keep, *(expression.columns[0] for _, expression in outputs if expression.is_column)}
    selected = table.select([name for name in table.column_names if name in needed]).filter(pa.array(mask))
    remaining = iter(evaluated)
    arrays = [
        typed(selected.column(expression.columns[0]), expression.type) if expression.is_column else next(remaining)
        for _, expression in outputs
    ]
    return _assembled(selected, [name for name, _ in outputs], arrays, keep)


def _is_one_query(expression: Expression) -> bool:
    node = expression.node
    return not expression.repeats and not isinstance(node, Attempt) and len(render(node)) == 1


def _repeated(table: pa.Table, outputs: Sequence[tuple[str, Expression]], keep: Sequence[str]) -> pa.Table:
    """Evaluate outputs of which one is a list, and repeat each row for its elements."""
    (position,) = [index for index, (_, expression) in enumerate(outputs) if expression.repeats]
    name, expression = outputs[position]
    rest = project(table, [output for output in outputs if output[0] != name], keep)
    if isinstance(expression.node, Call) and expression.node.operation.name in _WINDOWS:
        rest, elements = _merged(rest, *_distinct_windows(table, expression))
    else:
        elements = _lists(table, expression)
    count = pc.sum(pc.list_value_length(elements)).as_py() or 0
    if count > caps().max_repeated_rows:
        detail = f"{count:,} rows from {table.num_rows:,}" + (
            f": one for each {expression.text}" if expression.text else ""
        )
        remedy = "filter the rows first"
        raise cap_reached("rows are repeated too often in one step", "max_repeated_rows", detail, remedy=remedy)
    if not rest.num_columns:
        return pa.table({name: pc.list_flatten(elements)})
    rows = pc.list_parent_indices(elements)
    return rest.take(rows).add_column(position, name, pc.list_flatten(elements))


def _lists(table: pa.Table, expression: Expression) -> pa.ListArray:
    (lists,) = _evaluate(table, [Expression(expression.node, expression.text)])
    return single_chunk(lists)


def _distinct_windows(table: pa.Table, expression: Expression) -> tuple[pa.ListArray, Int64]:
    """Return the windows of each distinct time, and for each row the position of its windows among them."""
    if len(expression.columns) != 1:
        return _lists(table, expression), np.arange(table.num_rows)
    (name,) = expression.columns
    times = single_chunk(table.column(name)).dictionary_encode(null_encoding="encode")
    return _lists(pa.table({name: times.dictionary}), expression), np.asarray(times.indices, np.int64)


def _merged(rows: pa.Table, windows: pa.ListArray, windows_of: Int64) -> tuple[pa.Table, pa.ListArray]:
    """Merge rows that are equal and in the same windows, so that each is repeated once; their diffs are added.

    `windows_of` has the position in `windows` of each row. Windows are equally far apart, so the first one and their
    number determine the others.
    """
    sizes = np.asarray(pc.list_value_length(windows))
    first = pa.array(np.asarray(windows.offsets)[:-1], mask=sizes == 0)
    panes = pa.table({_FIRST: windows.values.take(first), _ROW: pa.array(sizes)})
    pane_of = group_rows(panes, panes.column_names).group_of[windows_of]
    keyed = without(rows, [DIFF]).append_column(_FIRST, pa.array(pane_of, pa.int64()))
    groups = group_rows(keyed, keyed.column_names)
    if len(groups.starts) == rows.num_rows:
        return rows, windows.take(pa.array(windows_of))
    total = np.bincount(groups.group_of, weights=diffs(rows), minlength=len(groups.starts)).astype(np.int64)
    kept = groups.starts[total != 0]
    merged = take(replaced(rows, DIFF, diffs(rows)), kept)
    return replaced(merged, DIFF, total[total != 0]), windows.take(pa.array(windows_of[kept]))


def _assembled(table: pa.Table, names: Sequence[str], arrays: Sequence[Any], keep: Sequence[str]) -> pa.Table:
    columns = [*arrays, *(table.column(name) for name in keep)]
    if not columns:
        return table.select([])
    return pa.Table.from_arrays(columns, names=[*names, *keep])


def _evaluate(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    if not expressions:
        return []
    if table.num_rows == 0:
        return [pa.chunked_array([], type=expression.type) for expression in expressions]
    source = _source(table, expressions, with_rows=False)
    try:
        result = run_nodes(source, [expression.node for expression in expressions])
    except duckdb.Error as failure:
        if len(expressions) > 1:
            # Evaluated alone, the failing expression is named in the error.
            for expression in expressions:
                _evaluate(table, [expression])
        raise _failed(expressions[0], failure) from None
    return [typed(result.column(index), expression.type) for index, expression in enumerate(expressions)]


def _evaluate_selected(
    table: pa.Table, predicate: Expression, expressions: Sequence[Expression]
) -> tuple[Any, list[pa.ChunkedArray]]:
    """The positions of the selected rows, ascending, and the outputs for them."""
    source = _source(table, [predicate, *expressions], with_rows=True)
    (*texts, condition) = [render(expression.node)[-1] for expression in (*expressions, predicate)]
    listed = ", ".join(f"{text} AS {quoted(str(index))}" for index, text in enumerate(texts))
    try:
        result = session().run(source, f"SELECT {listed}, {quoted(_ROW)}", f"WHERE {condition}")
    except duckdb.OutOfMemoryException as failure:
        raise _failed(expressions[0], failure) from None
    except duckdb.Error:
        _evaluate(select_rows(table, predicate), expressions)
        raise
    evaluated = [typed(result.column(index), expression.type) for index, expression in enumerate(expressions)]
    return result.column(_ROW).to_numpy(), evaluated


def _source(table: pa.Table, expressions: Sequence[Expression], *, with_rows: bool) -> pa.Table:
    """Narrow a table to what expressions read, without zones; a table for DuckDB has at least one column."""
    needed = {name for expression in expressions for name in expression.columns}
    narrow = without_zones(table.select([name for name in table.column_names if name in needed]))
    if with_rows or not needed:
        narrow = narrow.append_column(_ROW, pa.array(np.arange(table.num_rows, dtype=np.int64)))
    return narrow


def _compared(table: pa.Table, comparison: Comparison) -> pa.ChunkedArray:
    values = table.column(comparison.column)
    if comparison.value is None:
        return pc.call_function(comparison.operator, [values])
    return pc.call_function(comparison.operator, [values, pa.scalar(comparison.value, type=values.type)])


def _failed(expression: Expression, failure: duckdb.Error) -> errors.RejoinderError:
    message = str(failure).splitlines()[0]
    if "expression depth" in message.lower():
        return errors.LimitReached(
            f"`{_shortened(expression)}` is too deep to be evaluated",
            detail="its parts may fail or are evaluated only for some rows, so it cannot be taken apart",
            hint="compute parts of it in a view of their own",
        )
    kind, _, text = message.partition(": ")
    if isinstance(failure, duckdb.OutOfMemoryException):
        return out_of_memory(f"`{_shortened(expression)}`")
    broken = decoded(text) if expression.node.functions else None
    if broken is not None:
        return broken
    is_ours = text in messages(expression.node)  # DuckDB's own messages quote the row
    if is_ours and text.startswith(SEVERAL_ROWS):
        hint = "delete the rows that are too many; or take one value, as with MAX, or with a condition that selects one"
        return errors.SeveralRows(SEVERAL_ROWS, detail=text.removeprefix(f"{SEVERAL_ROWS}: "), hint=hint)
    return errors.EvaluationError(
        f"`{_shortened(expression)}` failed on a row",
        detail=message if is_ours else _KINDS.get(kind, kind),
        values=None if is_ours else message,
        hint="guard it with CASE or TRY_CAST, or filter such rows out before",
    )


def _shortened(expression: Expression) -> str:
    text = expression.text or duckdb_text(expression.node)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
