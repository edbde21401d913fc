"""Ticks: a file when something is due, none when nothing is, and one at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoinder.exchange.streaming import ticks
from rejoinder.exchange.streaming.ticks import Ticker


class Due:
    """What is left until the next tick, and how often it was asked."""

    def __init__(self, left: float | None = None) -> None:
        self.left = left
        self.asked = 0

    def __call__(self) -> float | None:
        self.asked += 1
        return self.left


def seen(ticker: Ticker) -> list[str]:
    return os.listdir(ticker.folder)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def due() -> Due:
    return Due()


@pytest.fixture
def ticker(tmp_path: Path, due: Due) -> Ticker:
    ticker = Ticker(str(tmp_path / "ticks"), due)
    ticker.prepare()
    return ticker


def test_there_is_one_tick_at_a_time(ticker: Ticker, due: Due) -> None:
    ticker.tick_if_due()
    due.left = 0.1
    ticker.tick_if_due()
    assert seen(ticker) == []
    due.left = 0
    ticker.tick_if_due()
    first = seen(ticker)
    ticker.tick()
    assert len(first) == len(seen(ticker)) == 1 and first != seen(ticker)
    ticker.prepare()
    assert seen(ticker) == []


def test_it_sleeps_while_nothing_waits(ticker: Ticker, due: Due) -> None:
    ticker.start()
    wait_until(lambda: due.asked == 1)
    time.sleep(0.1)
    assert due.asked == 1 and seen(ticker) == []
    due.left = 0.05
    ticker.wake()
    wait_until(lambda: due.asked >= 2)
    due.left = 0  # time has gone by
    wait_until(lambda: len(seen(ticker)) == 1)
    asked = due.asked
    time.sleep(0.1)
    assert due.asked == asked, "its epoch comes, and wakes it"
    due.left = None
    ticker.wake()
    ticker.stop()
    assert not any(thread.name == "rejoinder-ticks" for thread in threading.enumerate())


def test_it_can_be_started_and_stopped_again_and_again(ticker: Ticker, due: Due) -> None:
    for _ in range(5):
        ticker.start()
        ticker.start()
        ticker.stop()
        ticker.stop()
    due.left = 0
    ticker.start()
    wait_until(lambda: len(seen(ticker)) == 1)
    ticker.stop()


def test_a_tick_that_cannot_be_written_is_tried_again(
    ticker: Ticker, due: Due, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticks, "LOOK_SECONDS", 0.05)
    due.left = 0
    os.rmdir(ticker.folder)
    ticker.start()
    wait_until(lambda: due.asked > 2)
    os.mkdir(ticker.folder)
    wait_until(lambda: len(seen(ticker)) == 1)
    ticker.stop()
