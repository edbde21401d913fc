"""The join matrix of the document on the Driver: each side of a case as a source, each cell as a call of the DSL.

A windowed table arises from a windowed aggregate alone, so a value of the data is reached by a sum: a record with the
difference is put into the window. Times of the data are seconds of 1970, windows are its days.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml

import rejoinder as rj
from rejoinder.testing import Driver

DATA: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent.parent / "data" / "kafka_streams" / "matrix.yaml").read_text(encoding="utf-8")
)
CASES: list[dict[str, Any]] = DATA["cases"]
START = datetime(1970, 1, 1, tzinfo=timezone.utc)
DAY = rj.tumble("1 day")
Side = rj.Stream | rj.Table | rj.WindowedTable


def day(number: int) -> datetime:
    """The start of a window of the data."""
    return START + timedelta(days=number)


@dataclass
class Played:
    """A case on a driver: its two sides, the view of their join, and the sums that windows have so far."""

    case: Mapping[str, Any]
    driver: Driver
    totals: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sides = [self._side(name) for name in ("left", "right")]
        self.joined = joined(self.case, *sides)
        self.driver.sql(f"CREATE VIEW joined AS {self.joined.query}")

    @property
    def _selects(self) -> bool:
        return "selector" in self.case

    def _side(self, name: str) -> Side:
        kind, has_window = self.case[name], self._selects and name == "left"
        columns = "n STRING, w TIMESTAMP" if has_window else "v STRING"
        if kind == "KTable":
            self.driver.sql(f"CREATE TABLE {name} (k STRING, {columns}, PRIMARY KEY (k))")
            return rj.Table.of(self.driver, name)
        if kind == "KStream":
            self.driver.sql(f"CREATE STREAM {name} (k STRING, {columns}, ts TIMESTAMP)")
            return rj.Stream.of(self.driver, name, time="ts")
        self.driver.sql(f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP)")
        return rj.Stream.of(self.driver, name, time="ts").group_by("k").windowed(DAY).sum("v")

    def put(self, given: Mapping[str, Any]) -> None:
        """Put a record of the data into its side."""
        side, key, value = given["side"], given["key"], given["value"]
        if self.case[side] == "WTable":
            place = side, key, given["window"]
            self.driver.insert(side, {"k": key, "v": value - self.totals.get(place, 0), "ts": day(given["window"])})
            self.totals[place] = value
        elif value is None:
            self.driver.delete(side, {"k": key})
        else:
            row = {"k": key, **({"n": value["n"], "w": day(value["w"])} if isinstance(value, dict) else {"v": value})}
            if self.case[side] == "KStream":
                row["ts"] = START + timedelta(seconds=given.get("ts", 0))
            self.driver.insert(side, row)

    def step(self) -> list[dict[str, Any]]:
        """Commit what was put; the records that were emitted, as the data writes them."""
        return records(self.driver.step()["joined"])

    def state(self) -> list[dict[str, Any]]:
        """All rows of the result, as the data writes them."""
        return records([(row, 1) for row in self.driver.table("joined")])


def joined(case: Mapping[str, Any], left: Any, right: Any) -> Side:
    """The join of a case, as the DSL says it."""
    first = "left.n AS v1" if "selector" in case else "left.v AS v1"
    key = "COALESCE(left.k, right.k) AS k" if case["kind"] == "outer" else "left.k"
    select = [key, first, "right.v AS v2"]
    more: dict[str, Any] = {}
    if case["left"] == "WTable":
        outer = case["kind"] == "outer"
        select.append("COALESCE(left.window, right.window) AS window" if outer else "left.window")
    if case["left"] == case["right"] == "KStream":
        more = {"on": "k", "within": f"{case['window']} seconds"}
    if "selector" in case:
        more["window"] = "w"
    if "shifter" in case:
        moved = re.fullmatch(r"w -> w ([-+]) (\d+)", case["shifter"])
        assert moved is not None
        more["shift"] = f"{''.join(moved.groups())} days"
    method = {"inner": "join", "left": "left_join", "outer": "outer_join"}[case["kind"]]
    made: Side = getattr(left, method)(right, select=select, **more)
    return made


def records(changes: Sequence[tuple[Mapping[str, Any], int]]) -> list[dict[str, Any]]:
    """Changes as records: a row that comes with its value, a key that only goes with none."""
    come = [_record(row) for row, diff in changes for _ in range(diff)]
    keys = [(each["key"], each.get("window")) for each in come]
    gone = [_record(row) for row, diff in changes if diff < 0]
    lost = [{**each, "value": None} for each in gone if (each["key"], each.get("window")) not in keys]
    return sorted_records([*come, *lost])


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"key": row["k"], "value": [row["v1"], row["v2"]]}
    if "window" in row:
        result["window"] = (_time(row["window"]["start"]) - START).days
    return result


def _time(value: Any) -> datetime:
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def sorted_records(given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Records in an order of ours: that within a step is free."""
    return sorted((dict(each) for each in given), key=lambda each: repr(sorted(each.items())))
