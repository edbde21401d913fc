"""Functions of ENRICH: call them for the rows of a task, and check their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from rejoinder.errors import FunctionFailed
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.kernels.user_functions.function_imports import load
from rejoinder.runtime.function_calls import FunctionCalls, TooSlowError

SLICE = 1024


def ask(function: PythonFunction, rows: pa.Table, answers: pa.Schema) -> pa.Table:
    """Call the function for each row, and return its answers in the order of the rows. Raises `FunctionFailed`.

    A call per row, or per batch, is the only loop over rows; the rest works on columns.
    """
    called = load(function.name)
    size = function.batch or 1
    results: list[Any] = [None] * -(-rows.num_rows // size)
    with FunctionCalls[Any, Any, int](
        called, concurrency=function.concurrency, timeout=function.timeout, retries=function.retries
    ) as calls:

        def take(ended: tuple[int, Future[Any]] | None) -> None:
            assert ended is not None
            number, answer = ended
            failure = answer.exception()
            if failure is not None:
                raise _failed(function, *_described(failure), rows, number * size) from failure
            results[number] = answer.result()

        for number, argument in enumerate(_arguments(rows, function.batch)):
            while not calls.has_room:
                take(calls.fetch(wait=True))
            calls.start(argument, number)
        while calls.open:
            take(calls.fetch(wait=True))
    if function.batch:
        parts = [_batch(function, result, rows, number * size, answers) for number, result in enumerate(results)]
        return pa.concat_tables(parts)
    return _table(function, results, rows, 0, answers)


def _described(failure: BaseException) -> tuple[str, str]:
    """Return the kind of a failure, which contains no values, and its own text, which may quote the row."""
    if isinstance(failure, TooSlowError):
        return str(failure), ""
    return f"it raised {type(failure).__name__}", str(failure)


def _arguments(rows: pa.Table, batch: int) -> Any:
    """Yield the argument of each call: a batch as a table, or a row as a dict."""
    for start in range(0, rows.num_rows, batch or SLICE):
        part = rows.slice(start, batch or SLICE)
        if batch:
            yield part
        else:
            yield from part.to_pylist()


def _batch(function: PythonFunction, answer: Any, rows: pa.Table, start: int, answers: pa.Schema) -> pa.Table:
    """Return the answer to a batch, which is a table or a list of rows, as a table with the declared columns."""
    count = min(function.batch, rows.num_rows - start)
    size = len(answer) if isinstance(answer, Sequence) else getattr(answer, "num_rows", None)
    if isinstance(answer, str) or size != count:
        what = f"{size} answers" if size is not None and not isinstance(answer, str) else f"a {type(answer).__name__}"
        raise _failed(function, f"it returned {what} for a batch of {count} rows", "", rows, start)
    if not isinstance(answer, pa.Table | pa.RecordBatch):
        return _table(function, list(answer), rows, start, answers)
    _refuse_unknown(function, answer.schema.names, rows, start, answers)
    columns = []
    for field in answers:
        index = answer.schema.get_field_index(field.name)
        try:
            column = pa.nulls(count, field.type) if index < 0 else answer.column(index).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
            reason = f"column `{field.name}` does not have type {field.type}"
            raise _failed(function, reason, str(failure).splitlines()[0], rows, start) from None
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=answers)


def _table(
    function: PythonFunction, results: Sequence[Any], rows: pa.Table, start: int, answers: pa.Schema
) -> pa.Table:
    """Return answers to single rows as a table; None stands for NULL in every column."""
    for number, answer in enumerate(results):
        if answer is None:
            continue
        if not isinstance(answer, Mapping):
            reason = f"it returned a {type(answer).__name__}, not a dict of columns"
            raise _failed(function, reason, "", rows, start + number)
        if not answer.keys() <= set(answers.names):
            _refuse_unknown(function, list(answer), rows, start + number, answers)
    plain = [dict(answer or {}) for answer in results]
    try:
        return pa.Table.from_pylist(plain, schema=answers)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        number, reason, text = _misfit(plain, answers)
        raise _failed(function, reason, text, rows, start + number) from None


def _misfit(answers: Sequence[Mapping[str, Any]], schema: pa.Schema) -> tuple[int, str, str]:
    """Return the number of the first answer that does not fit its type, the reason, and Arrow's message."""
    for number, answer in enumerate(answers):
        for field in schema:
            try:
                pa.array([answer.get(field.name)], field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as failure:
                return number, f"column `{field.name}` does not have type {field.type}", str(failure).splitlines()[0]
    raise AssertionError("every answer fits by itself")


def _refuse_unknown(
    function: PythonFunction, names: Sequence[str], rows: pa.Table, row: int, answers: pa.Schema
) -> None:
    unknown = [name for name in names if name not in answers.names]
    if unknown:
        reason = f"it returned a column `{unknown[0]}`; the declared columns are {', '.join(answers.names)}"
        raise _failed(function, reason, "", rows, row)


def _failed(function: PythonFunction, reason: str, text: str, rows: pa.Table, row: int) -> FunctionFailed:
    values = rows.slice(row, 1).to_pylist()[0]
    attempts = f", in {function.retries + 1} attempts" if function.retries else ""
    return FunctionFailed(
        f"function `{function.name}` failed on a row{attempts}",
        detail=reason,
        values=f"{'a batch that starts with row' if function.batch else 'row'} {values}"
        + (f": {text}" if text else ""),
        hint="nothing of the epoch is committed, and the next attempt calls the function again for its rows; to "
        "continue without an answer, catch the error in the function and return None",
    )
