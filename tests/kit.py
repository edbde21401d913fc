"""What tests of flows share: a flow in one call, times, the rows and changes of a view, and the rows that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from rejoinder.testing import Driver

NOON = datetime(2024, 1, 1, 12)
NAMES = "vwxyz"


def flow(*statements: str, **options: Any) -> Driver:
    """A test driver after `statements`. Those that do not start with CREATE are queries: views `v`, `w`, `x`, …"""
    driver = Driver(**options)
    names = iter(NAMES)
    for statement in statements:
        is_definition = statement.split(maxsplit=1)[0] == "CREATE"
        driver.sql(statement if is_definition else f"CREATE VIEW {next(names)} AS {statement}")
    return driver


def at(minute: float, second: int = 0) -> datetime:
    """A time after noon of one day."""
    return NOON + timedelta(minutes=minute, seconds=second)


def rows(driver: Driver, view: str = "v") -> list[tuple[Any, ...]]:
    """The rows of a view as tuples, in the order of their text."""
    return sorted((tuple(row.values()) for row in driver.table(view)), key=repr)


def bag(listed: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset."""
    return Counter(tuple(row.values()) for row in listed)


def changed(driver: Driver, time: datetime | int | None = None, *, view: str = "v") -> list[tuple[Any, ...]]:
    """Run an epoch at processing time `time`. The net changes of a view: the values of the row, then the diff."""
    return [(*row.values(), diff) for row, diff in driver.step(time)[view]]


def kept(driver: Driver) -> Counter[str]:
    """The rows that are stored of each relation, in its largest arrangement. A relation without any is left out."""
    result: Counter[str] = Counter()
    for arrangement in driver.arrangements():
        if arrangement["rows"]:
            result[arrangement["relation"]] = max(result[arrangement["relation"]], arrangement["rows"])
    return result
