"""The processing time of epochs: what the clock says, as far as it can be believed.

Rules, in this order. `elapsed` is the time since the last epoch by a clock that nobody can set; in the first epoch of a
process, which cannot know it, it is what the clock itself says. An epoch counts once it is committed (`accept`): an
attempt that failed changes nothing of what the next one believes.

- An epoch is never earlier than the one before it: what was emitted must not be due a second time.
- An epoch believes at most `BOUND` more than has elapsed. Beyond that the clock has jumped: the store is asked for its
  time, if it has a clock of its own, and decides. Otherwise the epoch takes the time that has elapsed, and the jump is
  believed once the clock has kept it for `CONFIRMED`, or by the next process.
- A clock that is behind the last epoch by less than `STILL` is waited for: time stands still. If it is further behind,
  the last epoch's time or the clock is wrong. Time goes on with what elapses, a tenth slower, until the clock has
  caught up. So emission goes on, whatever was recorded.

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
    """Milliseconds since 1970 by the clock of this machine."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """Milliseconds of a clock that nobody sets, and that runs while the machine sleeps where there is one."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


@dataclass(frozen=True)
class Reading:
    """The time of an epoch. `wall` is what the clock said; `notice` says why that is not believed, if it is not.

    `steady` is None if nothing but the clock, or the caller, tells the time.
    """

    now: int
    wall: int
    steady: int | None = None
    notice: str | None = None


class ProcessingTime:
    """Reads the clock for one process. `steady` is None if nothing measures the time besides the clock itself.

    `store_time` asks the store; it gives None if the store has no clock of its own.
    """

    def __init__(
        self,
        clock: Callable[[], int] = system_clock,
        steady: Callable[[], int] | None = steady_clock,
        store_time: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.clock = clock
        self.wall: int | None = None  # by the clock, at the last committed epoch; also if another process committed it
        self.notice: str | None = None
        self._steady = steady
        self._store_time = store_time
        self._last: Reading | None = None  # of the committed epoch that processing time last advanced with
        self._jumped: int | None = None  # on the steady clock, when a jump was first seen

    def read(self, latest: int, at: int | None = None) -> Reading:
        """Give the time of the next epoch, after one at `latest`. `at` is a time that the caller vouches for."""
        reading = self._reading(latest, at, is_asking=True)
        self.notice = reading.notice
        return reading

    def accept(self, reading: Reading) -> None:
        """Note that an epoch with this reading is committed."""
        if self._last is None or reading.now > self._last.now or reading.steady is None:
            self._last = reading
        self.wall = reading.wall

    def now(self, latest: int) -> int:
        """Give the time that an epoch would have if it began now. The store is not asked."""
        return self._reading(latest, None, is_asking=False).now

    def _reading(self, latest: int, at: int | None, *, is_asking: bool) -> Reading:
        wall = self.clock() if at is None else at
        steady = self._steady() if self._steady is not None and at is None else None
        elapsed = self._elapsed(latest, steady)
        if elapsed is None:  # nothing but the clock tells
            since = max(0, wall - self.wall) if self.wall is not None else 0
            expected, is_jump = latest + since, at is None and wall - latest > BOUND
        else:
            since, expected = elapsed, latest + elapsed
            is_jump = wall - expected > BOUND
        if not is_jump:
            self._jumped = None
        elif wall > latest:
            return self._jump(latest, wall, steady, expected, is_first=elapsed is None, is_asking=is_asking)
        if wall >= latest:
            return Reading(wall, wall, steady)
        if latest - wall <= STILL:
            return Reading(latest, wall, steady)
        ahead = timedelta(milliseconds=latest - wall)
        return Reading(
            latest - since * -9 // 10,
            wall,
            steady,
            f"the clock is {_text(ahead)} behind the last epoch; until it has caught up, processing time goes on with "
            "what elapses, a tenth slower",
        )

    def _elapsed(self, latest: int, steady: int | None) -> int | None:
        """How long ago the last epoch was, by the steady clock; None if it was not ours."""
        if steady is None or self._last is None or self._last.steady is None or self._last.now != latest:
            return None
        return max(0, steady - self._last.steady)

    def _jump(
        self, latest: int, wall: int, steady: int | None, expected: int, *, is_first: bool, is_asking: bool
    ) -> Reading:
        """Decide about a clock that is much later than expected."""
        theirs = self._store_time() if is_asking else None
        if theirs is not None:
            if wall - theirs <= BOUND:
                return Reading(wall, wall, steady)
            ahead = timedelta(milliseconds=wall - theirs)
            notice = f"the clock is {_text(ahead)} ahead of the store's, whose time is taken instead"
            return Reading(max(latest, theirs), wall, steady, notice)
        if is_first or steady is None:  # a flow may have been stopped for any time
            return Reading(wall, wall, steady)
        self._jumped = steady if self._jumped is None else self._jumped
        if steady - self._jumped >= CONFIRMED:
            return Reading(wall, wall, steady)
        ahead = timedelta(milliseconds=wall - expected)
        notice = (
            f"the clock has jumped ahead by {_text(ahead)}; this is believed if it lasts for {CONFIRMED // 60_000} "
            "minutes, or after a restart"
        )
        return Reading(expected, wall, steady, notice)


def _text(length: timedelta) -> str:
    """A length of time, to the second."""
    return str(timedelta(seconds=int(length.total_seconds())))
