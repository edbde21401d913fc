"""What is pending while calls are open: rows, and the watermarks that must not overtake them.

Invariant: a watermark leaves after every row that came before it, and as soon as it may. Rows leave in the order in
which they came, or (not `ordered`) as soon as they are answered. Cost: O(1) a row or watermark.
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
    """A pending row by its number, and its answer once there is one."""

    row: R
    number: int
    answered: bool = False
    answer: A | None = None


class AnswerQueue(Generic[R, A]):
    """Rows and watermarks in the order in which they came."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._entries: OrderedDict[int, Call[R, A] | Mark] = OrderedDict()
        self._next = 0

    def add(self, row: R) -> Call[R, A]:
        """Put a row at the end."""
        call: Call[R, A] = Call(row, self._next)
        self._append(call)
        return call

    def mark(self, mark: Mark) -> list[A | Mark]:
        """Put a watermark at the end, in place of one of the same key there; give what can leave."""
        last = next(reversed(self._entries.values()), None)
        if isinstance(last, Watermark) and isinstance(mark, Watermark) and last.key == mark.key:
            self._entries.popitem()
        self._append(mark)
        return self._leaving()

    def answer(self, call: Call[R, A], answer: A) -> list[A | Mark]:
        """Take an answer; give what can leave: if rows are not ordered, the answer at once."""
        call.answered, call.answer = True, answer
        if self._ordered:
            return self._leaving()
        del self._entries[call.number]
        return [answer, *self._leaving()]

    def entries(self) -> list[Call[R, A] | Mark]:
        """What is pending, oldest first."""
        return list(self._entries.values())

    def _append(self, entry: Call[R, A] | Mark) -> None:
        self._entries[self._next] = entry
        self._next += 1

    def _leaving(self) -> list[A | Mark]:
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
