"""Functions that enrichments ask: they count their calls, and answer something else every time."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]


class Calls:
    """What was asked, and how many calls were out at a time at most."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.numbers = itertools.count()
        self.failures = 0
        self.open = self.most = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Begin anew."""
        self.__init__()  # type: ignore[misc]

    def begin(self, row: Any) -> int:
        """A call comes; fail as often as was asked for."""
        with self._lock:
            self.rows.append(row)
            if self.failures:
                self.failures -= 1
                raise ConnectionError("the service is down")
            self.open += 1
            self.most = max(self.most, self.open)
            return next(self.numbers)

    def end(self) -> None:
        """A call ends."""
        with self._lock:
            self.open -= 1


calls = Calls()


async def numbered(row: Row) -> dict[str, Any]:
    """Another number every time."""
    number = calls.begin(row)
    await asyncio.sleep(0.002)
    calls.end()
    return {"number": number}


def plainly(row: Row) -> dict[str, Any]:
    """The same without async."""
    number = calls.begin(row)
    time.sleep(0.002)
    calls.end()
    return {"number": number}


async def in_tables(rows: pa.Table) -> pa.Table:
    """The same for a batch."""
    number = calls.begin(rows)
    calls.end()
    return pa.table({"number": pa.array([number] * rows.num_rows, pa.int32())})


def in_lists(rows: pa.Table) -> list[dict[str, Any] | None]:
    """The same as a list, without an answer to the first row."""
    number = calls.begin(rows)
    calls.end()
    return [None, *({"number": number} for _ in range(rows.num_rows - 1))]


async def slowly(row: Row) -> dict[str, Any]:
    """No answer for a long time, the first time."""
    if calls.begin(row) == 0:
        await asyncio.sleep(60)
    return {"number": 7}


def wrongly(row: Row) -> Any:
    """What is named by the row, and does not fit."""
    return {"column": {"numbr": 1}, "type": {"number": "seven"}, "shape": 7}.get(row["what"])


def too_few(rows: pa.Table) -> pa.Table:
    """One answer for all."""
    return pa.table({"number": [1]})


class Service:
    """An object with a method."""

    def number(self, row: Row) -> dict[str, Any]:
        """The length of the row."""
        return {"number": len(row)}


service = Service()
not_a_function = 7
