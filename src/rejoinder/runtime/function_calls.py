"""Concurrent calls of a Python function; answers are fetched as they arrive.

Asynchronous functions run on one event loop per process, so that objects that a function reuses from call to call (a
client with its connections) stay usable. The loop has its own thread: calls proceed while the caller works, also where
another loop is already running (a notebook). Plain functions run in as many threads as calls may be open.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
Ticket = TypeVar("Ticket")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_making = threading.Lock()


class FunctionCalls(Generic[Argument, Answer, Ticket]):
    """Starts calls and returns their answers as they arrive.

    A call that fails or takes longer than `timeout` seconds is retried `retries` times, with pauses that double. A
    plain function cannot be cancelled: after a timeout it continues in its thread.
    """

    def __init__(
        self,
        function: Callable[[Argument], Answer] | Callable[[Argument], Awaitable[Answer]],
        *,
        concurrency: int,
        timeout: float | None = None,
        retries: int = 0,
    ) -> None:
        self._function = function
        self._concurrency, self._timeout, self._retries = concurrency, timeout, retries
        self._threads: ThreadPoolExecutor | None = None
        self._done: queue.SimpleQueue[tuple[Ticket, Future[Answer]]] = queue.SimpleQueue()
        self._out: set[Future[Answer]] = set()
        self.open = 0
        weakref.finalize(self, _cancel, self._out)

    @property
    def has_room(self) -> bool:
        """Whether one more call may be started."""
        return self.open < self._concurrency

    def start(self, argument: Argument, ticket: Ticket) -> None:
        """Call the function; `fetch` returns `ticket` with the answer."""
        future = asyncio.run_coroutine_threadsafe(self._call(argument), _loop())
        done, out = self._done, self._out
        out.add(future)

        def finish(finished: Future[Answer]) -> None:
            out.discard(finished)
            done.put((ticket, finished))

        future.add_done_callback(finish)
        self.open += 1

    def fetch(self, *, wait: bool, timeout: float | None = None) -> tuple[Ticket, Future[Answer]] | None:
        """Return the next call that has ended; None if there is none (within the timeout). Blocks if `wait`."""
        if not self.open:
            return None
        try:
            ended = self._done.get(wait, timeout)
        except queue.Empty:
            return None
        self.open -= 1
        return ended

    def close(self) -> None:
        """Cancel the open calls."""
        self._done = queue.SimpleQueue()
        _cancel(self._out)
        self.open = 0
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def __enter__(self) -> FunctionCalls[Argument, Answer, Ticket]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, argument: Argument) -> Coroutine[Any, Any, Answer]:
        if is_asynchronous(self._function):
            call = cast("Callable[[Argument], Awaitable[Answer]]", self._function)
            return _with_retries(lambda: call(argument), self._timeout, self._retries)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="rejoinder-call")
        plain, threads = cast("Callable[[Argument], Answer]", self._function), self._threads
        return _with_retries(lambda: _in_thread(plain, argument, threads), self._timeout, self._retries)


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Whether a call of a function returns an awaitable."""
    called = function if inspect.isroutine(function) else type(function).__call__
    return inspect.iscoroutinefunction(called)


class TooSlowError(TimeoutError):
    """A call that took longer than its timeout. Its text contains no values."""


async def _with_retries(call: Callable[[], Awaitable[Answer]], timeout: float | None, retries: int) -> Answer:
    for attempt in range(retries):
        try:
            return await _in_time(call(), timeout)
        except Exception:  # noqa: BLE001  # the last attempt raises
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt))
    return await _in_time(call(), timeout)


async def _in_time(answer: Awaitable[Answer], timeout: float | None) -> Answer:
    try:
        return await asyncio.wait_for(answer, timeout)
    except asyncio.TimeoutError as failure:
        if timeout is None or failure.args:  # the function itself raised it
            raise
        raise TooSlowError(f"no answer within {timeout:g} s") from None


async def _in_thread(function: Callable[[Argument], Answer], argument: Argument, threads: ThreadPoolExecutor) -> Answer:
    answer: Answer = await asyncio.get_running_loop().run_in_executor(threads, function, argument)
    return await answer if inspect.isawaitable(answer) else answer


def _cancel(out: set[Future[Any]]) -> None:
    for future in list(out):
        future.cancel()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of this process; a forked worker has its own."""
    with _making:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="rejoinder-calls", daemon=True).start()
            _loops[os.getpid()] = loop
        return _loops[os.getpid()]
