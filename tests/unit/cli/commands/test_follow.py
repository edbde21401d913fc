"""Signals: the first ends the work in good order, the second at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from rejoinder.cli.commands.follow import interruptible


def test_work_that_ends_by_itself() -> None:
    done: list[bool] = []
    assert interruptible(lambda stopped: done.append(stopped.is_set()), lambda: pytest.fail("nobody said stop"))
    assert done == [False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_work_and_what_it_raises_then_is_ignored(number: signal.Signals) -> None:
    stopped = threading.Event()

    def work(stopped: threading.Event) -> None:
        os.kill(os.getpid(), number)
        stopped.wait(10)
        raise OSError("the connection is gone")

    before = signal.getsignal(number)
    assert not interruptible(work, stopped.set)
    assert stopped.is_set() and signal.getsignal(number) is before


def test_the_second_signal_does_not_wait() -> None:
    def work(stopped: threading.Event) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(10)

    with pytest.raises(KeyboardInterrupt):
        interruptible(work, lambda: os.kill(os.getpid(), signal.SIGINT))


def test_a_failure_is_raised() -> None:
    def work(stopped: threading.Event) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        interruptible(work, lambda: None)
