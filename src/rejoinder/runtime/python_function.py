"""Functions of the user's by name: `module:function`, imported where they are called; and what they answer, checked.

The catalog holds the name. So whoever runs a task has to be able to import the module; what is made on the fly (a
lambda, a function inside another one) has no name that a worker could find.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import ModuleType
from typing import Any

import pyarrow as pa

from rejoinder.errors import FunctionFailed, UnknownName, near_misses
from rejoinder.ir.function_reference import PythonFunction
from rejoinder.runtime.function_calls import FunctionCalls, TooSlowError

SLICE = 1024


def load(name: str) -> Callable[[Any], Any]:
    """Import a function by its name. Raises `UnknownName`, which says how far it got."""
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as failure:  # a module runs when it is imported: anything may go wrong in it
        raise UnknownName(
            f"the module of function `{name}` cannot be imported",
            detail=f"{type(failure).__name__}: {failure}",
            hint="it has to be importable in every process of the flow: install it, put its folder on PYTHONPATH, or "
            "give it to Spark with sparkContext.addPyFile",
        ) from failure
    for part in path.split("."):
        if not hasattr(found, part):
            raise UnknownName(
                f"there is no function `{name}`",
                detail=f"`{module_name}` has no `{path}`",
                hint=near_misses(part, dir(found)) or "write it as module:function",
            )
        found = getattr(found, part)
        if isinstance(found, ModuleType):
            raise _elsewhere(name, found.__name__)
    home = getattr(found, "__module__", None) or module_name
    is_method = not isinstance(getattr(found, "__self__", None), ModuleType | None)
    is_plain = (inspect.isroutine(found) or inspect.isclass(found)) and not is_method
    if is_plain and home.partition(".")[0] != module_name.partition(".")[0]:
        raise _elsewhere(name, home)
    if not callable(found):
        raise UnknownName(
            f"`{name}` is not a function",
            detail=f"it is of type {type(found).__name__}",
            hint="name one that can be called",
        )
    return found  # type: ignore[no-any-return]


def _elsewhere(name: str, home: str) -> UnknownName:
    """A module that is allowed does not allow what it has imported from others."""
    return UnknownName(
        f"function `{name}` belongs to another module",
        detail=f"it is of `{home}`",
        hint="name it where it is defined, and allow that module; or wrap it in a function of your own",
    )


def ask(function: PythonFunction, rows: pa.Table, answers: pa.Schema) -> pa.Table:
    """What the function answers about each row, in the order of the rows. Raises `FunctionFailed`.

    A call per row, or per batch, is a loop by nature; everything else works on columns.
    """
    called = load(function.name)
    size = function.batch or 1
    found: list[Any] = [None] * -(-rows.num_rows // size)
    with FunctionCalls[Any, Any, int](
        called, concurrency=function.concurrency, timeout=function.timeout, retries=function.retries
    ) as calls:

        def take(ended: tuple[int, Future[Any]] | None) -> None:
            assert ended is not None
            at, answer = ended
            failure = answer.exception()
            if failure is not None:
                raise _failed(function, *_told(failure), rows, at * size) from failure
            found[at] = answer.result()

        for at, argument in enumerate(_arguments(rows, function.batch)):
            while not calls.has_room:
                take(calls.fetch(wait=True))
            calls.start(argument, at)
        while calls.open:
            take(calls.fetch(wait=True))
    if function.batch:
        parts = [_batch(function, each, rows, at * size, answers) for at, each in enumerate(found)]
        return pa.concat_tables(parts)
    return _table(function, found, rows, 0, answers)


def _told(failure: BaseException) -> tuple[str, str]:
    """What may be said of a failure of the user's function, and what it says itself, which may quote the row."""
    if isinstance(failure, TooSlowError):
        return str(failure), ""
    return f"it raised {type(failure).__name__}", str(failure)


def _arguments(rows: pa.Table, batch: int) -> Any:
    """What calls are given: batches as tables, or rows as dicts, made when they are needed."""
    for start in range(0, rows.num_rows, batch or SLICE):
        part = rows.slice(start, batch or SLICE)
        if batch:
            yield part
        else:
            yield from part.to_pylist()


def _batch(function: PythonFunction, answer: Any, rows: pa.Table, start: int, answers: pa.Schema) -> pa.Table:
    """The answer to a batch as a table: it gave one, or a list of rows."""
    count = min(function.batch, rows.num_rows - start)
    given = len(answer) if isinstance(answer, Sequence) else getattr(answer, "num_rows", None)
    if isinstance(answer, str) or given != count:
        what = f"{given} answers" if given is not None and not isinstance(answer, str) else f"a {type(answer).__name__}"
        raise _failed(function, f"it gave {what} for a batch of {count} rows", "", rows, start)
    if not isinstance(answer, pa.Table | pa.RecordBatch):
        return _table(function, list(answer), rows, start, answers)
    _refuse_unknown(function, answer.schema.names, rows, start, answers)
    columns = []
    for field in answers:
        at = answer.schema.get_field_index(field.name)
        try:
            column = pa.nulls(count, field.type) if at < 0 else answer.column(at).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
            reason = f"column `{field.name}` is not of type {field.type}"
            raise _failed(function, reason, str(failure).splitlines()[0], rows, start) from None
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=answers)


def _table(function: PythonFunction, found: Sequence[Any], rows: pa.Table, start: int, answers: pa.Schema) -> pa.Table:
    """Answers to single rows as a table; None stands for NULL in every column."""
    for at, answer in enumerate(found):
        if answer is None:
            continue
        if not isinstance(answer, Mapping):
            reason = f"it gave a {type(answer).__name__}, not a dict of columns"
            raise _failed(function, reason, "", rows, start + at)
        if not answer.keys() <= set(answers.names):
            _refuse_unknown(function, list(answer), rows, start + at, answers)
    plain = [dict(answer or {}) for answer in found]
    try:
        return pa.Table.from_pylist(plain, schema=answers)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        at, reason, said = _misfit(plain, answers)
        raise _failed(function, reason, said, rows, start + at) from None


def _misfit(answers: Sequence[Mapping[str, Any]], schema: pa.Schema) -> tuple[int, str, str]:
    """The first answer that does not fit, and why: one by one, now that one of them is wrong."""
    for at, answer in enumerate(answers):
        for field in schema:
            try:
                pa.array([answer.get(field.name)], field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as failure:
                return at, f"column `{field.name}` is not of type {field.type}", str(failure).splitlines()[0]
    raise AssertionError("every answer fits by itself")


def _refuse_unknown(
    function: PythonFunction, given: Sequence[str], rows: pa.Table, at: int, answers: pa.Schema
) -> None:
    unknown = [name for name in given if name not in answers.names]
    if unknown:
        reason = f"it gave a column `{unknown[0]}`, and the declared ones are {', '.join(answers.names)}"
        raise _failed(function, reason, "", rows, at)


def _failed(function: PythonFunction, reason: str, said: str, rows: pa.Table, at: int) -> FunctionFailed:
    row = rows.slice(at, 1).to_pylist()[0]
    tried = f", in {function.retries + 1} attempts" if function.retries else ""
    return FunctionFailed(
        f"function `{function.name}` failed on a row{tried}",
        detail=reason,
        values=f"{'a batch that starts with row' if function.batch else 'row'} {row}" + (f": {said}" if said else ""),
        hint="nothing of the epoch is committed, and its rows are sent to the function again next time; to go on "
        "without an answer, catch the error in the function and give None",
    )
