"""Calls with a time limit: they run in a thread of their own, which is given up if one of them takes too long.

Python cannot stop a thread. One that is given up keeps running until its call returns, and ends with the process. Cost:
about 50 µs for the change of threads, for any number of calls, and the time of a clock for each call.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class TooLongError(Exception):
    """A call that took longer than its limit; `row` is the number of its row."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class Turn:
    """Which of the calls is running, and since when."""

    __slots__ = ("row", "since")

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, row: int) -> None:
        """Note that the call for a row begins."""
        self.row = row
        self.since = time.monotonic()


Work = Callable[[Turn], Any]


class _Worker:
    """A thread that runs one piece of work after the other."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._work: queue.SimpleQueue[tuple[Work, Turn, queue.SimpleQueue[tuple[bool, Any]]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="rejoinder-function", daemon=True).start()

    def start(self, work: Work, turn: Turn) -> queue.SimpleQueue[tuple[bool, Any]]:
        outcome: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._work.put((work, turn, outcome))
        return outcome

    def _run(self) -> None:
        while True:
            work, turn, outcome = self._work.get()
            try:
                outcome.put((True, work(turn)))
            except BaseException as failure:  # noqa: BLE001  # the caller raises it
                outcome.put((False, failure))


class _Workers(threading.local):
    """The worker of this thread."""

    worker: _Worker | None = None


_workers = _Workers()


def within(seconds: float, work: Callable[[Turn], Result]) -> Result:
    """Run work, which begins a turn for each call. Raises `TooLongError` if a call takes more than so many seconds."""
    worker = _workers.worker
    if worker is None or worker.process != os.getpid():
        worker = _Worker()
    _workers.worker = None  # unless it becomes free again
    turn = Turn()
    outcome = worker.start(work, turn)
    while True:
        left = turn.since + seconds - time.monotonic()
        try:
            is_done, result = outcome.get(timeout=max(left, 0.001))
        except queue.Empty:
            if time.monotonic() - turn.since >= seconds:
                raise TooLongError(turn.row) from None
            continue
        _workers.worker = worker
        if is_done:
            return result  # type: ignore[no-any-return]
        raise result
