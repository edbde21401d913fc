"""Work that Ctrl-C and SIGTERM end between two epochs; the second Ctrl-C ends it at once.

A call into the JVM cannot be interrupted without leaving the connection in pieces. So the work is done in a thread, and
the signals come to the main thread, which stops the flow.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

LOOK_SECONDS = 0.1
Told = threading.Event


def interruptible(work: Callable[[Told], None], stop: Callable[[], None]) -> bool:
    """Do the work; False if a signal ended it. Raises what ended it otherwise.

    At a signal the event that `work` was given is set, and `stop` is called until the work has come to an end; what
    the work raises then is nobody's concern, what `stop` raises is.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(told)
        except BaseException as failure:  # noqa: BLE001 - raised again by who waits
            failures.append(failure)

    with _signals() as told:
        worker = threading.Thread(target=run, name="rejoinder-work", daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(LOOK_SECONDS)
            if told.is_set():
                stop()
    if failures and not told.is_set():
        raise failures[0]
    return not told.is_set()


@contextmanager
def _signals() -> Iterator[Told]:
    """An event that the first SIGINT or SIGTERM sets."""
    told = threading.Event()

    def tell(number: int, frame: FrameType | None) -> None:
        if told.is_set():
            raise KeyboardInterrupt
        told.set()

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
