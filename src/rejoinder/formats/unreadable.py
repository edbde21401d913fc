"""Why a value could not be read: a text without values for errors, and one that quotes the value."""

from __future__ import annotations

import re

import pyarrow as pa

# Messages of Arrow's readers that quote no value. All others may quote one.
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
    """A record cannot be read; `plain` is the reason without values, `values` quotes them."""

    def __init__(self, plain: str, values: str = "") -> None:
        super().__init__(f"{plain}: {values}" if values else plain)
        self.plain = plain
        self.values = values


class Reason(str):
    """Why a record cannot be read, in full; `plain` is the same without values."""

    plain: str

    @classmethod
    def of(cls, failure: BaseException, hidden: re.Pattern[str] | None = None) -> Reason:
        """Return the reason of a failure, without the text that `hidden` matches.

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
        """Return a reason from both texts."""
        reason = cls(text)
        reason.plain = plain
        return reason


def plain_text(text: str) -> str:
    """Return the parts of a message of Arrow that quote no value."""
    other = _OTHER_KIND.search(text)
    if other is not None:
        return f"field `{other['field']}` is a {other['found']} where a {other['wanted']} is expected"
    return ": ".join(dict.fromkeys(_KNOWN.findall(text))) or "a value does not fit its type"


def plain_reason(reason: str) -> str:
    """Return a reason without values; a plain string quotes none."""
    return reason.plain if isinstance(reason, Reason) else reason
