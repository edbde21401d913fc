"""The check mode of the test driver: find functions that give two answers for the same arguments.

The engine evaluates a function again when a row is retracted, so a view is right only if the answer is the same. In
check mode every call is made twice, the second time in the reverse order of rows, and answers are kept from epoch
to epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rejoinder.errors import NotDeterministic
from rejoinder.ir.user_functions import UserFunction
from rejoinder.kernels.user_functions.function_failures import unstable

MOST_ANSWERS = 200_000
"""How many answers are kept."""


class AnswerCheck:
    """The answers that functions have given so far."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], str] = {}

    def compare(
        self, function: UserFunction, rows: Sequence[Sequence[Any]], first: Sequence[Any], again: Sequence[Any]
    ) -> tuple[int, NotDeterministic] | None:
        """Return the first row with two answers, and the error for it; None if all answers agree."""
        for number, (row, *answers) in enumerate(zip(rows, map(repr, first), map(repr, again), strict=True)):
            if answers[0] != answers[1]:
                return number, unstable(function, row, answers, "called twice in a row")
            key = (function.identity, repr(row))
            before = self._answers.get(key)
            if before is not None and before != answers[0]:
                return number, unstable(function, row, [before, answers[0]], "called again later")
            if before is None and len(self._answers) < MOST_ANSWERS:
                self._answers[key] = answers[0]
        return None


_current: AnswerCheck | None = None


def current_check() -> AnswerCheck | None:
    """Return the check of this process; None outside of check mode."""
    return _current


@contextmanager
def checked(check: AnswerCheck | None) -> Iterator[None]:
    """Check the answers of functions that are called inside; None: do not."""
    global _current
    before, _current = _current, check
    try:
        yield
    finally:
        _current = before
