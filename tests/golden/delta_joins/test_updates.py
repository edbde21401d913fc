"""DJ-UPD and DJ-OUT: updates, collections, and outputs that accumulate to the join of the inputs at every time."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pytest

from rejoinder.errors import MissingRow
from tests.golden.delta_joins.worked_example import (
    COLUMNS,
    EXAMPLE,
    INPUTS,
    OUTPUT,
    Q1,
    STEPS,
    Bag,
    accumulated,
    content,
    example_flow,
    feed,
    record,
    updates,
    wanted,
)


def inputs_at(time: int) -> dict[str, Counter[tuple[Any, ...]]]:
    """The inputs at a time, accumulated from the update triples."""
    result: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in INPUTS}
    for step in STEPS[: time + 1]:
        for name, row, diff in updates(step):
            result[name][tuple(row.values())] += diff
    return result


def recomputed(time: int) -> Bag:
    """q1 the slow way, from the accumulated inputs."""
    inputs, result = inputs_at(time), Counter[tuple[Any, ...]]()
    for customer, c in inputs["customer"].items():
        for order, o in inputs["orders"].items():
            for item, i in inputs["lineitem"].items():
                row = dict(zip(OUTPUT, customer + order + item, strict=True))
                joined = row["c_custkey"] == row["o_custkey"] and row["l_orderkey"] == row["o_orderkey"]
                kept = row["c_mktsegment"] == "BUILDING" and row["o_orderdate"] < date(1995, 3, 15) < row["l_shipdate"]
                if joined and kept and c * o * i:
                    result[tuple(row.values())] += c * o * i
    return result


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"time {step['time']}: {step['what']}")
def test_dj_out_02_each_step_gives_the_exact_correction(step: dict[str, Any]) -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for earlier in STEPS[: step["time"]]:
        feed(driver, earlier)
    assert feed(driver, step)["q1"] == wanted(step["out"])


def test_dj_upd_01_updates_go_in_and_come_back_as_triples() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    changes = {step["time"]: feed(driver, step)["q1"] for step in STEPS}
    streamed: dict[int, Bag] = {step["time"]: Counter() for step in STEPS}
    for row in driver.stream("q1"):
        streamed[row["_epoch"]][tuple(row[column] for column in OUTPUT)] += -1 if row["_undo"] else 1
    assert streamed == changes == {step["time"]: wanted(step["out"]) for step in STEPS}


def test_dj_upd_02_collections_are_sums_of_diffs() -> None:
    driver = example_flow()
    for name in INPUTS:
        driver.sql(f"CREATE VIEW all_{name} AS SELECT * FROM {name}")
    for step in STEPS:
        feed(driver, step)
        for name, bag in inputs_at(step["time"]).items():
            rows = Counter(tuple(row[c] for c in COLUMNS[name]) for row in driver.table(f"all_{name}"))
            assert rows == Counter({row: count for row, count in bag.items() if count})


def test_dj_upd_03_a_record_that_is_not_there_cannot_be_retracted() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    feed(driver, STEPS[0])
    before = driver.table("q1")
    driver.delete("orders", record(COLUMNS["orders"], [10, 1, "1995-03-02"]))
    with pytest.raises(MissingRow) as raised:
        driver.step()
    assert raised.value.fact == "a deleted row does not exist in `orders`"
    assert "'o_orderkey': 10" in (raised.value.values or "")
    assert raised.value.hint
    driver.restart()
    assert driver.table("q1") == before
    assert feed(driver, STEPS[1])["q1"] == wanted(STEPS[1]["out"])


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_dj_out_01_outputs_accumulate_to_the_join_of_the_inputs(parallelism: int) -> None:
    driver = example_flow(parallelism=parallelism)
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for step in STEPS:
        feed(driver, step)
        assert content(driver.table("q1")) == accumulated("out", step["time"]) == recomputed(step["time"])
        driver.restart()
    for step in STEPS:
        assert content(driver.table("q1", as_of=step["time"])) == accumulated("out", step["time"])


def test_the_final_tables_are_reached() -> None:
    driver = example_flow()
    driver.sql(f"CREATE VIEW q1 AS {Q1}")
    for step in STEPS:
        feed(driver, step)
    final = EXAMPLE["final"]["q1"]
    assert content(driver.table("q1")) == Counter(
        {tuple(record(OUTPUT, r["data"]).values()): r["count"] for r in final}
    )
