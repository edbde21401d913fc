"""Aggregates of the user: a class with methods on a state, which is plain data.

Algebra: the state of a group is the result of `add` for each of its rows, in any order; `retract` undoes `add`, and
`finish` gives the value. Cost: a call for each changed row, and the size of the states of changed groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.errors import BrokenFunction, FunctionFailed
from rejoinder.ir.user_functions import UserFunction
from rejoinder.kernels.arrow.columns import Int64
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.user_functions.answer_checks import current_check
from rejoinder.kernels.user_functions.function_failures import blocked, failed, raised, row_text
from rejoinder.kernels.user_functions.function_imports import load
from rejoinder.kernels.user_functions.plain_data import from_text, to_text
from rejoinder.kernels.user_functions.time_limits import TooLongError, Turn, within

REQUIRED = ("create", "add", "finish")
Row = tuple[Any, ...]


def changed_states(
    function: UserFunction,
    states: Sequence[str | None],
    values: pa.Array,
    multiplicity: Int64,
    starts: Int64,
    has_rows: Mask,
) -> tuple[pa.Array, pa.Array]:
    """Apply changed rows, ordered by group, to the states of groups. Returns the new values and states.

    `values` are structs of the arguments, NULL for a row that does not count. A group that does not have rows after
    the change has no value and no state: no method is called for it, since none could fail in the batch query.
    Raises `FunctionFailed`, `FunctionBlocked` or `BrokenFunction`.
    """
    rows: list[Row | None] = [None if each is None else tuple(each.values()) for each in values.to_pylist()]
    ends = np.append(starts[1:], len(rows))

    def change(turn: Turn) -> tuple[pa.Array, pa.Array]:
        methods = _Methods(function, turn)
        results: list[Any] = []
        texts: list[str | None] = []
        for state, start, end, is_left in zip(states, starts.tolist(), ends.tolist(), has_rows.tolist(), strict=True):
            if not is_left:
                results.append(None)
                texts.append(None)
                continue
            counted = [
                (row, int(multiplicity[at]), at) for at, row in enumerate(rows[start:end], start) if row is not None
            ]
            text = methods.text(methods.create()) if state is None else state
            changes = sorted(counted, key=lambda each: each[1] < 0)  # a count must not sink below zero in between
            new = methods.applied(text, changes)
            if current_check() is not None:
                methods.check(text, changes, new)
            texts.append(new)
            results.append(methods.value(new, start, counted[0][0] if counted else ()))
        return pa.array(results, function.result), pa.array(texts, pa.string())

    try:
        return within(function.timeout, change)
    except TooLongError as late:
        row = rows[late.row] if late.row < len(rows) else None
        raise blocked(function, row or (None,) * len(function.arguments)) from None


@dataclass
class _Methods:
    """The methods of an aggregate, whose failures name the row."""

    function: UserFunction
    turn: Turn

    def __post_init__(self) -> None:
        made = load(self.function.reference)
        missing = [name for name in REQUIRED if not hasattr(made, name)]
        if missing:
            raise self._broken(f"it has no method `{missing[0]}`", "define create, add, finish and retract")
        self.made = self._called(0, (), made)

    def create(self) -> Any:
        return self._called(self.turn.row, (), self.made.create)

    def text(self, state: Any) -> str:
        try:
            return to_text(state)
        except TypeError as unknown:
            hint = "numbers, texts, bytes, dates, lists, tuples, sets and dicts are plain data"
            raise self._broken(f"its state has {unknown}, which is not plain data", hint) from None

    def applied(self, text: str, changes: Sequence[tuple[Row, int, int]]) -> str:
        """The state after changed rows: row, how often it is added or (negative) retracted, and its number."""
        state = from_text(text)
        for row, count, at in changes:
            method = self.made.add if count > 0 else self._retract
            for _ in range(abs(count)):
                result = self._called(at, row, method, state, *row)
                state = state if result is None else result
        return self.text(state)

    def value(self, text: str, at: int, row: Row) -> Any:
        result = self._called(at, row, self.made.finish, from_text(text))
        try:
            return pa.array([result], self.function.result)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as misfit:
            kind = f"`finish` returned a {type(result).__name__}, which is not of its type {self.function.result}"
            raise self._failure(kind, row, str(misfit).splitlines()[0]) from None

    def check(self, before: str, changes: Sequence[tuple[Row, int, int]], after: str) -> None:
        """Raise `BrokenFunction` if `retract` does not undo `add`, or `merge` is not the sum of its parts."""
        if not _agree(self.value(self.applied(before, changes), 0, ()), self.value(after, 0, ())):
            raise self._broken("the same rows gave two values", "let it depend on its arguments alone")
        added = [change for change in changes if change[1] > 0]
        if added and hasattr(self.made, "retract"):
            undone = self.applied(self.applied(before, added), [(row, -count, at) for row, count, at in added])
            if self._has_value(before) and not _agree(self.value(undone, 0, ()), self.value(before, 0, ())):
                raise self._broken("`retract` does not undo `add`", "keep exact numbers in the state", added[0][0])
        if len(added) > 1 and hasattr(self.made, "merge"):
            empty = self.text(self.create())
            left, right = (from_text(self.applied(empty, part)) for part in (added[::2], added[1::2]))
            result = self._called(0, added[0][0], self.made.merge, left, right)
            merged = self.text(left if result is None else result)
            if not _agree(self.value(merged, 0, ()), self.value(self.applied(empty, added), 0, ())):
                raise self._broken("`merge` of two parts is not the state of all rows", "correct it", added[0][0])

    def _has_value(self, text: str) -> bool:
        """Whether `finish` has a value: that of a group without rows is never asked for elsewhere, and may fail."""
        try:
            self.value(text, 0, ())
        except FunctionFailed:
            return False
        return True

    @property
    def _retract(self) -> Callable[..., Any]:
        if not hasattr(self.made, "retract"):
            hint = "define retract(state, …), which undoes add, or aggregate a stream, whose rows stay"
            raise self._broken("a row was retracted, and it has no method `retract`", hint)
        return self.made.retract  # type: ignore[no-any-return]

    def _called(self, at: int, row: Row, method: Callable[..., Any], *arguments: Any) -> Any:
        self.turn.begin(at)
        try:
            return method(*arguments)
        except BaseException as failure:  # whatever it raises fails the epoch
            if not row:
                raise self._failure(f"it raised {type(failure).__name__}", row, str(failure)) from failure
            raise raised(self.function, failure, row) from failure

    def _failure(self, reason: str, row: Row, text: str) -> FunctionFailed:
        return failed(self.function, reason, row or (None,) * len(self.function.arguments), text)

    def _broken(self, reason: str, hint: str, row: Row = ()) -> BrokenFunction:
        return BrokenFunction(
            f"aggregate `{self.function.name}` cannot be used: {reason}",
            detail=f"it is {self.function.reference}; nothing of the epoch is committed",
            values=row_text(self.function, row) if row else None,
            hint=hint,
        )


def _agree(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12) or repr(left) == repr(right)
    return repr(left) == repr(right)
