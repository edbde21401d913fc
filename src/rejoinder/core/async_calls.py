"""Calls of an asynchronous function: they run on an event loop in a thread of their own, answers are fetched in order.

A thread, so that calls go on while the caller works, and so that it works where a loop is running already (a notebook).
"""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
Ticket = TypeVar("Ticket")


class AsyncCalls(Generic[Argument, Answer, Ticket]):
    """Start calls, and fetch the answers as they come. The thread is started by the first call."""

    def __init__(self, function: Callable[[Argument], Awaitable[Answer]]) -> None:
        self._function = function
        self._done: queue.SimpleQueue[tuple[Ticket, Future[Answer]]] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], object] = lambda: None
        self.open = 0

    def start(self, argument: Argument, ticket: Ticket) -> None:
        """Call the function; `ticket` comes back with the answer."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(self._loop,), name="async transform", daemon=True)
            thread.start()
            self._stop = weakref.finalize(self, _end, self._loop, thread)
        future = asyncio.run_coroutine_threadsafe(_awaited(self._function, argument), self._loop)
        done = self._done
        future.add_done_callback(lambda finished: done.put((ticket, finished)))
        self.open += 1

    def fetch(self, *, wait: bool, timeout: float | None = None) -> tuple[Ticket, Future[Answer]] | None:
        """Give the next call that ended; None if there is none (within the timeout)."""
        if not self.open:
            return None
        try:
            ended = self._done.get(wait, timeout)
        except queue.Empty:
            return None
        self.open -= 1
        return ended

    def close(self) -> None:
        """Give up calls that are open, and end the thread."""
        self._stop()
        self._loop, self.open = None, 0
        self._done = queue.SimpleQueue()


async def _awaited(function: Callable[[Argument], Awaitable[Answer]], argument: Argument) -> Answer:
    return await function(argument)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    open_calls = asyncio.all_tasks(loop)
    for call in open_calls:
        call.cancel()
    loop.run_until_complete(asyncio.gather(*open_calls, return_exceptions=True))
    loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
