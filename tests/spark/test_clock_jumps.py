"""A clock that jumps under a flow on Spark: emission goes on, the jump is reported, and a restart recovers."""

from __future__ import annotations

import pytest

import rejoinder as rj
from tests.spark.conftest import OpenFlow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:the clock")]
YEARS = 315_360_000
SECOND = 1_000_000_000


class Clock:
    """The clock of this process, which the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = 1_800_000_000 * SECOND, 5000 * SECOND
        module = "rejoinder.engine.time.processing_time.time"
        monkeypatch.setattr(f"{module}.time_ns", lambda: self.wall)
        monkeypatch.setattr(f"{module}.clock_gettime_ns", lambda _: self.steady)

    def run(self, flow: rj.Flow, *, jump: int = 0) -> int:
        """Let 15 seconds pass, set the clock, insert a row and run; gives what the view holds."""
        self.wall += (15 + jump) * SECOND
        self.steady += 15 * SECOND
        flow.insert("t", [{"a": 1}])
        flow.run()
        rows = flow.arrow("e").to_pylist()
        return int(rows[0]["n"]) if rows else 0


def notices(flow: rj.Flow) -> str:
    return " ".join(flow.engine.progress[-1].notices)


def test_emission_goes_on_over_jumps_and_restarts(open_flow: OpenFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, flow = Clock(monkeypatch), open_flow()
    flow.sql("CREATE STREAM t (a BIGINT); CREATE VIEW e AS SELECT COUNT(*) AS n FROM t EMIT EVERY INTERVAL 10 SECONDS")
    first = [clock.run(flow) for _ in range(3)]
    assert first[-1] >= 2
    ahead = clock.run(flow, jump=YEARS)
    assert ahead >= 3 and "jumped ahead by 3650 days" in notices(flow)
    clocks = [row for row in flow.sql("SHOW WATERMARKS") if row["source"] == "(clock)"]
    assert [row["blocks"] for row in clocks] == [["e"]]
    assert clock.run(flow, jump=-YEARS) >= 4 and notices(flow) == ""
    flow = open_flow()  # a process that is started with a wrong clock believes it
    clock.run(flow, jump=YEARS)
    flow = open_flow()
    back = [clock.run(flow, jump=jump) for jump in (-YEARS, 0, 0)]
    assert back[-1] >= 7 and back == sorted(back) and "behind the last epoch" in notices(flow)
    times = [row["_emit_time"] for row in flow.sql("SELECT STREAM * FROM e").collect() if row["_emit_time"]]
    assert times and times == sorted(times)
