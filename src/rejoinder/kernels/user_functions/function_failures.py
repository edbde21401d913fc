"""Failures of the user's functions, and their text: DuckDB passes them on as the message of an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rejoinder.errors import FunctionBlocked, FunctionFailed, NotDeterministic, RejoinderError, UnknownName
from rejoinder.ir.user_functions import UserFunction

_PREFIX = "user function: "  # DuckDB reads a message that begins with a brace as something else
_KINDS: dict[str, type[RejoinderError]] = {
    kind.code: kind for kind in (FunctionBlocked, FunctionFailed, NotDeterministic, UnknownName)
}


def encoded(error: RejoinderError) -> str:
    """Return an error as one line."""
    return _PREFIX + json.dumps([error.code, error.fact, error.detail, error.hint, error.values])


def decoded(text: str) -> RejoinderError | None:
    """Return the error that a text stands for; None for another text."""
    if not text.startswith(_PREFIX):
        return None
    code, fact, detail, hint, values = json.loads(text.removeprefix(_PREFIX))
    return _KINDS[code](fact, detail=detail, hint=hint, values=values)


def failed(function: UserFunction, reason: str, row: Sequence[Any], text: str = "") -> FunctionFailed:
    """Return the error for a row on which a function fails. `text` may quote values."""
    return FunctionFailed(
        f"function `{function.name}` failed on a row",
        detail=f"{reason}; it is {function.reference}",
        values=row_text(function, row) + (f": {text}" if text else ""),
        hint="nothing of the epoch is committed; fix the function, or catch the error in it and return None",
    )


def raised(function: UserFunction, failure: BaseException, row: Sequence[Any]) -> FunctionFailed:
    """Return the error for a function that raised an exception."""
    return failed(function, f"it raised {type(failure).__name__}", row, str(failure))


def blocked(function: UserFunction, row: Sequence[Any]) -> FunctionBlocked:
    """Return the error for a call that did not return in time."""
    return FunctionBlocked(
        f"function `{function.name}` did not return within {function.timeout:g} seconds",
        detail=f"it is {function.reference}; its thread cannot be stopped, and stays until the process ends",
        values=row_text(function, row),
        hint="nothing of the epoch is committed; make the function faster, declare it with a longer timeout: "
        "OPTIONS (timeout '5 minutes'); or call a service with ENRICH",
    )


def unstable(function: UserFunction, row: Sequence[Any], answers: Sequence[Any], when: str) -> NotDeterministic:
    """Return the error for a function with two answers for the same arguments."""
    return NotDeterministic(
        f"function `{function.name}` gave two answers for the same arguments",
        detail=f"{when}; it is {function.reference}",
        values=f"{row_text(function, row)}: {answers[0]}, then {answers[1]}",
        hint="let it depend on its arguments alone: no clock, no random numbers, no files, no state between calls; "
        "answers that change with time belong in ENRICH, which stores them",
    )


def row_text(function: UserFunction, row: Sequence[Any]) -> str:
    """Return the arguments of a call by name."""
    return ", ".join(f"{name} = {value!r}" for name, value in zip(function.arguments.names, row, strict=True))
