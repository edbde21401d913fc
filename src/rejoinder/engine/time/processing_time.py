"""The processing time of epochs: the system clock, checked against a steady clock.

Rules, in this order. `elapsed` is the time since the last epoch by a monotonic clock. The first
epoch of a process does not know it and uses the system clock. An epoch counts once it is committed (`accept`): a
failed attempt does not affect the next one.

- An epoch is never earlier than the one before it, because emitted changes must not become due a second time.
- An epoch advances by at most `elapsed` plus `BOUND`. Beyond that the clock has jumped. If the store has a clock of its
  own, that decides. Otherwise the epoch advances by `elapsed`, and the jump is accepted once it has lasted for
  `CONFIRMED`, or by the next process.
- If the clock is behind the last epoch by less than `STILL`, time stands still until the clock catches up. If it is
  further behind, either the last epoch's time or the clock is wrong. Then time advances by `elapsed`, a tenth slower,
  until the clock has caught up. So emission continues, whatever time was recorded.

All times are milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

BOUND = 3_600_000
STILL = 60_000
CONFIRMED = 600_000


def system_clock() -> int:
    """Return milliseconds since 1970 by the clock of this machine."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """Return milliseconds of a monotonic clock. Where possible it also runs while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


@dataclass(frozen=True)
class Reading:
    """The processing time `now` of an epoch.

    `wall`: the system clock. `steady`: the steady clock; None if only the system clock or the caller gives the time.
    `notice`: why `now` differs from `wall`; None if no user needs to know.
    """

    now: int
    wall: int
    steady: int | None = None
    notice: str | None = None


class ProcessingTime:
    """Reads the clock for one process. `steady` is None if there is no clock but `clock`.

    `store_time` returns the time of the store, or None if the store has no clock of its own.
    """

    def __init__(
        self,
        clock: Callable[[], int] = system_clock,
        steady: Callable[[], int] | None = steady_clock,
        store_time: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.clock = clock
        self.wall: int | None = None  # the clock at the last committed epoch, of this or of another process
        self.notice: str | None = None
        self._steady = steady
        self._store_time = store_time
        self._last: Reading | None = None  # of the committed epoch that processing time last advanced with
        self._jumped: int | None = None  # the steady clock when a jump was first seen

    def read(self, latest: int, at: int | None = None) -> Reading:
        """Return the time of the next epoch, after one at `latest`. A time `at` that the caller gives is accepted."""
        reading = self._reading(latest, at, asks_store=True)
        self.notice = reading.notice
        return reading

    def accept(self, reading: Reading) -> None:
        """Record that an epoch with this reading is committed."""
        if self._last is None or reading.now > self._last.now or reading.steady is None:
            self._last = reading
        self.wall = reading.wall

    def now(self, latest: int) -> int:
        """Return the time of an epoch that would begin now. Does not ask the store."""
        return self._reading(latest, None, asks_store=False).now

    def _reading(self, latest: int, at: int | None, *, asks_store: bool) -> Reading:
        wall = self.clock() if at is None else at
        steady = self._steady() if self._steady is not None and at is None else None
        elapsed = self._elapsed(latest, steady)
        if elapsed is None:  # only the system clock is available
            since = max(0, wall - self.wall) if self.wall is not None else 0
            expected, is_jump = latest + since, at is None and wall - latest > BOUND
        else:
            since, expected = elapsed, latest + elapsed
            is_jump = wall - expected > BOUND
        if not is_jump:
            self._jumped = None
        elif wall > latest:
            return self._jump(latest, wall, steady, expected, is_first=elapsed is None, asks_store=asks_store)
        if wall >= latest:
            return Reading(wall, wall, steady)
        if latest - wall <= STILL:
            return Reading(latest, wall, steady)
        behind = timedelta(milliseconds=latest - wall)
        return Reading(
            latest - since * -9 // 10,
            wall,
            steady,
            f"the clock is {_text(behind)} behind the last epoch; until it has caught up, processing time advances "
            "with the elapsed time, a tenth slower",
        )

    def _elapsed(self, latest: int, steady: int | None) -> int | None:
        """Return how long ago the last epoch was, by the steady clock; None if another process ran it."""
        if steady is None or self._last is None or self._last.steady is None or self._last.now != latest:
            return None
        return max(0, steady - self._last.steady)

    def _jump(
        self, latest: int, wall: int, steady: int | None, expected: int, *, is_first: bool, asks_store: bool
    ) -> Reading:
        """Return the reading for a clock that is much later than expected."""
        store_time = self._store_time() if asks_store else None
        if store_time is not None:
            if wall - store_time <= BOUND:
                return Reading(wall, wall, steady)
            ahead = timedelta(milliseconds=wall - store_time)
            notice = f"the clock is {_text(ahead)} ahead of the clock of the store, which is used instead"
            return Reading(max(latest, store_time), wall, steady, notice)
        if is_first or steady is None:  # a flow may have been stopped for any time
            return Reading(wall, wall, steady)
        self._jumped = steady if self._jumped is None else self._jumped
        if steady - self._jumped >= CONFIRMED:
            return Reading(wall, wall, steady)
        ahead = timedelta(milliseconds=wall - expected)
        notice = (
            f"the clock has jumped ahead by {_text(ahead)}; the jump is accepted if it lasts for {CONFIRMED // 60_000} "
            "minutes, or after a restart"
        )
        return Reading(expected, wall, steady, notice)


def _text(length: timedelta) -> str:
    """Format a length of time, to the second."""
    return str(timedelta(seconds=int(length.total_seconds())))
