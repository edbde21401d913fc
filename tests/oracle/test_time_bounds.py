"""Time-bounded joins over random out-of-order streams: in the end the batch join of the rows that were not late.

With EMIT FINAL each row is emitted once and never retracted. Nothing is kept once the watermarks have passed.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.batch_join import KINDS, batch_join
from tests.oracle.budget import budget

Row = dict[str, Any]
NEVER, EVER = -(10**9), 20_000
EPOCHS = 10
TYPES = [("BIGINT", "BIGINT"), ("INT", "BIGINT"), ("SMALLINT", "INT"), ("DATE", "TIMESTAMP"), ("TIMESTAMP", "DATE")]
SPELLINGS = {
    "BIGINT": ["l.t DIV 4 = r.t DIV 4", "CAST(r.t AS INT) - l.t BETWEEN -{before} AND {after}"],
    "DATE": [
        "datediff(r.t, l.t) BETWEEN -{before} AND {after}",
        "CAST(r.t AS DATE) = CAST(l.t AS DATE)",
        "r.t BETWEEN l.t - INTERVAL {before} DAYS AND l.t + INTERVAL {after} DAYS",
        "l.t < timestampadd(DAY, {before}, r.t) AND timestampdiff(HOUR, l.t, r.t) <= 12 + 24 * {after}",
    ],
}
DUCKDB = {
    " DIV ": " // ",
    "datediff(r.t, l.t)": "date_diff('day', l.t, r.t)",
    "timestampadd(DAY, ": "add(to_days(1) * ",
    ", r.t) AND": ", CAST(r.t AS TIMESTAMP)) AND",
    "timestampdiff(HOUR, l.t, r.t)": "((epoch_us(r.t) - epoch_us(l.t)) // 3600000000)",
}


def time_of(kind: str, number: int, hours: int = 0) -> Any:
    """A time of a type: an integer, or so many days, and hours of a timestamp."""
    if kind not in ("DATE", "TIMESTAMP"):
        return number
    time = datetime(1970, 1, 1) + timedelta(days=number, hours=hours)
    return time.date() if kind == "DATE" else time


@dataclass
class Played:
    """A flow of two streams, and what it should have taken of them."""

    kind: str
    is_final: bool
    numbers: random.Random
    rows: dict[str, list[Row]] = field(default_factory=lambda: {"l": [], "r": []})
    watermarks: dict[str, int] = field(default_factory=dict)
    late: int = 0
    out: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        pick = self.numbers
        self.has_key = pick.random() < 0.7
        before, after = pick.randrange(6), pick.randrange(8)
        self.kinds = dict(zip("lr", pick.choice(TYPES), strict=True))
        spellings = SPELLINGS["DATE" if "DATE" in self.kinds.values() else "BIGINT"]
        if "DATE" in self.kinds.values() or pick.random() < 0.4:
            self.on = pick.choice(spellings).format(before=before, after=after)
        elif pick.random() < 0.3:
            self.on = f"r.t > l.t + {before} AND l.t >= r.t - {before + after}"
        elif pick.random() < 0.3:
            self.on = "r.t BETWEEN l.t AND l.u"  # how long a left row is met, and how long a right one: other columns
        else:
            self.on = f"r.t BETWEEN l.t - {before} AND l.t + {after}"
        for condition, share in (("l.k = r.k", 1.0 if self.has_key else 0.0), ("l.x > 0", 0.3), ("l.x <= r.x", 0.2)):
            self.on += f" AND {condition}" if pick.random() < share else ""
        sides = "l" if self.kind in ("LEFT SEMI", "LEFT ANTI") else "lr"
        shown = ", ".join(f"{side}.{name} AS {side}{name}" for side in sides for name in "ktx")
        self.query = f"SELECT {shown} FROM l {self.kind} JOIN r ON {self.on}"
        self.driver = Driver(parallelism=pick.choice([1, 2, 3]))
        for side in "lr":
            kind = self.kinds[side]
            self.driver.sql(f"CREATE STREAM {side} (k INT, t {kind}, x INT, u {kind}, WATERMARK t, WATERMARK u)")
        self.driver.sql(f"CREATE VIEW v AS {self.query}{' EMIT FINAL' if self.is_final else ''}")

    def epoch(self, number: int) -> None:
        """Rows around a time that goes on, and watermarks that follow it more or less."""
        pick, moved = self.numbers, {}
        for side in "lr":
            for _ in range(pick.randrange(4)):
                at, hours = max(0, 3 * number + pick.randrange(-12, 4)), pick.choice([0, 6, 23])
                time = time_of(self.kinds[side], at, hours)
                row = {"k": pick.choice([None, 1, 2]) if self.has_key else 1, "t": time, "x": pick.randrange(-1, 3)}
                row["u"] = time_of(self.kinds[side], at + pick.randrange(8), hours)
                self.driver.insert(side, row)
                if side in self.watermarks and time < time_of(self.kinds[side], self.watermarks[side]):
                    self.late += 1
                else:
                    self.rows[side].append(row)
            if pick.random() < 0.5:
                moved[side] = max(self.watermarks.get(side, NEVER), 3 * number - 10) + pick.randrange(1, 5)
                for column in "tu":
                    self.driver.watermark(side, time_of(self.kinds[side], moved[side]), column)
        self.step()
        self.watermarks |= moved
        if pick.random() < 0.2:
            self.driver.restart(parallelism=pick.choice([1, 2, 3]))

    def step(self) -> None:
        before = self.driver.watermarks("v")
        for row, diff in self.driver.step()["v"]:
            assert diff > 0 or not self.is_final, "a final row is never retracted"
            below = [name for name, least in before.items() if row[name] is not None and row[name] < least]
            assert not below, f"{row} is below the output watermark {before}"
            self.out[tuple(row.values())] += diff

    def wanted(self) -> Counter[tuple[Any, ...]]:
        """DuckDB's answer over the rows that were not late."""
        on = self.on
        for ours, theirs in DUCKDB.items():
            on = on.replace(ours, theirs)
        kinds = {side: f"k INT, t {kind}, x INT, u {kind}" for side, kind in self.kinds.items()}
        tables = {side: (kinds[side], rows) for side, rows in self.rows.items()}
        return batch_join(tables, self.kind, on, ("k", "t", "x"), self.query.replace(self.on, on))


@pytest.mark.parametrize("is_final", [True, False], ids=["final", "changes"])
@pytest.mark.parametrize("kind", KINDS, ids=[kind or "INNER" for kind in KINDS])
@budget(1, deep=2)
@given(seed=st.integers(0, 2**32))
def test_the_end_is_the_batch_join_of_what_was_on_time(kind: str, is_final: bool, seed: int) -> None:
    played = Played(kind, is_final, random.Random(seed))
    for number in range(EPOCHS):
        played.epoch(number)
    for side in "lr":
        for column in "tu":
            played.driver.watermark(side, time_of(played.kinds[side], EVER), column)
    played.step()
    assert +played.out == played.wanted() and min(played.out.values(), default=0) >= 0
    assert len(played.driver.late("v")) == played.late
    parts = played.driver._engine.version.state.arrangements.values()
    assert sum(ref.rows for spines in parts for part in spines for ref in part.refs) == 0
