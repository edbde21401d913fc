"""Windows of time to group a stream by: `tumble` puts each row into one, `hop` into several that overlap.

A size is a length of time, or a number if the times are integers.
"""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.api.relations.named_rows import Length, length_text
from rejoinder.sql.statements.query_text import name_text as quoted
from rejoinder.sql.types.interval_literals import read_interval


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size, of which one starts `every` so often."""

    size: str
    every: str

    @property
    def is_of_integers(self) -> bool:
        """Whether the times are integers, and not on the clock."""
        return self.size.lstrip("-").isdigit()

    @property
    def length(self) -> int:
        """The size however it is written: in microseconds, or in the unit of integers."""
        return int(self.size) if self.is_of_integers else read_interval(self.size).micros

    def text(self, time: str) -> str:
        """The SQL of the window of a time."""
        if self.every == self.size:
            return f"TUMBLE({quoted(time)}, {self.size})"
        return f"HOP({quoted(time)}, {self.every}, {self.size})"


def tumble(size: Length) -> TimeWindows:
    """Windows without gaps or overlaps.

    >>> tumble("5 minutes").text("ts"), tumble(10).text("t")
    ('TUMBLE(ts, INTERVAL 5 minutes)', 'TUMBLE(t, 10)')
    """
    return TimeWindows(length_text(size), length_text(size))


def hop(size: Length, *, every: Length) -> TimeWindows:
    """Windows of a size, a new one `every` so often.

    >>> hop("10 minutes", every="1 minute").text("ts")
    'HOP(ts, INTERVAL 1 minute, INTERVAL 10 minutes)'
    """
    return TimeWindows(length_text(size), length_text(every))
