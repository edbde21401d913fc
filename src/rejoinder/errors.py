"""The exception tree: every error a user can meet, each with a stable code.

RejoinderError
├── PlanningError            refused before any row was read
│   ├── InvalidSql           the text is not valid SQL
│   ├── UnknownName          no such relation, column, function or option
│   ├── AmbiguousName        a name with two meanings
│   ├── TypeMismatch         incompatible types
│   ├── Unsupported          valid, but not supported
│   ├── DefinitionConflict   a name defined twice, or still in use
│   └── Incomplete           rows that a query or view needs are no longer retained
├── InputError               unusable input of a source
│   ├── MalformedInput       a file or record that cannot be decoded
│   ├── SchemaChanged        a file with other columns than declared
│   ├── MissingInput         a path, topic or partition that does not exist
│   ├── MissingRow           a delete of a row that does not exist
│   ├── NullKey              a NULL in a primary key
│   ├── LateRow              a row below the watermark, where late rows are an error
│   └── WatermarkRegress     a watermark that does not rise
├── EvaluationError          an expression failed on a row
│   ├── FunctionFailed       a Python function failed, timed out, or returned an invalid answer
│   └── SeveralRows          a scalar subquery has more than one row
├── BrokenFunction           a Python function that no epoch can use
│   ├── FunctionBlocked      a call did not return within its time limit
│   └── NotDeterministic     a function gave two answers for the same arguments
├── StateError               the state directory cannot be used
│   ├── Fenced               another driver has committed to this state
│   ├── Corrupt              a run or manifest that fails its checksum
│   ├── NewerFormat          state written by a newer version
│   ├── NotCommitted         an epoch that is not (or no longer) readable
│   ├── StorageFailed        the disk or object store failed
│   │   └── Unconfirmed      a commit was sent, and its answer was lost
│   └── StateDeleted         the state directory was deleted while the flow was running
├── SinkFailed               a sink did not accept an epoch, which stays committed
├── RuntimeMismatch          an unsupported version of Java, Python or Spark
└── LimitReached             a limit that protects the machine was exceeded
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

HIDDEN_VALUES = "hidden; shown with show_values=True, or --show-values on the command line"


class RejoinderError(Exception):
    """A fact in lower case, then optionally `Detail:`, `Values:` and `Hint:`.

    `values` quotes rows, or messages of a library or a function about them. Errors end up in logs, so their text
    contains values only if `shows_values` is set: `Flow(show_values=True)`, `Driver(show_values=True)`,
    `--show-values`.
    """

    code: ClassVar[str] = "RJ000"

    def __init__(
        self, fact: str, *, detail: str | None = None, hint: str | None = None, values: str | None = None
    ) -> None:
        super().__init__(fact, detail, hint)
        self.fact = fact
        self.detail = detail
        self.hint = hint
        self.values = values
        self.shows_values = False

    @property
    def shown_values(self) -> str | None:
        """Return the values if they may be shown, otherwise how to show them; None if there are none."""
        return self.values if self.values is None or self.shows_values else HIDDEN_VALUES

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.fact}"]
        if self.detail:
            lines.append(f"Detail: {self.detail}")
        if self.shown_values:
            lines.append(f"Values: {self.shown_values}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.fact, self.detail, self.hint, self.values, self.shows_values))


def _rebuild(
    kind: type[RejoinderError],
    fact: str,
    detail: str | None,
    hint: str | None,
    values: str | None,
    shows_values: bool,
) -> RejoinderError:
    error = kind(fact, detail=detail, hint=hint, values=values)
    error.shows_values = shows_values
    return error


class _HasOption(Protocol):
    show_values: bool


S = TypeVar("S", bound=_HasOption)
P = ParamSpec("P")
R = TypeVar("R")


def with_values(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method so that its errors show row values if the option `show_values` of its object is set."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except RejoinderError as error:
            error.shows_values = error.shows_values or self.show_values
            raise

    return call


class PlanningError(RejoinderError):
    code = "RJ100"


class InvalidSql(PlanningError):
    code = "RJ101"


class UnknownName(PlanningError):
    code = "RJ102"


class AmbiguousName(PlanningError):
    code = "RJ103"


class TypeMismatch(PlanningError):
    code = "RJ104"


class Unsupported(PlanningError):
    code = "RJ105"


class DefinitionConflict(PlanningError):
    code = "RJ106"


class Incomplete(PlanningError):
    code = "RJ107"
    source = ""
    is_needed = True  # False: the rows would only be retained for views that may be created later


class InputError(RejoinderError):
    code = "RJ200"


class MalformedInput(InputError):
    code = "RJ201"


class SchemaChanged(InputError):
    code = "RJ202"


class MissingInput(InputError):
    code = "RJ203"


class MissingRow(InputError):
    code = "RJ204"


class NullKey(InputError):
    code = "RJ205"


class LateRow(InputError):
    code = "RJ206"


class WatermarkRegress(InputError):
    code = "RJ207"


class EvaluationError(RejoinderError):
    code = "RJ300"


class FunctionFailed(EvaluationError):
    code = "RJ301"


class SeveralRows(EvaluationError):
    code = "RJ302"


class BrokenFunction(RejoinderError):
    """Not an `EvaluationError`: the function is at fault and not the row, so no retraction of the row makes it good."""

    code = "RJ310"


class FunctionBlocked(BrokenFunction):
    code = "RJ311"


class NotDeterministic(BrokenFunction):
    code = "RJ312"


class StateError(RejoinderError):
    code = "RJ400"


class Fenced(StateError):
    code = "RJ401"


class Corrupt(StateError):
    code = "RJ402"


class NewerFormat(StateError):
    code = "RJ403"


class NotCommitted(StateError):
    code = "RJ404"


class StorageFailed(StateError):
    code = "RJ405"


class Unconfirmed(StorageFailed):
    code = "RJ406"


class StateDeleted(StateError):
    code = "RJ407"


class SinkFailed(RejoinderError):
    code = "RJ700"


class RuntimeMismatch(RejoinderError):
    code = "RJ500"


class LimitReached(RejoinderError):
    code = "RJ600"


def near_misses(name: str, candidates: Iterable[str]) -> str:
    """Return a hint with the candidates that are similar to `name`; empty if there are none.

    >>> near_misses("ordrs", ["orders", "rates"])
    'did you mean `orders`?'
    """
    similar = difflib.get_close_matches(name, list(candidates), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{candidate}`' for candidate in similar)}?" if similar else ""
