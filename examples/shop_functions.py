"""The functions that `functions_of_your_own.py` declares: a module of their own, which every worker can import."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

RATES = {"PT": Decimal("0.23"), "UK": Decimal("0.20")}


def tax(amount: Decimal, country: str) -> Decimal:
    """A scalar function: the tax on an amount."""
    return (amount * RATES[country]).quantize(Decimal("0.01"))


def words(text: str) -> Iterator[str]:
    """A table function: a row for each word."""
    yield from text.split()


class Spread:
    """An aggregate: the distance between the smallest and the largest amount."""

    def create(self) -> dict[Decimal, int]:
        return {}

    def add(self, state: dict[Decimal, int], amount: Decimal) -> None:
        state[amount] = state.get(amount, 0) + 1

    def retract(self, state: dict[Decimal, int], amount: Decimal) -> None:
        state[amount] -= 1
        if not state[amount]:
            del state[amount]

    def finish(self, state: dict[Decimal, int]) -> Decimal | None:
        return max(state) - min(state) if state else None
