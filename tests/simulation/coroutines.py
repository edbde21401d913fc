"""Code that can be put to sleep anywhere: a function on a thread of its own that runs only while it holds the baton.

Of all threads exactly one runs at a time, and who is next is decided by the caller of `resume`: the order of events is
a function of the seed. Threads are kept and used again, since each has a DuckDB session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Killed(BaseException):
    """Unwinds the code of a driver that was killed. Whatever it does on the way out has no effect on the world."""


class _Worker:
    """A thread that runs one function after the other, and stops in between until it is resumed."""

    def __init__(self) -> None:
        self._go, self._stopped = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._stopped.acquire()
        self.function: Callable[[], None] | None = None
        threading.Thread(target=self._run, daemon=True, name="simulation").start()

    def resume(self) -> None:
        """Let the thread run until it stops."""
        self._go.release()
        self._stopped.acquire()

    def stop(self) -> None:
        """Give the baton back. Called on the thread itself."""
        self._stopped.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        while True:
            function, self.function = self.function, None
            assert function is not None
            function()
            self.stop()


_idle: list[_Worker] = []


class Coroutine:
    """A function that was started and may be paused. What it raises is in `error` when it `is_done`."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._worker = _idle.pop() if _idle else _Worker()
        self._worker.function = self._run
        self.is_done = False
        self.is_killed = False
        self.error: BaseException | None = None

    def resume(self) -> None:
        """Run on until the next pause, or to the end."""
        self._worker.resume()
        if self.is_done:
            _idle.append(self._worker)

    def pause(self) -> None:
        """Stop here until somebody calls `resume`. Called by the function itself; raises `Killed` if it was killed."""
        self._worker.stop()
        if self.is_killed:
            raise Killed

    def kill(self) -> None:
        """End the function where it stands."""
        self.is_killed = True
        while not self.is_done:
            self.resume()

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 - the world checks it
            self.error = error
        self.is_done = True
