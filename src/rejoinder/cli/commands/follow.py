"""Run work that Ctrl-C or SIGTERM stops between two epochs; a second Ctrl-C stops it at once.

A call into the JVM cannot be interrupted without breaking the connection. So the work runs in a thread, and the main
thread receives the signals and stops the flow.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

POLL_SECONDS = 0.1


def interruptible(work: Callable[[threading.Event], None], stop: Callable[[], None]) -> bool:
    """Run the work. Returns False if a signal stopped it. Raises its error otherwise.

    A signal sets the event that `work` gets, and `stop` is called until the work has ended. Errors of the work after a
    signal are ignored; errors of `stop` are raised.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(stopped)
        except BaseException as failure:  # noqa: BLE001 - raised again in the main thread
            failures.append(failure)

    with _signals() as stopped:
        worker = threading.Thread(target=run, name="rejoinder-work", daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(POLL_SECONDS)
            if stopped.is_set():
                stop()
    if failures and not stopped.is_set():
        raise failures[0]
    return not stopped.is_set()


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets. The second one raises `KeyboardInterrupt`."""
    stopped = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
