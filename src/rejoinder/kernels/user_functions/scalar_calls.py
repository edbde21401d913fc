"""Scalar and table functions of the user over Arrow arrays.

The result has a struct for each row: the answer, and the failure as text, NULL if there is none. A row on which the
function raises, or returns something that does not fit its type, does not disturb the others. Cost: a call for each
row; of a vectorised function, one for each array, and one for each row of an array on which it raises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rejoinder.errors import RejoinderError, UnknownName
from rejoinder.ir.user_functions import UserFunction
from rejoinder.kernels.user_functions.answer_checks import AnswerCheck, current_check
from rejoinder.kernels.user_functions.function_failures import blocked, encoded, failed, raised
from rejoinder.kernels.user_functions.function_imports import load
from rejoinder.kernels.user_functions.time_limits import TooLongError, Turn, within
from rejoinder.kernels.zones.zone_labels import bare, typed

_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)


class _Rows(Sequence[tuple[Any, ...]]):
    """The arguments of each row, made when a row is asked for: a vectorised function needs none."""

    def __init__(self, columns: Sequence[pa.Array], count: int) -> None:
        self._columns, self._count = columns, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        return tuple(column[row].as_py() for column in self._columns)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        values = (column.to_pylist() for column in self._columns)
        return zip(*values, strict=True) if self._columns else iter([()] * self._count)


@dataclass(frozen=True)
class ScalarCalls:
    """A function as DuckDB calls it: arrays in, an array of structs out. It never raises."""

    function: UserFunction

    @property
    def type(self) -> pa.DataType:
        """The type of an answer: of a table function, the list of its rows."""
        function = self.function
        return pa.list_(function.result) if function.kind == "table" else function.result

    @property
    def result(self) -> pa.DataType:
        """The type of the structs, without zones."""
        return pa.struct([("answer", bare(self.type)), ("failure", pa.string())])

    def __call__(self, *columns: pa.ChunkedArray) -> pa.Array:
        """Call the function for each row."""
        count = len(columns[0])
        fields = list(self.function.arguments)  # without arguments there is a column that only counts
        arguments = [typed(column, field.type) for column, field in zip(columns, fields, strict=False)]
        batch = [column.combine_chunks() for column in arguments]
        rows = _Rows(batch, count)
        try:
            answers, failures = self._answers(batch, rows)
            check = current_check()
            if check is not None:
                self._checked(check, batch, rows, answers, failures)
        except _StoppedError as stopped:
            answers, failures = pa.nulls(count, self.type), {stopped.row: stopped.error}
        texts = [encoded(failures[row]) if row in failures else None for row in range(count)] if failures else None
        plain = typed(pa.chunked_array([answers]), bare(self.type)).combine_chunks()
        failure_texts = pa.nulls(count, pa.string()) if texts is None else pa.array(texts, pa.string())
        return pa.StructArray.from_arrays([plain, failure_texts], fields=list(self.result))

    def _checked(
        self,
        check: AnswerCheck,
        batch: Sequence[pa.Array],
        rows: _Rows,
        answers: pa.Array,
        failures: dict[int, RejoinderError],
    ) -> None:
        """Ask once more, in reverse order. Raises `_StoppedError` at a row with two answers."""
        order = pa.array(range(len(rows))[::-1])
        turned = [column.take(order) for column in batch]
        again, others = self._answers(turned, _Rows(turned, len(rows)))
        texts = {row: error.detail for row, error in failures.items()}
        other_texts = {len(rows) - 1 - row: error.detail for row, error in others.items()}
        first = [texts.get(row, answer) for row, answer in enumerate(answers.to_pylist())]
        second = [other_texts.get(row, answer) for row, answer in enumerate(again.take(order).to_pylist())]
        unequal = check.compare(self.function, rows, first, second)
        if unequal is not None:
            raise _StoppedError(*unequal)

    def _answers(self, batch: Sequence[pa.Array], rows: _Rows) -> tuple[pa.Array, dict[int, RejoinderError]]:
        """The answer for each row, NULL where it fails, and the failures. Raises `_StoppedError`."""
        try:
            called = load(self.function.reference)
        except UnknownName as unknown:
            raise _StoppedError(0, unknown) from unknown
        try:
            if self.function.vectorized:
                return within(self.function.timeout, lambda turn: self._of_arrays(called, batch, rows, turn))
            return within(self.function.timeout, lambda turn: self._of_rows(called, rows, turn))
        except TooLongError as late:
            raise _StoppedError(late.row, blocked(self.function, rows[late.row])) from None

    def _of_rows(
        self, called: Callable[..., Any], rows: _Rows, turn: Turn
    ) -> tuple[pa.Array, dict[int, RejoinderError]]:
        failures: dict[int, RejoinderError] = {}
        values: list[Any] = []
        call = self._table(called) if self.function.kind == "table" else called
        for number, row in enumerate(rows):
            turn.begin(number)
            try:
                values.append(call(*row))
            except BaseException as failure:  # noqa: BLE001  # whatever it raises fails its row
                values.append(None)
                failures[number] = raised(self.function, failure, row)
        turn.begin(0)
        try:
            return pa.array(values, self.type), failures
        except _MISFITS:
            pass
        for number, value in enumerate(values):
            try:
                pa.array([value], self.type)
            except _MISFITS as misfit:
                kind = f"it returned a {type(value).__name__}, which is not of its type {self.type}"
                failures[number] = failed(self.function, kind, rows[number], str(misfit).splitlines()[0])
                values[number] = None
        return pa.array(values, self.type), failures

    def _table(self, called: Callable[..., Any]) -> Callable[..., Any]:
        """The function that returns the rows of a table function as a list of structs."""
        names = [field.name for field in self.function.result]
        made: Any = called if inspect.isclass(called) else None

        def structs(*row: Any) -> list[Any]:
            listed = []
            for values in (called(*row) if made is None else made().eval(*row)) or ():
                if isinstance(values, dict):
                    unknown = values.keys() - set(names)
                    if unknown:
                        raise ValueError(f"a row has a column {sorted(unknown)[0]}, which is not declared")
                    listed.append(values)
                    continue
                cells = values if isinstance(values, tuple | list) else (values,)
                if len(cells) != len(names):
                    raise ValueError(f"a row has {len(cells)} values for {len(names)} columns")
                listed.append(dict(zip(names, cells, strict=True)))
            return listed

        return structs

    def _of_arrays(
        self, called: Callable[..., Any], batch: Sequence[pa.Array], rows: _Rows, turn: Turn
    ) -> tuple[pa.Array, dict[int, RejoinderError]]:
        """Call with whole arrays; if that fails, row by row, to find the rows that fail."""
        try:
            return self._array(called(*batch), len(rows)), {}
        except BaseException:  # noqa: BLE001  # a row has raised, which is found below
            pass
        failures: dict[int, RejoinderError] = {}
        parts = []
        for number in range(len(rows)):
            turn.begin(number)
            try:
                parts.append(self._array(called(*(column.slice(number, 1) for column in batch)), 1))
            except _MisfitError as misfit:
                failures[number] = failed(self.function, str(misfit), rows[number])
            except BaseException as failure:  # noqa: BLE001
                failures[number] = raised(self.function, failure, rows[number])
            if number in failures:
                parts.append(pa.nulls(1, self.type))
        return pa.concat_arrays(parts), failures

    def _array(self, answer: Any, count: int) -> pa.Array:
        if isinstance(answer, pa.ChunkedArray):
            answer = answer.combine_chunks()
        if not isinstance(answer, pa.Array):
            raise _MisfitError(f"it returned a {type(answer).__name__}, not an Arrow array")
        if len(answer) != count:
            raise _MisfitError(f"it returned {len(answer)} values for {count} rows")
        try:
            return answer.cast(self.type)
        except _MISFITS:
            raise _MisfitError(f"it returned {answer.type}, which does not fit its type {self.type}") from None


class _MisfitError(Exception):
    """An answer that does not fit. Its text contains no values."""


class _StoppedError(Exception):
    """A failure after which no row is computed."""

    def __init__(self, row: int, error: RejoinderError) -> None:
        super().__init__(row)
        self.row, self.error = row, error
