"""Functions that the tests declare."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

calls: list[tuple[Any, ...]] = []
released = threading.Event()
_numbers = itertools.count()


def tax(amount: float | None, country: str | None) -> float | None:
    """Fail for one country."""
    calls.append((amount, country))
    if country == "XX":
        raise LookupError(f"no rate for {country}")
    return None if amount is None else amount / 4


def tax_of_arrays(amount: pa.Array, country: pa.Array) -> pa.Array:
    """The same for arrays."""
    calls.append((len(amount),))
    if pc.any(pc.equal(country, "XX")).as_py():
        raise LookupError("no rate for XX")
    return pc.divide(amount, 4)


def short_array(amount: pa.Array, country: pa.Array) -> pa.Array:
    return amount.slice(1)


def described(row: Any, days: Any, at: datetime | None, price: Decimal | None) -> Any:
    """Take and return types of all kinds."""
    if at is None:
        return None
    return {"at": at + timedelta(hours=1), "price": price, "names": [row["name"], *(days or [])]}


def constant() -> int:
    return 7


def numbered(amount: float, country: str) -> float:
    """Give another answer with each call."""
    return float(next(_numbers))


def wrong_type(amount: float, country: str) -> Any:
    return "much"


def too_large(number: int) -> int:
    return number * 1_000_000


def waits(amount: float, country: str) -> float:
    released.wait(20)
    return amount


async def asynchronous(amount: float, country: str) -> float:
    return amount


def doubled(number: int | None) -> int | None:
    return None if number is None else 2 * number


def words(text: str | None) -> Iterator[tuple[str, int]]:
    """A table function: words with their positions."""
    for position, word in enumerate((text or "").split()):
        if word == "fail":
            raise ValueError("the text fails")
        yield word, position


class Letters:
    """A table function as a class, with one column."""

    def eval(self, text: str) -> Iterator[str]:
        yield from text


class WeightedMean:
    """An aggregate with an exact state."""

    def create(self) -> list[Any]:
        return [Fraction(0), 0]

    def add(self, state: list[Any], value: float | None, weight: int) -> None:
        self._change(state, value, weight)

    def retract(self, state: list[Any], value: float | None, weight: int) -> None:
        self._change(state, value, -weight)

    def merge(self, state: list[Any], other: list[Any]) -> list[Any]:
        return [state[0] + other[0], state[1] + other[1]]

    def finish(self, state: list[Any]) -> float | None:
        return float(state[0] / state[1]) if state[1] else None

    def _change(self, state: list[Any], value: float | None, weight: int) -> None:
        if value is not None:
            state[0] += Fraction(value) * weight
            state[1] += weight


class Last(WeightedMean):
    """An aggregate that depends on the order of rows, and whose parts do not add up."""

    def retract(self, state: list[Any], value: float | None, weight: int) -> None:
        pass


class Grown:
    """An aggregate of streams: it cannot retract."""

    def create(self) -> set[float]:
        return set()

    def add(self, state: set[float], value: float, weight: int) -> set[float]:
        if weight < 0:
            raise ValueError("a negative weight")
        return {*state, value}

    def finish(self, state: set[float]) -> Any:
        return len(state) if len(state) < 3 else "many"


class Objects(Grown):
    """An aggregate whose state is not plain data."""

    def create(self) -> Any:
        return object()


class Ratio:
    """The sum of `x` for each unit of `w`. Fails without rows, and refuses a negative `w`."""

    def create(self) -> list[float]:
        return [0.0, 0]

    def add(self, state: list[float], x: float, w: int) -> None:
        if w < 0:
            raise ValueError("a negative weight")
        state[0] += x
        state[1] += w

    def retract(self, state: list[float], x: float, w: int) -> None:
        state[0] -= x
        state[1] -= w

    def finish(self, state: list[float]) -> float:
        return state[0] / state[1]
