"""What waits while calls are out: rows, and the watermarks that must not overtake them.

Invariant of both queues: a watermark leaves after every row that came before it, and as soon as it may.

- `OrderedQueue`: rows leave in the order in which they came. Cost: O(1) a row or watermark.
- `UnorderedQueue`: an answer leaves when it comes. Rows are counted between watermarks; when none before the oldest
  watermark is open, it leaves, and so on up to the first that has an open row. Cost: O(1) a row or watermark.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rejoinder.watermarks.coalescer import Idle, Watermark

R = TypeVar("R")
A = TypeVar("A")
Mark = Watermark | Idle


@dataclass
class Call(Generic[R, A]):
    """A row that waits for its answer, and the answer once it is there; `among`: the open calls it is counted with."""

    row: R
    answered: bool = False
    answer: A | None = None
    among: dict[int, Call[R, A]] | None = None


class OrderedQueue(Generic[R, A]):
    """Rows and watermarks in the order in which they came."""

    def __init__(self) -> None:
        self._entries: deque[Call[R, A] | Mark] = deque()

    def add(self, row: R) -> Call[R, A]:
        """Put a row at the end."""
        call: Call[R, A] = Call(row)
        self._entries.append(call)
        return call

    def mark(self, mark: Mark) -> list[A | Mark]:
        """Put a watermark at the end, in place of one of the same key there; give what can leave."""
        last = self._entries[-1] if self._entries else None
        if isinstance(last, Watermark) and isinstance(mark, Watermark) and last.key == mark.key:
            self._entries[-1] = mark
        else:
            self._entries.append(mark)
        return self._leaving()

    def answer(self, call: Call[R, A], answer: A) -> list[A | Mark]:
        """Take an answer; give what can leave."""
        call.answered, call.answer = True, answer
        return self._leaving()

    def entries(self) -> list[Call[R, A] | Mark]:
        """What waits, oldest first."""
        return list(self._entries)

    def _leaving(self) -> list[A | Mark]:
        result: list[A | Mark] = []
        while self._entries:
            first = self._entries[0]
            if isinstance(first, Call):
                if not first.answered:
                    break
                result.append(first.answer)  # type: ignore[arg-type]  # an answer may be None itself
            else:
                result.append(first)
            self._entries.popleft()
        return result


@dataclass
class _Section(Generic[R, A]):
    """The rows between two watermarks that wait for their answers, by identity, and the watermark after them."""

    calls: dict[int, Call[R, A]] = field(default_factory=dict)
    mark: Mark | None = None


class UnorderedQueue(Generic[R, A]):
    """Rows that leave when they are answered, and watermarks that wait for all rows before them."""

    def __init__(self) -> None:
        self._sections: deque[_Section[R, A]] = deque([_Section()])

    def add(self, row: R) -> Call[R, A]:
        """Count a row as received after the latest watermark."""
        calls = self._sections[-1].calls
        call: Call[R, A] = Call(row, among=calls)
        calls[id(call)] = call
        return call

    def mark(self, mark: Mark) -> list[A | Mark]:
        """Take a watermark; give what can leave."""
        self._sections[-1].mark = mark
        self._sections.append(_Section())
        return [*self._leaving()]

    def answer(self, call: Call[R, A], answer: A) -> list[A | Mark]:
        """Take an answer, which leaves at once; give it, and the watermarks that waited for it last."""
        call.answered, call.answer = True, answer
        if call.among is not None:
            del call.among[id(call)]
        return [answer, *self._leaving()]

    def entries(self) -> list[Call[R, A] | Mark]:
        """What waits, oldest first."""
        result: list[Call[R, A] | Mark] = []
        for section in self._sections:
            result += section.calls.values()
            result += [] if section.mark is None else [section.mark]
        return result

    def _leaving(self) -> list[Mark]:
        result: list[Mark] = []
        while (mark := self._sections[0].mark) is not None and not self._sections[0].calls:
            result.append(mark)
            self._sections.popleft()
        return result
