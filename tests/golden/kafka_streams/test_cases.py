"""Every case of the matrix, record by record, on one bucket and on three, with a restart in the middle."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rejoinder.testing import Driver
from tests.golden.kafka_streams.cells import CASES, Played, sorted_records

ORDERS = 5
IDS = [case["id"] for case in CASES]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_record_gives_what_the_data_says(case: dict[str, Any], parallelism: int) -> None:
    played = Played(case, Driver(parallelism=parallelism))
    for number, step in enumerate(case["steps"]):
        if number == len(case["steps"]) // 2:
            played.driver.restart(parallelism=4 - parallelism)
        played.put(step["in"])
        assert played.step() == sorted_records(step["out"]), step
    if "final_state" in case:
        assert played.state() == sorted_records(case["final_state"])


INDEPENDENT = [case for case in CASES if "property" in case]


@pytest.mark.parametrize("case", INDEPENDENT, ids=[case["id"] for case in INDEPENDENT])
def test_the_result_does_not_depend_on_the_order_of_arrival(case: dict[str, Any]) -> None:
    results = []
    for order in orders(case):
        played = Played(case, Driver())
        for given in order:
            played.put(given)
            played.step()
        results.append(played.state())
    at_once = Played(case, Driver(parallelism=2))
    for step in case["steps"]:
        at_once.put(step["in"])
    at_once.step()
    assert all(result == at_once.state() for result in results)
    assert len(results) > 1
    if "final_state" in case:
        assert results[0] == sorted_records(case["final_state"])


def orders(case: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Some orders of a case's records: any for streams, for tables those that keep the order of each side."""
    given = [step["in"] for step in case["steps"]]
    if case["left"] == "KStream":
        found = list(itertools.permutations(given))
    else:
        sides = [[each for each in given if each["side"] == side] for side in ("left", "right")]
        places = itertools.combinations(range(len(given)), len(sides[0]))
        found = [_interleaved(set(chosen), sides) for chosen in places]
    random.Random(case["id"]).shuffle(found)
    yield from (list(order) for order in found[:ORDERS])


def _interleaved(chosen: set[int], sides: list[list[dict[str, Any]]]) -> tuple[dict[str, Any], ...]:
    left, right = (iter(side) for side in sides)
    return tuple(next(left if at in chosen else right) for at in range(sum(map(len, sides))))
