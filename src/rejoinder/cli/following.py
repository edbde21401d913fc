"""Run a flow so that Ctrl-C and SIGTERM end it between two epochs; the second Ctrl-C ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow

LOOK_SECONDS = 0.1


def run_until(flow: Flow, *, interval: str | None, on_stop: Callable[[], None] | None = None) -> bool:
    """Run until caught up, or with an interval until told to stop. False if it was told to. Raises what ended it."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            if interval is None:
                flow.run()
            else:
                flow.start(interval=interval)
                flow.wait()
        except BaseException as failure:  # noqa: BLE001 - raised again by who waits
            failures.append(failure)

    # Waiting in the JVM cannot be interrupted, so it is done in a thread, and the signals come to this one.
    worker = threading.Thread(target=work, name="rejoinder-run", daemon=True)
    with _signals() as told:
        worker.start()
        while worker.is_alive() and not told.is_set():
            worker.join(LOOK_SECONDS)
        if told.is_set():
            if on_stop is not None:
                on_stop()
            flow.stop()
            worker.join()
    if failures and not told.is_set():
        raise failures[0]
    return not told.is_set()


@contextmanager
def _signals() -> Iterator[threading.Event]:
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
