"""Calls of window functions: what is computed from which rows around a row.

SQL's functions are made of the few primitives that are listed here, as aggregates are; `sql.bind.window_functions` says
how. A frame never ends with the partition: a query that looks to the end of the partition is computed in reverse order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

Unit = Literal["rows", "groups", "range"]
WindowFunction = Literal["count", "sum", "min", "max", "nth", "last", "offset", "rank", "dense_rank"]


@dataclass(frozen=True)
class Frame:
    """The rows around a row that a function is about, from `start` to `end`, both inclusive.

    An end is a distance from the row, negative before it: in `rows`, or (`range`) of the order value. In `groups`,
    0 stands for all rows with the order values of the row, and there are no other distances. As `start`, None is the
    first row of the partition.
    """

    unit: Unit
    start: int | float | None
    end: int | float


TO_ROW = Frame("rows", None, 0)


@dataclass(frozen=True)
class SortColumn:
    """A column by which rows are ordered."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    @property
    def reversed(self) -> SortColumn:
        """The opposite order."""
        return replace(self, descending=not self.descending, nulls_first=not self.nulls_first)

    @property
    def text(self) -> str:
        """The order as SQL words."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class WindowCall:
    """A primitive call.

    - `count`, `sum`, `min`, `max` of the values of the frame that are not NULL; `count` without argument counts rows;
    - `nth`: the value of row `number` of the frame, from 1; `last`: that of its last row. With `skips_nulls`, rows
      without a value do not count;
    - `offset`: the value `number` rows after the row (before it, if negative), or `default` if there is no such row;
    - `rank`: 1 + the rows with lesser order values; `dense_rank`: the different order values up to that of the row.
    """

    function: WindowFunction
    argument: str | None
    type: pa.DataType
    frame: Frame = TO_ROW
    number: int = 0
    skips_nulls: bool = False
    default: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether the value is made of that of the row before: a change reaches all later rows, until they agree."""
        if self.function in ("rank", "dense_rank"):
            return True
        if self.function == "offset" or (self.function == "last" and not self.skips_nulls):
            return False
        return self.frame.start is None

    @property
    def is_rank(self) -> bool:
        """Whether the value never falls along the partition: ROW_NUMBER, RANK or DENSE_RANK."""
        is_number = self.function == "count" and self.argument is None and self.frame == TO_ROW
        return is_number or self.function in ("rank", "dense_rank")

    @property
    def looks_back(self) -> bool:
        """Whether no row after the row is needed."""
        if self.is_rank:
            return True
        if self.function == "offset":
            return self.number <= 0
        return self.frame.unit == "rows" and self.frame.end <= 0

    @property
    def hidden(self) -> tuple[tuple[str, pa.DataType], ...]:
        """What a running call keeps of a row besides the value: suffixes of names, and types."""
        if not self.is_running:
            return ()
        match self.function:
            case "sum" if pa.types.is_floating(self.type):
                return (("_n", pa.int64()), ("_digits", pa.list_(pa.int64())))
            case "sum" | "nth" | "rank":
                return (("_n", pa.int64()),)
        return ()

    @property
    def text(self) -> str:
        """Canonical text."""
        frame = f"{self.frame.unit} {self.frame.start}..{self.frame.end}"
        more = f", {self.number}, {self.skips_nulls}, {self.default}"
        return f"{self.function}({self.argument}{more})::{self.type} over {frame}"


@dataclass(frozen=True)
class Reach:
    """How far a change at a row reaches, and what is read to compute the values of the rows that it reaches.

    `before` and `after`: rows before and after it with other values. `context_before` and `context_after`: rows that
    their frames need beyond these. `runs_on`: it reaches all later rows until their values agree with those before.
    `groups`: it reaches all rows with its order values; `distance`: all whose order value is so near.
    """

    before: int
    after: int
    context_before: int
    context_after: int
    runs_on: bool
    groups: bool
    distance: int | float

    @classmethod
    def of(cls, calls: tuple[WindowCall, ...]) -> Reach:
        """The reach of calls together."""
        backward, forward = [0], [0]  # the rows before, and after, that a call sees
        for call in calls:
            if call.function == "offset":
                backward.append(-call.number)
                forward.append(call.number)
            elif call.frame.unit == "rows":
                ends = [end for end in (call.frame.start, call.frame.end) if end is not None]
                backward.append(-int(min(ends)))
                forward.append(int(max(ends)))
        frames = [call.frame for call in calls if call.function not in ("offset", "rank", "dense_rank")]
        ranges = [frame for frame in frames if frame.unit == "range"]
        runs_on = any(call.is_running for call in calls)
        by_value = bool(ranges) or any(frame.unit == "groups" for frame in frames)
        least = 1 if runs_on or by_value else 0
        distance = max([max(-(frame.start or 0), 0) + max(frame.end, 0) for frame in ranges], default=0)
        after = max(backward)
        return cls(
            before=max(forward),
            after=after,
            context_before=max(after, least),
            context_after=max(max(forward), 1 if by_value else 0),
            runs_on=runs_on,
            groups=by_value,
            distance=distance,
        )
