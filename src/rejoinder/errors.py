"""The exception tree: every error a user can meet, each with a stable code.

RejoinderError
├── PlanningError            refused before any row was read
│   ├── InvalidSql           the text is not SQL that we know
│   ├── UnknownName          no such relation, column, function or option
│   ├── AmbiguousName        a name that stands for two things
│   ├── TypeMismatch         types that do not fit together
│   ├── Unsupported          understood, and not supported
│   ├── DefinitionConflict   a name defined twice, or still in use
│   └── Incomplete           rows that an answer needs are no longer kept
├── InputError               a source handed over something unusable
│   ├── MalformedInput       a file or record that cannot be decoded
│   ├── SchemaChanged        a file whose columns are not the declared ones
│   ├── MissingInput         a path, topic or partition that is not there
│   ├── MissingRow           the delete of a row that is not there
│   ├── NullKey              a NULL in a primary key
│   ├── LateRow              a row below the watermark, where none may be
│   └── WatermarkRegress     a watermark that does not rise
├── EvaluationError          an expression failed on a row
│   └── FunctionFailed       a Python function failed, was too slow, or gave something unusable
├── StateError               the state directory cannot be used
│   ├── Fenced               another driver has committed to this state
│   ├── Corrupt              a run or manifest that fails its checksum
│   ├── NewerFormat          state written by a newer version
│   ├── NotCommitted         an epoch that is not (or no longer) readable
│   ├── StorageFailed        the disk or object store refused to work
│   │   └── Unconfirmed      a commit was sent, and its answer was lost
│   └── StateDeleted         the state directory was deleted under a running flow
├── SinkFailed               a sink did not take an epoch; what was committed is there
├── RuntimeMismatch          Java, Python or Spark are not what we need
└── LimitReached             a cap that guards the machine
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

HIDDEN_VALUES = "hidden; shown with show_values=True, or --show-values on the command line"


class RejoinderError(Exception):
    """A fact in lower case, then optionally `Detail:`, `Values:` and `Hint:`.

    `values` quotes rows, or what a library or a function said about them. The text of an error ends up in logs, so it
    shows them only if `shows_values` is set: `Flow(show_values=True)`, `Driver(show_values=True)`, `--show-values`.
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
        """The values as they may be shown; how to see them if they are hidden; None if there are none."""
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
    """Let the errors of a method show row values if its object has the option `show_values`."""

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
    is_needed = True  # False: the rows would only be kept for views that may come later


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


def near_misses(name: str, known: Iterable[str]) -> str:
    """Name the known names that look like `name`, for a hint; empty if none do.

    >>> near_misses("ordrs", ["orders", "rates"])
    'did you mean `orders`?'
    """
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""
