"""Why a value could not be read: what may be said of it in an error, apart from what quotes the value."""

from __future__ import annotations

import re

import pyarrow as pa

# What Arrow's readers say without quoting a value. Whatever else they say may quote one.
_KNOWN = re.compile(
    r"In CSV column #\d+"
    r"|CSV conversion error to [a-z0-9_]+(?:[\[(][\w, =]*[\])])?"
    r"|Expected \d+ columns, got \d+"
    r"|JSON parse error"
    r"|Missing a (?:closing quotation mark in string|comma or \} after an object member"
    r"|colon after a name of object member|name for object member|comma or \] after an array element)"
    r"|[Ii]nvalid UTF-?8(?: payload)?"
    r"|Invalid escape character in string|Invalid value|The document root must not be followed by other values"
    r"|would lose data|was truncated converting to \w+|not in range|would cause data loss"
)


_OTHER_KIND = re.compile(r"Column\(/(?P<field>[\w/\[\]]*)\) changed from (?P<wanted>\w+) to (?P<found>\w+)")


class Unreadable(pa.ArrowInvalid):  # type: ignore[misc]
    """A record that cannot be read, told without values; `values` is what quotes them."""

    def __init__(self, plain: str, values: str = "") -> None:
        super().__init__(f"{plain}: {values}" if values else plain)
        self.plain = plain
        self.values = values


class Reason(str):
    """Why a record cannot be read, in full; `plain` is the same without values."""

    plain: str

    @classmethod
    def of(cls, failure: BaseException, hidden: re.Pattern[str] | None = None) -> Reason:
        """The reason that a failure gives, without what `hidden` matches.

        >>> reason = Reason.of(pa.ArrowInvalid("In CSV column #1: CSV conversion error to int64: invalid value 'x'"))
        >>> reason.plain
        'In CSV column #1: CSV conversion error to int64'
        """
        text = str(failure)
        reason = cls(text if hidden is None else hidden.sub("", text))
        reason.plain = failure.plain if isinstance(failure, Unreadable) else plain_text(text)
        return reason

    @classmethod
    def saying(cls, plain: str, text: str) -> Reason:
        """A reason given as both texts."""
        reason = cls(text)
        reason.plain = plain
        return reason


def plain_text(text: str) -> str:
    """What is known to quote no value in a message of Arrow's."""
    other = _OTHER_KIND.search(text)
    if other is not None:
        return f"field `{other['field']}` holds a {other['found']} where a {other['wanted']} is expected"
    return ": ".join(dict.fromkeys(_KNOWN.findall(text))) or "a value does not fit its type"


def plain_reason(reason: str) -> str:
    """What may be said of a reason; one that is a plain text quotes nothing."""
    return reason.plain if isinstance(reason, Reason) else reason
