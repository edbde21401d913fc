"""Time windows to group a stream by: `tumble` assigns each row to one window, `hop` and `cumulate` to several.

`session` makes windows of the rows themselves, which last until no row follows within a gap.

A size is a length of time, or a number if the times are integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rejoinder.api.relations.named_rows import Length, length_text
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.types.interval_literals import read_interval


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size, with a new window at every multiple of `every`; or, by `kind`, others."""

    size: str
    """The size of a window; of a session, the gap."""
    every: str
    kind: Literal["fixed", "cumulating", "session"] = "fixed"

    @property
    def is_of_integers(self) -> bool:
        """Whether the times are integers instead of timestamps."""
        return self.size.lstrip("-").isdigit()

    @property
    def length(self) -> int:
        """The size in microseconds, or in the unit of integers."""
        return int(self.size) if self.is_of_integers else read_interval(self.size).micros

    def text(self, time: str) -> str:
        """Return the SQL of the window of a time."""
        if self.kind == "session":
            return f"SESSION({quoted(time)}, {self.size})"
        if self.kind == "cumulating":
            return f"CUMULATE({quoted(time)}, {self.every}, {self.size})"
        if self.every == self.size:
            return f"TUMBLE({quoted(time)}, {self.size})"
        return f"HOP({quoted(time)}, {self.every}, {self.size})"


def tumble(size: Length) -> TimeWindows:
    """Return windows without gaps or overlaps.

    >>> tumble("5 minutes").text("ts"), tumble(10).text("t")
    ('TUMBLE(ts, INTERVAL 5 minutes)', 'TUMBLE(t, 10)')
    """
    return TimeWindows(length_text(size), length_text(size))


def hop(size: Length, *, every: Length) -> TimeWindows:
    """Return windows of a size, with a new window at every multiple of `every`.

    >>> hop("10 minutes", every="1 minute").text("ts")
    'HOP(ts, INTERVAL 1 minute, INTERVAL 10 minutes)'
    """
    return TimeWindows(length_text(size), length_text(every))


def cumulate(size: Length, *, step: Length) -> TimeWindows:
    """Return windows that begin at every multiple of a size and grow by a step until they have that size.

    >>> cumulate("1 day", step="1 hour").text("ts")
    'CUMULATE(ts, INTERVAL 1 hour, INTERVAL 1 day)'
    """
    return TimeWindows(length_text(size), length_text(step), "cumulating")


def session(gap: Length) -> TimeWindows:
    """Return windows that last until no row of the same key follows within a gap.

    >>> session("5 minutes").text("ts")
    'SESSION(ts, INTERVAL 5 minutes)'
    """
    return TimeWindows(length_text(gap), length_text(gap), "session")
