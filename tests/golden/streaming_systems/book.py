"""The cases of `golden/data/streaming_systems`: their SQL as we write it, their inputs, and what they have to give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from rejoinder.formats.text.plain_rows import Rows
from rejoinder.state.reading.renderings import Snapshot
from rejoinder.testing import Driver

FOLDER = Path(__file__).parent.parent / "data" / "streaming_systems"
DATASETS: dict[str, Any] = yaml.safe_load((FOLDER / "datasets.yaml").read_text(encoding="utf-8"))
DAY = datetime(2026, 1, 1)
OPEN_END = datetime(9999, 12, 31)
TYPES = {"Num": "INT", "Rate": "INT", "Amount": "INT", "Time": "TIMESTAMP", "EventTime": "TIMESTAMP"}
TYPES |= {"ProcTime": "TIMESTAMP", "Id": "STRING", "N_M": "STRING", "Curr": "STRING"}

Row = tuple[Any, ...]
Group = tuple[datetime, bool, Counter[str]]

# The chapter draws these, or names a relation that it never defines.
UNWRITTEN = {
    "validity_timeline": "SELECT TABLE Rate, Window FROM Euro",
    "validity_timelines_by_proctime": "SELECT TVR Rate, Window FROM Euro",
}
VIEWS = {
    "Euro": "SELECT MAX(Rate) AS Rate, VALIDITY_WINDOW(EventTime) AS Window FROM YenRates WHERE Curr = 'Euro' "
    "GROUP BY VALIDITY_WINDOW(EventTime)",
    "YenRatesWithRegion": "SELECT Curr, Rate, Region, ProcTime, WINDOW_START(Region) AS EventTime FROM (SELECT Curr, "
    "MAX(Rate) AS Rate, VALIDITY_WINDOW(EventTime) AS Region, MAX(ProcTime) AS ProcTime FROM YenRates "
    "GROUP BY Curr, VALIDITY_WINDOW(EventTime))",
}


@dataclass(frozen=True)
class Case:
    """One case: the data as it stands in its file."""

    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def rendering(self) -> str:
        return str(self.data["rendering"])

    @property
    def inputs(self) -> list[str]:
        """The relations that are fed; the steps of the watermark are not a relation."""
        return [name for name in self.data["inputs"] if name in DATASETS["datasets"]]

    @property
    def watermarks(self) -> dict[datetime, datetime]:
        """When which watermark of all inputs becomes known."""
        steps = [step for name in self.data["inputs"] for step in DATASETS["watermarks"].get(name, {}).get("steps", [])]
        return {moment(step["emit_time"]): moment(step["watermark"]) for step in steps}

    @property
    def sql(self) -> str:
        """The query in our words: names in backticks, and the symmetric ANTI JOIN by its full name.

        A SEMI JOIN has no columns of the right side, as in Spark: COALESCE with one of them is the left one.
        """
        if self.data["sql"] is None:
            return UNWRITTEN[self.id]
        text = re.sub(r'"([^"]*)"', r"`\1`", self.data.get("sql_fixed") or self.data["sql"]).rstrip("; ")
        text = text.replace("ANTI JOIN", "FULL ANTI JOIN")
        return text.replace("COALESCE(LeftNM.N_M, RightNM.N_M)", "LeftNM.N_M") if "SEMI JOIN" in text else text

    @property
    def views(self) -> dict[str, str]:
        """Views that the query names."""
        return {name: query for name, query in VIEWS.items() if re.search(rf"FROM {name}\b", self.sql)}

    @property
    def expected(self) -> Any:
        """What the query gives: not what is printed, where that is wrong or cut to minutes."""
        return self.data.get("derived") or self.data["expect"]

    @property
    def columns(self) -> list[str]:
        return list(self.data.get("columns") or self.expected["columns"])

    @property
    def until(self) -> datetime:
        """The last moment of the case: a time of hours and minutes is the end of that minute."""
        last = (self.data.get("range") or [self.data["now"]])[-1]
        return DAY + timedelta(days=1) if last is None else moment(last) + timedelta(seconds=59)

    def rows(self) -> Counter[str]:
        """The rows of a TABLE."""
        return bag(self.known(self.expected["rows"]))

    def changes(self) -> list[Group]:
        """The changes of a STREAM: a bag for each time and direction, undos first."""
        time, undo = self.columns.index("Time"), self.columns.index("Undo")
        rows = [value(list(row)) for row in self.expected["rows"]]
        ordered = sorted(rows, key=lambda row: (row[time], row[undo] != "undo"))
        return [
            (when, is_undo, bag([cell for at, cell in enumerate(row) if at not in (time, undo)] for row in group))
            for (when, is_undo), group in groupby(ordered, key=lambda row: (row[time], row[undo] == "undo"))
        ]

    def snapshots(self) -> list[tuple[datetime | None, datetime | None, Counter[str]]]:
        """The snapshots of a TVR."""
        ends = ("-inf", "inf", "now")
        return [
            (
                None if one["from"] in ends else moment(one["from"]),
                None if one["to"] in ends else moment(one["to"]),
                bag(self.known(one["rows"])),
            )
            for one in self.expected
        ]

    def known(self, rows: Iterable[Sequence[Any]]) -> list[Any]:
        """Rows as values; in a drawn timeline, the time before the first rate is not a row."""
        return [value(list(row)) for row in rows if self.data["sql"] is not None or row[0] is not None]


def cases(*files: str) -> list[Case]:
    """The cases of some files, in their order."""
    texts = [(FOLDER / f"{file}.yaml").read_text(encoding="utf-8") for file in files]
    return [Case(data) for text in texts for data in yaml.safe_load(text)]


# -- values -----------------------------------------------------------------------------------------------------------


def moment(text: str) -> datetime:
    """A time of the chapter's day."""
    hours, minutes, *seconds = map(int, text.split(":"))
    return DAY.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0)


