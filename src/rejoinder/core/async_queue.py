"""The queue of pending rows, and of the watermarks that must not overtake them.

Invariant: a watermark is emitted after every row that arrived before it, and as soon as possible. Rows are emitted in
order of arrival, or (not `ordered`) as soon as their call ends. Cost: O(1) per row or watermark.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from rejoinder.watermarks.coalescer import Idle, Watermark

R = TypeVar("R")
A = TypeVar("A")
Mark = Watermark | Idle


@dataclass
class Call(Generic[R, A]):
    """A pending row with its number, and its answer once the call has ended."""

    row: R
    number: int
    answered: bool = False
    answer: A | None = None


class AnswerQueue(Generic[R, A]):
    """Rows and watermarks in order of arrival."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._entries: OrderedDict[int, Call[R, A] | Mark] = OrderedDict()
        self._next = 0

    def add(self, row: R) -> Call[R, A]:
        """Append a row."""
        call: Call[R, A] = Call(row, self._next)
        self._append(call)
        return call

    def mark(self, mark: Mark) -> list[A | Mark]:
        """Append a watermark, or replace the last entry if it is one of the same key; return what can be emitted."""
        last = next(reversed(self._entries.values()), None)
        if isinstance(last, Watermark) and isinstance(mark, Watermark) and last.key == mark.key:
            self._entries.popitem()
        self._append(mark)
        return self._ready()

    def answer(self, call: Call[R, A], answer: A) -> list[A | Mark]:
        """Receive an answer; return what can be emitted. If rows are not ordered, the answer is emitted at once."""
        call.answered, call.answer = True, answer
        if self._ordered:
            return self._ready()
        del self._entries[call.number]
        return [answer, *self._ready()]

    def entries(self) -> list[Call[R, A] | Mark]:
        """Return the pending rows and watermarks, oldest first."""
        return list(self._entries.values())

    def _append(self, entry: Call[R, A] | Mark) -> None:
        self._entries[self._next] = entry
        self._next += 1

    def _ready(self) -> list[A | Mark]:
        result: list[A | Mark] = []
        while self._entries:
            first = next(iter(self._entries.values()))
            if isinstance(first, Call):
                if not first.answered:
                    break
                result.append(first.answer)  # type: ignore[arg-type]  # an answer may be None itself
            else:
                result.append(first)
            self._entries.popitem(last=False)
        return result