def value(cell: Any) -> Any:
    """A cell of the data as the engine gives it."""
    if isinstance(cell, dict):
        return {name: OPEN_END if end == "inf" else moment(end) for name, end in cell.items()}
    if isinstance(cell, list):
        return [value(one) for one in cell]
    return moment(cell) if isinstance(cell, str) and re.fullmatch(r"\d\d:\d\d(:\d\d)?", cell) else cell


def bag(rows: Iterable[Iterable[Any]]) -> Counter[str]:
    """Rows without an order."""
    return Counter(repr(list(row)) for row in rows)


# -- what the engine gives --------------------------------------------------------------------------------------------


def groups(rows: Rows, time: str, undo: str) -> list[Group]:
    """The changes of a STREAM in the order in which they came."""
    rest = [name for name in rows.columns if name not in (time, undo, "_epoch", "_emit_time", "_undo")]
    return [
        (when, is_undo, bag([row[name] for name in rest] for row in group))
        for (when, is_undo), group in groupby(rows, key=lambda row: (row[time], row[undo]))
    ]


def pictures(snapshots: Iterable[Snapshot]) -> list[tuple[datetime | None, datetime | None, Counter[str]]]:
    """The snapshots of a TVR."""
    return [(one.since, one.until, bag(row.values() for row in one.rows)) for one in snapshots]


# -- inputs -----------------------------------------------------------------------------------------------------------


def definition(name: str, *, has_watermark: bool = False) -> str:
    """The statement that makes an input."""
    columns = [f"{column} {TYPES[column]}" for column in DATASETS["datasets"][name]["columns"]]
    columns += ["WATERMARK EventTime"] if has_watermark else []
    return f"CREATE CHANGELOG `{name}` ({', '.join(columns)})"


def epochs(names: Sequence[str], until: datetime) -> list[tuple[datetime, list[tuple[str, dict[str, Any], int]]]]:
    """The changes of some inputs, merged by time: one epoch each."""
    changes = [
        (
            moment(change["emit_time"]),
            name,
            dict(zip(change["row"], value([*change["row"].values()]), strict=True)),
            sign,
        )
        for name in names
        for change in DATASETS["datasets"][name]["changelog"]
        for sign in [-1 if change["undo"] else 1]
    ]
    known = sorted((change for change in changes if change[0] <= until), key=lambda change: change[0])
    return [(when, [change[1:] for change in group]) for when, group in groupby(known, key=lambda change: change[0])]


def book_flow(case: Case, *, parallelism: int = 1) -> Driver:
    """The inputs of a case, empty."""
    driver = Driver(parallelism=parallelism)
    for name in case.inputs:
        driver.sql(definition(name, has_watermark=bool(case.watermarks)))
    for name, query in case.views.items():
        driver.sql(f"CREATE VIEW {name} AS {query}")
    return driver


def feed(driver: Driver, case: Case) -> None:
    """Play the inputs of a case, and its watermarks, an epoch for each time."""
    played = dict(epochs(case.inputs, case.until))
    for when in sorted({*played, *case.watermarks}):
        for name, row, diff in played.get(when, []):
            (driver.insert if diff > 0 else driver.delete)(name, row)
        for name in case.inputs if when in case.watermarks else []:
            driver.watermark(name, case.watermarks[when])
        driver.step(at=when)
